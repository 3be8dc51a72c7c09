package cluster

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"slurmlet.io/test/lab/controlplane/internal/pki"
)

// Target is where the kubeconfig commands read from and write to.
type Target struct {
	Dir    string
	Out    string
	Server string
	TTL    time.Duration
}

func (t *Target) Flags(c *cobra.Command, ttl time.Duration, what string) {
	c.Flags().StringVar(&t.Dir, "dir", "", "folder of the cluster (required)")
	c.Flags().StringVar(&t.Out, "out", "", "kubeconfig file to write (required)")
	c.Flags().StringVar(&t.Server, "server", "", "API server URL to write (default: that of the cluster)")
	c.Flags().DurationVar(&t.TTL, "ttl", ttl, "how long the "+what+" is valid")
	_ = c.MarkFlagRequired("dir")
	_ = c.MarkFlagRequired("out")
	c.Args = cobra.NoArgs
}

func (t *Target) Open() (Dir, *pki.Kubeconfig, error) {
	d, err := NewDir(t.Dir)
	if err != nil {
		return d, nil, err
	}
	p, err := LoadPorts(d)
	if err != nil {
		return d, nil, err
	}
	ca, err := os.ReadFile(d.PKI(CAName + ".crt"))
	if err != nil {
		return d, nil, err
	}
	k := &pki.Kubeconfig{Server: p.Server(), Cluster: Name, CA: ca}
	if t.Server != "" {
		k.Server = t.Server
	}
	return d, k, nil
}
