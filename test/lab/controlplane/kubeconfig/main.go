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
	"slurmlet.io/test/lab/controlplane/internal/pki"
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

// certified is a kubeconfig with a client certificate.
type certified struct {
	cluster.Target
	age   time.Duration
	embed bool
}

func (k *certified) flags(c *cobra.Command) {
	k.Flags(c, 24*time.Hour, "certificate")
	c.Flags().BoolVar(&k.embed, "embed", true, "put certificate and key into the kubeconfig itself")
}

func (k *certified) write(commonName string, organizations []string) error {
	d, file, err := k.Open()
	if err != nil {
		return err
	}
	ca, err := pki.LoadAuthority(d.PKI(), cluster.CAName)
	if err != nil {
		return err
	}
	file.User = commonName
	file.Client, err = ca.Issue(pki.Request{CommonName: commonName, Organizations: organizations, Lifetime: k.TTL, Age: k.age})
	if err != nil {
		return err
	}
	if k.embed {
		return file.Save(k.Out)
	}
	return file.SaveSplit(k.Out, d.PKI(cluster.CAName+".crt"))
}

func nodeCommand() *cobra.Command {
	var k certified
	var name string
	c := &cobra.Command{
		Use:   "node --dir DIR --name NAME --out FILE",
		Short: "Write a kubeconfig with a node's client certificate",
		Long: `Writes a kubeconfig whose client certificate, issued by the cluster's CA, is for
user system:node:NAME in group system:nodes. The control plane need not run.

With --embed=false the certificate and key are in FILE.crt and FILE.key, and the
kubeconfig refers to these and to the CA file in the cluster's folder.`,
		RunE: func(*cobra.Command, []string) error {
			return k.write(nodeUserPrefix+name, []string{cluster.NodesGroup})
		},
	}
	k.flags(c)
	c.Flags().StringVar(&name, "name", "", "name of the node (required)")
	c.Flags().DurationVar(&k.age, "age", 0, "how long ago the certificate was issued")
	_ = c.MarkFlagRequired("name")
	return c
}

func userCommand() *cobra.Command {
	var k certified
	var name string
	var organizations []string
	c := &cobra.Command{
		Use:   "user --dir DIR --cn CN [--org ORG]... --out FILE",
		Short: "Write a kubeconfig with a client certificate for any user",
		Long: `Writes a kubeconfig whose client certificate, issued by the cluster's CA, is for
user CN in the groups ORG. The control plane need not run.`,
		RunE: func(*cobra.Command, []string) error {
			return k.write(name, organizations)
		},
	}
	k.flags(c)
	c.Flags().StringVar(&name, "cn", "", "user name (required)")
	c.Flags().StringArrayVar(&organizations, "org", nil, "group of the user (repeatable)")
	_ = c.MarkFlagRequired("cn")
	return c
}
