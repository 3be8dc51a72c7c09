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
	Age    time.Duration
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

// WriteCertified issues a client certificate and writes a kubeconfig with it.
func (t *Target) WriteCertified(commonName string, organizations []string, embed bool) error {
	d, k, err := t.Open()
	if err != nil {
		return err
	}
	ca, err := pki.LoadAuthority(d.PKI(), CAName)
	if err != nil {
		return err
	}
	k.User = commonName
	k.Client, err = ca.Issue(pki.Request{CommonName: commonName, Organizations: organizations, Lifetime: t.TTL, Age: t.Age})
	if err != nil {
		return err
	}
	if embed {
		return k.Save(t.Out)
	}
	return k.SaveSplit(t.Out, d.PKI(CAName+".crt"))
}
