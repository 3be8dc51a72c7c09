// Command virtualkubelet registers this machine as a node without pods through
// the Virtual Kubelet library, in the leanest way the library offers: its node
// controller with leases, no pod controller, no informers and no kubelet API.
// It is what slurmlet is compared with in the benchmarks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/klogv2"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	corev1 "k8s.io/api/core/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file")
	name := flag.String("nodename", "", "name of the node (default: the host name)")
	flag.Parse()
	if *name == "" {
		*name, _ = os.Hostname()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := run(ctx, *kubeconfig, *name); err != nil {
		fmt.Fprintln(os.Stderr, "virtualkubelet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, name string) error {
	log.L = klogv2.New(nil)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// Both clients share one connection.
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	nodes, err := core.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	leases, err := coordination.NewForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	object, err := describeMachine(name)
	if err != nil {
		return err
	}
	controller, err := node.NewNodeController(
		node.NaiveNodeProvider{},
		object,
		nodes.Nodes(),
		node.WithNodeEnableLeaseV1(leases.Leases(corev1.NamespaceNodeLease), node.DefaultLeaseDuration),
	)
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-controller.Ready():
			fmt.Println("ready", name)
		case <-controller.Done():
		}
	}()
	return controller.Run(ctx)
}
