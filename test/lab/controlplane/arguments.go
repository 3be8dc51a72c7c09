package main

import "strconv"

// etcdArgs are etcd's arguments.
func (s *supervisor) etcdArgs() []string {
	l := s.layout
	client, peer := "https://"+hostPort(s.ports.Etcd), "http://"+hostPort(s.ports.EtcdPeer)
	return append([]string{
		"--name=default",
		"--data-dir=" + l.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + l.pki(etcdCA+".crt"),
		"--cert-file=" + l.pki("etcd-server.crt"),
		"--key-file=" + l.pki("etcd-server.key"),
		"--unsafe-no-fsync=true",
		"--log-level=warn",
	}, s.options.etcdArgs...)
}

// apiserverArgs are kube-apiserver's arguments.
func (s *supervisor) apiserverArgs() []string {
	l := s.layout
	args := []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.ports.APIServer),
		"--tls-cert-file=" + l.pki("apiserver.crt"),
		"--tls-private-key-file=" + l.pki("apiserver.key"),
		"--client-ca-file=" + l.pki(caName+".crt"),

		"--etcd-servers=https://" + hostPort(s.ports.Etcd),
		"--etcd-cafile=" + l.pki(etcdCA+".crt"),
		"--etcd-certfile=" + l.pki("etcd-client.crt"),
		"--etcd-keyfile=" + l.pki("etcd-client.key"),

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
		"--service-account-key-file=" + l.pki("sa.pub"),
		"--service-account-signing-key-file=" + l.pki("sa.key"),

		"--kubelet-client-certificate=" + l.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + l.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",

		"--requestheader-client-ca-file=" + l.pki(frontProxyCA+".crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + l.pki("front-proxy-client.crt"),
		"--proxy-client-key-file=" + l.pki("front-proxy-client.key"),
	}
	if s.options.audit {
		args = append(args,
			"--audit-policy-file="+l.path("audit-policy.yaml"),
			"--audit-log-path="+l.path("audit.log"),
			"--audit-log-mode=blocking",
			"--audit-log-maxsize=10000")
	}
	return append(args, s.options.apiserverArgs...)
}

// delegationArgs are what controller manager and scheduler have in common.
func (s *supervisor) delegationArgs(name string, port int) []string {
	kubeconfig := s.layout.kubeconfig(name)
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + s.layout.pki(caName+".crt"),
		"--requestheader-client-ca-file=" + s.layout.pki(frontProxyCA+".crt"),
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + s.layout.pki(name+".crt"),
		"--tls-private-key-file=" + s.layout.pki(name+".key"),
		"--leader-elect=false",
	}
}

// controllerManagerArgs are kube-controller-manager's arguments.
func (s *supervisor) controllerManagerArgs() []string {
	l := s.layout
	args := append(s.delegationArgs("controller-manager", s.ports.ControllerManager),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--use-service-account-credentials=true",
		"--root-ca-file="+l.pki(caName+".crt"),
		"--service-account-private-key-file="+l.pki("sa.key"),
		"--cluster-signing-cert-file="+l.pki(caName+".crt"),
		"--cluster-signing-key-file="+l.pki(caName+".key"),
		"--cluster-name="+clusterName,
		// With the default of 20 a second its start takes five seconds more: an account for each controller.
		"--kube-api-qps=200", "--kube-api-burst=400",
		// The default is a folder of the system, which would be made.
		"--flex-volume-plugin-dir="+l.path("flexvolume"),
	)
	return append(args, s.options.controllerManagerArgs...)
}

// schedulerArgs are kube-scheduler's arguments.
func (s *supervisor) schedulerArgs() []string {
	return append(s.delegationArgs("scheduler", s.ports.Scheduler), s.options.schedulerArgs...)
}
