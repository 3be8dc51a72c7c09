package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
)

const (
	bootstrapGroup  = "system:bootstrappers:kubeadm:default-node-token"
	bootstrapUser   = "tls-bootstrap-token-user"
	tokenCharacters = "0123456789abcdefghijklmnopqrstuvwxyz"
)

func bootstrapKubeconfigCommand() *cobra.Command {
	var t cluster.Target
	c := &cobra.Command{
		Use:   "bootstrap-kubeconfig --dir DIR --out FILE",
		Short: "Write a kubeconfig with a new bootstrap token",
		Long: `Makes a bootstrap token, stores it in the cluster as kubeadm does, and writes a
kubeconfig with it, such as a kubelet takes as --bootstrap-kubeconfig. The API
server must run.`,
		RunE: func(c *cobra.Command, _ []string) error {
			l, k, err := t.Open()
			if err != nil {
				return err
			}
			client, err := adminClient(l)
			if err != nil {
				return err
			}
			if k.Token, err = createToken(c.Context(), client, t.TTL); err != nil {
				return err
			}
			k.User = bootstrapUser
			return k.Save(t.Out)
		},
	}
	t.Flags(c, time.Hour, "token")
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
func adminClient(l cluster.Dir) (kubernetes.Interface, error) {
	p, err := cluster.LoadPorts(l)
	if err != nil {
		return nil, fmt.Errorf("no cluster in %s: %w", l.Root, err)
	}
	return kubernetes.NewForConfig(&rest.Config{
		Host:      p.Server(),
		UserAgent: "controlplane",
		QPS:       -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAFile:   l.PKI(cluster.CAName + ".crt"),
			CertFile: l.PKI(adminName + ".crt"),
			KeyFile:  l.PKI(adminName + ".key"),
		},
	})
}
