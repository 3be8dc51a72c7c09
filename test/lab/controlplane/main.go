// Command controlplane is a Kubernetes control plane in one binary, for tests
// and demonstrations: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kubectl, and a supervisor that runs them on loopback with
// certificates and settings like those of a kubeadm cluster.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// The programs contained in this binary.
const (
	etcdName              = "etcd"
	apiserverName         = "kube-apiserver"
	controllerManagerName = "kube-controller-manager"
	schedulerName         = "kube-scheduler"
	kubectlName           = "kubectl"
)

// Names of certificates in the cluster's folder, besides those of the programs.
const (
	frontProxyCA = "front-proxy-ca"
	etcdCA       = "etcd-ca"
	adminName    = "admin"
)

func main() {
	if name := filepath.Base(os.Args[0]); isComponent(name) {
		dispatch(name, os.Args[1:])
	}
	if len(os.Args) > 1 && isComponent(os.Args[1]) {
		dispatch(os.Args[1], os.Args[2:])
	}
	if err := command().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "controlplane",
		Short: "A Kubernetes control plane in one binary, for tests",
		Long: `A Kubernetes control plane in one binary, for tests.

  controlplane up --dir DIR                    runs a cluster in the foreground
  controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubectl ARGS...
                                               runs one contained program; a link
                                               to this binary with such a name does too

With the environment variable KUBEBUILDER_ASSETS, "up" takes etcd and
kube-apiserver from that folder (and kube-controller-manager and kube-scheduler
where it has them), and "kubectl" runs the kubectl there.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(upCommand(), ctlCommand(), bootstrapKubeconfigCommand(), kubeadmVersionsCommand())
	return root
}
