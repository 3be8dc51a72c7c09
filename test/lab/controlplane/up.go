package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
	"slurmlet.io/test/lab/controlplane/internal/pki"
)

const (
	serviceRange   = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1"
)

// options are what the command line of "up" says.
type options struct {
	dir                   string
	audit                 bool
	noAutoApprove         bool
	without               []string
	apiserverArgs         []string
	controllerManagerArgs []string
	schedulerArgs         []string
	etcdArgs              []string
}

func upCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Run a cluster in the foreground",
		Long: `Runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback
until SIGTERM or SIGINT. All state is in DIR; "up" on a DIR used before goes on
with the same cluster, at the same address.

When the cluster can be used, DIR/admin.kubeconfig is written and the line
"ready https://127.0.0.1:PORT" printed. Logs are in DIR/logs. A component that
ends by itself is started again.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return up(o) },
	}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", "", "folder of the cluster, made if it is not there (required)")
	f.BoolVar(&o.audit, "audit", false, "write an audit log (level Metadata) to DIR/audit.log")
	f.BoolVar(&o.noAutoApprove, "no-auto-approve", false, "leave certificate signing requests of nodes to be approved by hand")
	f.StringSliceVar(&o.without, "without", nil, "components not to run: kube-scheduler, kube-controller-manager")
	f.StringArrayVar(&o.apiserverArgs, "apiserver-arg", nil, "further kube-apiserver argument (repeatable)")
	f.StringArrayVar(&o.controllerManagerArgs, "controller-manager-arg", nil, "further kube-controller-manager argument (repeatable)")
	f.StringArrayVar(&o.schedulerArgs, "scheduler-arg", nil, "further kube-scheduler argument (repeatable)")
	f.StringArrayVar(&o.etcdArgs, "etcd-arg", nil, "further etcd argument (repeatable)")
	_ = c.MarkFlagRequired("dir")
	return c
}

func up(o options) error {
	for _, name := range o.without {
		if name != schedulerName && name != controllerManagerName {
			return fmt.Errorf("--without: %q is not %s or %s", name, schedulerName, controllerManagerName)
		}
	}
	l, err := cluster.NewDir(o.dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(l.Path("logs"), 0o755); err != nil {
		return err
	}
	lock, err := lockCluster(l)
	if err != nil {
		return err
	}
	defer lock.Close()

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer cancel()

	s, err := newSupervisor(l, o)
	if err != nil {
		return err
	}
	defer s.shutdown()
	if err := s.bringUp(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	<-ctx.Done()
	return nil
}

// lockCluster makes sure that one supervisor at a time runs on a folder.
func lockCluster(l cluster.Dir) (*os.File, error) {
	f, err := os.OpenFile(l.Path("lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another control plane runs in %s", l.Root)
	}
	return f, nil
}

// supervisor runs the components of one cluster.
type supervisor struct {
	layout    cluster.Dir
	options   options
	ports     cluster.Ports
	processes []*process // in the order in which they are started
	control   net.Listener
}

func newSupervisor(l cluster.Dir, o options) (*supervisor, error) {
	if err := os.Remove(l.Kubeconfig(adminName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(l.PKI(), 0o700); err != nil {
		return nil, err
	}
	p, err := ensurePorts(l)
	if err != nil {
		return nil, err
	}
	s := &supervisor{layout: l, options: o, ports: p}
	if err := s.makeCertificates(); err != nil {
		return nil, err
	}
	if err := s.writeAuditPolicy(); err != nil {
		return nil, err
	}
	for _, c := range []struct {
		name, health, authority, client string
		args                            []string
	}{
		{etcdName, "https://" + cluster.HostPort(p.Etcd) + "/health", etcdCA, "etcd-client", s.etcdArgs()},
		{apiserverName, p.Server() + "/readyz", cluster.CAName, adminName, s.apiserverArgs()},
		{controllerManagerName, "https://" + cluster.HostPort(p.ControllerManager) + "/healthz", cluster.CAName, adminName, s.controllerManagerArgs()},
		{schedulerName, "https://" + cluster.HostPort(p.Scheduler) + "/healthz", cluster.CAName, adminName, s.schedulerArgs()},
	} {
		if slices.Contains(o.without, c.name) {
			continue
		}
		start, err := program(c.name)
		if err != nil {
			return nil, err
		}
		client, err := probeClient(l, c.authority, c.client)
		if err != nil {
			return nil, err
		}
		s.processes = append(s.processes, &process{
			name:    c.name,
			command: append(start, c.args...),
			logFile: l.Log(c.name),
			health:  c.health,
			client:  client,
		})
	}
	return s, nil
}

// find gives the process of a component, or nil when the cluster has none.
func (s *supervisor) find(name string) *process {
	for _, p := range s.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// bringUp starts everything and returns when the cluster can be used.
func (s *supervisor) bringUp(ctx context.Context) error {
	if err := s.listen(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	for _, name := range []string{etcdName, apiserverName} {
		p := s.find(name)
		if err := p.start(); err != nil {
			return err
		}
		if err := p.waitHealthy(ctx); err != nil {
			return err
		}
	}
	others := s.processes[2:]
	for _, p := range others {
		if err := p.start(); err != nil {
			return err
		}
	}
	client, err := adminClient(s.layout)
	if err != nil {
		return err
	}
	if err := prepareCluster(ctx, client, s); err != nil {
		return err
	}
	for _, p := range others {
		if err := p.waitHealthy(ctx); err != nil {
			return err
		}
	}
	for _, p := range s.processes {
		p.forgiveDeaths()
	}
	admin, err := s.certified(adminName, "kubernetes-admin")
	if err != nil {
		return err
	}
	if err := admin.Save(s.layout.Kubeconfig(adminName)); err != nil {
		return err
	}
	fmt.Printf("ready %s\n", s.ports.Server())
	return nil
}

// shutdown ends all components, etcd last, in less than five seconds.
func (s *supervisor) shutdown() {
	if s.control != nil {
		s.control.Close()
		os.Remove(s.layout.Path(socketName))
	}
	var clients sync.WaitGroup
	for _, p := range s.processes {
		if p.name != etcdName && p.name != apiserverName {
			clients.Go(func() { p.stop(time.Second) })
		}
	}
	clients.Wait()
	s.find(apiserverName).stop(2 * time.Second)
	s.find(etcdName).stop(time.Second)
}

// makeCertificates makes what the cluster's folder lacks of authorities,
// certificates, keys and the components' kubeconfigs.
func (s *supervisor) makeCertificates() error {
	dir := s.layout.PKI()
	ca, err := pki.EnsureAuthority(dir, cluster.CAName, "kubernetes")
	if err != nil {
		return err
	}
	proxy, err := pki.EnsureAuthority(dir, frontProxyCA, frontProxyCA)
	if err != nil {
		return err
	}
	etcd, err := pki.EnsureAuthority(dir, etcdCA, etcdCA)
	if err != nil {
		return err
	}
	if err := pki.EnsureSigningKey(dir, "sa"); err != nil {
		return err
	}
	local := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	names := []string{"localhost"}
	service := append(slices.Clone(names), "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if host, err := os.Hostname(); err == nil {
		service = append(service, host)
	}
	for _, c := range []struct {
		by      *pki.Authority
		name    string
		request pki.Request
	}{
		{ca, "apiserver", pki.Request{CommonName: apiserverName, Hosts: service, IPs: append(slices.Clone(local), net.ParseIP(firstServiceIP))}},
		{ca, "apiserver-kubelet-client", pki.Request{CommonName: kubeletClientUser}},
		{proxy, "front-proxy-client", pki.Request{CommonName: "front-proxy-client"}},
		{etcd, "etcd-server", pki.Request{CommonName: etcdName, Hosts: names, IPs: local}},
		{etcd, "etcd-client", pki.Request{CommonName: apiserverName}},
		{ca, adminName, pki.Request{CommonName: "kubernetes-admin", Organizations: []string{"system:masters"}}},
		{ca, "controller-manager", pki.Request{CommonName: "system:kube-controller-manager", Hosts: names, IPs: local}},
		{ca, "scheduler", pki.Request{CommonName: "system:kube-scheduler", Hosts: names, IPs: local}},
	} {
		if err := c.by.EnsurePair(dir, c.name, c.request); err != nil {
			return err
		}
	}
	for name, user := range map[string]string{
		"controller-manager": "system:kube-controller-manager",
		"scheduler":          "system:kube-scheduler",
	} {
		k, err := s.certified(name, user)
		if err != nil {
			return err
		}
		if err := k.Save(s.layout.Kubeconfig(name)); err != nil {
			return err
		}
	}
	return nil
}

// certified gives a kubeconfig with the certificate NAME of the folder.
func (s *supervisor) certified(name, user string) (*pki.Kubeconfig, error) {
	ca, err := os.ReadFile(s.layout.PKI(cluster.CAName + ".crt"))
	if err != nil {
		return nil, err
	}
	pair, err := pki.LoadPair(s.layout.PKI(), name)
	if err != nil {
		return nil, err
	}
	return &pki.Kubeconfig{Server: s.ports.Server(), Cluster: cluster.Name, User: user, CA: ca, Client: pair}, nil
}

func (s *supervisor) writeAuditPolicy() error {
	return pki.WriteFile(s.layout.Path("audit-policy.yaml"), []byte(strings.TrimLeft(`
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`, "\n")), 0o644)
}
