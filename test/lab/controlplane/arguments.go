package main

import (
	"strconv"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
)

// etcdArgs are etcd's arguments.
func (s *supervisor) etcdArgs() []string {
	l := s.layout
	client, peer := "https://"+cluster.HostPort(s.ports.Etcd), "http://"+cluster.HostPort(s.ports.EtcdPeer)
	return append([]string{
		"--name=default",
		"--data-dir=" + l.Path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + l.PKI(etcdCA+".crt"),
		"--cert-file=" + l.PKI("etcd-server.crt"),
		"--key-file=" + l.PKI("etcd-server.key"),
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}, s.options.etcdArgs...)
}

// apiserverArgs are kube-apiserver's arguments.
func (s *supervisor) apiserverArgs() []string {
	l := s.layout
	args := []string{
		"--bind-address=" + cluster.Loopback,
		"--advertise-address=" + cluster.Loopback,
		"--secure-port=" + strconv.Itoa(s.ports.APIServer),
		"--tls-cert-file=" + l.PKI("apiserver.crt"),
		"--tls-private-key-file=" + l.PKI("apiserver.key"),
		"--client-ca-file=" + l.PKI(cluster.CAName+".crt"),

		"--etcd-servers=https://" + cluster.HostPort(s.ports.Etcd),
		"--etcd-cafile=" + l.PKI(etcdCA+".crt"),
		"--etcd-certfile=" + l.PKI("etcd-client.crt"),
		"--etcd-keyfile=" + l.PKI("etcd-client.key"),

		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceRange,
		// Without a period open watches hold up the end for as long as they last.
		"--shutdown-watch-termination-grace-period=1s",
		// An endpoint on loopback is not valid, so the service "kubernetes" has none.
		"--endpoint-reconciler-type=none",

		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.PKI("sa.pub"),
		"--service-account-signing-key-file=" + l.PKI("sa.key"),

		"--kubelet-client-certificate=" + l.PKI("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + l.PKI("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",

		"--requestheader-client-ca-file=" + l.PKI(frontProxyCA+".crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.PKI("front-proxy-client.crt"),
		"--proxy-client-key-file=" + l.PKI("front-proxy-client.key"),
	}
	if s.options.audit {
		args = append(args,
			"--audit-policy-file="+l.Path("audit-policy.yaml"),
			"--audit-log-path="+l.Path("audit.log"),
			"--audit-log-mode=blocking",
			"--audit-log-maxsize=10000")
	}
	return append(args, s.options.apiserverArgs...)
}

// delegationArgs are what controller manager and scheduler have in common.
func (s *supervisor) delegationArgs(name string, port int) []string {
	kubeconfig := s.layout.Kubeconfig(name)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + s.layout.PKI(cluster.CAName+".crt"),
		"--requestheader-client-ca-file=" + s.layout.PKI(frontProxyCA+".crt"),
		"--bind-address=" + cluster.Loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + s.layout.PKI(name+".crt"),
		"--tls-private-key-file=" + s.layout.PKI(name+".key"),
		"--leader-elect=false",
	}
}

// controllerManagerArgs are kube-controller-manager's arguments.
func (s *supervisor) controllerManagerArgs() []string {
	l := s.layout
	args := append(s.delegationArgs("controller-manager", s.ports.ControllerManager),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--use-service-account-credentials=true",
		"--root-ca-file="+l.PKI(cluster.CAName+".crt"),
		"--service-account-private-key-file="+l.PKI("sa.key"),
		"--cluster-signing-cert-file="+l.PKI(cluster.CAName+".crt"),
		"--cluster-signing-key-file="+l.PKI(cluster.CAName+".key"),
		"--cluster-name="+cluster.Name,
		// With the default of 20 a second its start takes five seconds more: an account for each controller.
		"--kube-api-qps=200", "--kube-api-burst=400",
		// The default is a folder of the system, which would be made.
		"--flex-volume-plugin-dir="+l.Path("flexvolume"),
	)
	return append(args, s.options.controllerManagerArgs...)
}

// schedulerArgs are kube-scheduler's arguments.
func (s *supervisor) schedulerArgs() []string {
	return append(s.delegationArgs("scheduler", s.ports.Scheduler), s.options.schedulerArgs...)
}
