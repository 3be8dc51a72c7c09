package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"slurmlet.io/test/lab/controlplane/internal/pki"
)

const (
	caName          = "ca"
	frontProxyCA    = "front-proxy-ca"
	etcdCA          = "etcd-ca"
	adminName       = "admin"
	clusterName     = "kubernetes"
	nodesGroup      = "system:nodes"
	nodeUserPrefix  = "system:node:"
	bootstrapGroup  = "system:bootstrappers:kubeadm:default-node-token"
	bootstrapUser   = "tls-bootstrap-token-user"
	tokenCharacters = "0123456789abcdefghijklmnopqrstuvwxyz"
)

// target is where the kubeconfig commands read from and write to.
type target struct {
	dir    string
	out    string
	server string
	ttl    time.Duration
	age    time.Duration
}

func (t *target) flags(c *cobra.Command, ttl time.Duration, what string) {
	c.Flags().StringVar(&t.dir, "dir", "", "folder of the cluster (required)")
	c.Flags().StringVar(&t.out, "out", "", "kubeconfig file to write (required)")
	c.Flags().StringVar(&t.server, "server", "", "API server URL to write (default: that of the cluster)")
	c.Flags().DurationVar(&t.ttl, "ttl", ttl, "how long the "+what+" is valid")
	_ = c.MarkFlagRequired("dir")
	_ = c.MarkFlagRequired("out")
	c.Args = cobra.NoArgs
}

func (t *target) open() (layout, *pki.Kubeconfig, error) {
	l, err := newLayout(t.dir)
	if err != nil {
		return l, nil, err
	}
	p, err := loadPorts(l)
	if err != nil {
		return l, nil, err
	}
	ca, err := os.ReadFile(l.pki(caName + ".crt"))
	if err != nil {
		return l, nil, err
	}
	k := &pki.Kubeconfig{Server: p.server(), Cluster: clusterName, CA: ca}
	if t.server != "" {
		k.Server = t.server
	}
	return l, k, nil
}

// writeCertified issues a client certificate and writes a kubeconfig with it.
func (t *target) writeCertified(commonName string, organizations []string, embed bool) error {
	l, k, err := t.open()
	if err != nil {
		return err
	}
	ca, err := pki.LoadAuthority(l.pki(), caName)
	if err != nil {
		return err
	}
	k.User = commonName
	k.Client, err = ca.Issue(pki.Request{CommonName: commonName, Organizations: organizations, Lifetime: t.ttl, Age: t.age})
	if err != nil {
		return err
	}
	if embed {
		return k.Save(t.out)
	}
	return k.SaveSplit(t.out, l.pki(caName+".crt"))
}

func nodeKubeconfigCommand() *cobra.Command {
	var t target
	var name string
	var embed bool
	c := &cobra.Command{
		Use:   "node-kubeconfig --dir DIR --name NAME --out FILE",
		Short: "Write a kubeconfig with a node's client certificate",
		Long: `Writes a kubeconfig whose client certificate, issued by the cluster's CA, is for
user system:node:NAME in group system:nodes. The control plane need not run.

With --embed=false the certificate and key are in FILE.crt and FILE.key, and the
kubeconfig refers to these and to the CA file in the cluster's folder.`,
		RunE: func(*cobra.Command, []string) error {
			return t.writeCertified(nodeUserPrefix+name, []string{nodesGroup}, embed)
		},
	}
	t.flags(c, 24*time.Hour, "certificate")
	c.Flags().StringVar(&name, "name", "", "name of the node (required)")
	c.Flags().BoolVar(&embed, "embed", true, "put certificate and key into the kubeconfig itself")
	c.Flags().DurationVar(&t.age, "age", 0, "how long ago the certificate was issued")
	_ = c.MarkFlagRequired("name")
	return c
}

func userKubeconfigCommand() *cobra.Command {
	var t target
	var name string
	var organizations []string
	var embed bool
	c := &cobra.Command{
		Use:   "user-kubeconfig --dir DIR --cn CN [--org ORG]... --out FILE",
		Short: "Write a kubeconfig with a client certificate for any user",
		Long: `Writes a kubeconfig whose client certificate, issued by the cluster's CA, is for
user CN in the groups ORG. The control plane need not run.`,
		RunE: func(*cobra.Command, []string) error {
			return t.writeCertified(name, organizations, embed)
		},
	}
	t.flags(c, 24*time.Hour, "certificate")
	c.Flags().StringVar(&name, "cn", "", "user name (required)")
	c.Flags().StringArrayVar(&organizations, "org", nil, "group of the user (repeatable)")
	c.Flags().BoolVar(&embed, "embed", true, "put certificate and key into the kubeconfig itself")
	_ = c.MarkFlagRequired("cn")
	return c
}

func bootstrapKubeconfigCommand() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:   "bootstrap-kubeconfig --dir DIR --out FILE",
		Short: "Write a kubeconfig with a new bootstrap token",
		Long: `Makes a bootstrap token, stores it in the cluster as kubeadm does, and writes a
kubeconfig with it, such as a kubelet takes as --bootstrap-kubeconfig. The API
server must run.`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, k, err := t.open()
			if err != nil {
				return err
			}
			client, err := adminClient(l)
			if err != nil {
				return err
			}
			if k.Token, err = createToken(c.Context(), client, t.ttl); err != nil {
				return err
			}
			k.User = bootstrapUser
			return k.Save(t.out)
		},
	}
	t.flags(c, time.Hour, "token")
	return c
}

// createToken stores a new bootstrap token in the cluster and gives it back.
func createToken(ctx context.Context, client kubernetes.Interface, ttl time.Duration) (string, error) {
	id, err := randomString(6)
	if err != nil {
		return "", err
	}
	secret, err := randomString(16)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = client.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id},
		Type:       "bootstrap.kubernetes.io/token",
		StringData: map[string]string{
			"description":                    "made by controlplane bootstrap-kubeconfig",
			"token-id":                       id,
			"token-secret":                   secret,
			"expiration":                     time.Now().Add(ttl).UTC().Format(time.RFC3339),
			"usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing":        "true",
			"auth-extra-groups":              bootstrapGroup,
		},
	}, metav1.CreateOptions{})
	return id + "." + secret, err
}

func randomString(length int) (string, error) {
	text := make([]byte, length)
	for i := range text {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenCharacters))))
		if err != nil {
			return "", err
		}
		text[i] = tokenCharacters[n.Int64()]
	}
	return string(text), nil
}

// adminClient is a client with the rights of system:masters.
func adminClient(l layout) (kubernetes.Interface, error) {
	p, err := loadPorts(l)
	if err != nil {
		return nil, fmt.Errorf("no cluster in %s: %w", l.dir, err)
	}
	return kubernetes.NewForConfig(&rest.Config{
		Host:      p.server(),
		UserAgent: "controlplane",
		QPS:       -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   l.pki(caName + ".crt"),
			CertFile: l.pki(adminName + ".crt"),
			KeyFile:  l.pki(adminName + ".key"),
		},
	})
}
