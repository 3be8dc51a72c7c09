// Command kubeconfig writes kubeconfig files with client certificates for the
// clusters of controlplane. It is a program of its own because tests start it
// for each node: to load all that is in controlplane takes a tenth of a second.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
)

const nodeUserPrefix = "system:node:"

func main() {
	root := &cobra.Command{
		Use:               "kubeconfig",
		Short:             "Kubeconfig files for the clusters of controlplane",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(nodeCommand(), userCommand())
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "kubeconfig:", err)
		os.Exit(1)
	}
}

func nodeCommand() *cobra.Command {
	var t cluster.Target
	var name string
	var embed bool
	c := &cobra.Command{
		Use:   "node --dir DIR --name NAME --out FILE",
		Short: "Write a kubeconfig with a node's client certificate",
		Long: `Writes a kubeconfig whose client certificate, issued by the cluster's CA, is for
user system:node:NAME in group system:nodes. The control plane need not run.

With --embed=false the certificate and key are in FILE.crt and FILE.key, and the
kubeconfig refers to these and to the CA file in the cluster's folder.`,
		RunE: func(*cobra.Command, []string) error {
			return t.WriteCertified(nodeUserPrefix+name, []string{cluster.NodesGroup}, embed)
		},
	}
	t.Flags(c, 24*time.Hour, "certificate")
	c.Flags().StringVar(&name, "name", "", "name of the node (required)")
	c.Flags().BoolVar(&embed, "embed", true, "put certificate and key into the kubeconfig itself")
	c.Flags().DurationVar(&t.Age, "age", 0, "how long ago the certificate was issued")
	_ = c.MarkFlagRequired("name")
	return c
}

func userCommand() *cobra.Command {
	var t cluster.Target
	var name string
	var organizations []string
	var embed bool
	c := &cobra.Command{
		Use:   "user --dir DIR --cn CN [--org ORG]... --out FILE",
		Short: "Write a kubeconfig with a client certificate for any user",
		Long: `Writes a kubeconfig whose client certificate, issued by the cluster's CA, is for
user CN in the groups ORG. The control plane need not run.`,
		RunE: func(*cobra.Command, []string) error {
			return t.WriteCertified(name, organizations, embed)
		},
	}
	t.Flags(c, 24*time.Hour, "certificate")
	c.Flags().StringVar(&name, "cn", "", "user name (required)")
	c.Flags().StringArrayVar(&organizations, "org", nil, "group of the user (repeatable)")
	c.Flags().BoolVar(&embed, "embed", true, "put certificate and key into the kubeconfig itself")
	_ = c.MarkFlagRequired("cn")
	return c
}
