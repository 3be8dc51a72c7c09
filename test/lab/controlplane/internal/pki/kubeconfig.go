package pki

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Kubeconfig describes a kubeconfig file with one cluster and one user. The
// user has a client certificate, a token, or neither.
type Kubeconfig struct {
	Server  string
	Cluster string // name of the cluster entry; "kubernetes" when empty
	User    string

	CA     []byte // PEM, written into the file
	CAFile string // used instead of CA when set

	Client   *Pair  // written into the file
	CertFile string // used instead of Client when set
	KeyFile  string

	Token string
}

// Encode gives the kubeconfig as YAML.
func (k *Kubeconfig) Encode() []byte {
	cluster := k.Cluster
	if cluster == "" {
		cluster = "kubernetes"
	}
	name := k.User + "@" + cluster
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: %s\n  cluster:\n", quote(cluster))
	fmt.Fprintf(&b, "    server: %s\n", quote(k.Server))
	if k.CAFile != "" {
		fmt.Fprintf(&b, "    certificate-authority: %s\n", quote(k.CAFile))
	} else if len(k.CA) > 0 {
		fmt.Fprintf(&b, "    certificate-authority-data: %s\n", base64.StdEncoding.EncodeToString(k.CA))
	}
	if k.User == "" {
		b.WriteString("contexts: []\ncurrent-context: \"\"\nusers: []\n")
		return []byte(b.String())
	}
	fmt.Fprintf(&b, "contexts:\n- name: %s\n  context:\n    cluster: %s\n    user: %s\n", quote(name), quote(cluster), quote(k.User))
	fmt.Fprintf(&b, "current-context: %s\n", quote(name))
	fmt.Fprintf(&b, "users:\n- name: %s\n  user:", quote(k.User))
	switch {
	case k.CertFile != "":
		fmt.Fprintf(&b, "\n    client-certificate: %s\n    client-key: %s\n", quote(k.CertFile), quote(k.KeyFile))
	case k.Client != nil:
		fmt.Fprintf(&b, "\n    client-certificate-data: %s\n    client-key-data: %s\n",
			base64.StdEncoding.EncodeToString(k.Client.Cert), base64.StdEncoding.EncodeToString(k.Client.Key))
	case k.Token != "":
		fmt.Fprintf(&b, "\n    token: %s\n", quote(k.Token))
	default:
		b.WriteString(" {}\n")
	}
	return []byte(b.String())
}

// Save writes the kubeconfig, readable by its owner only.
func (k *Kubeconfig) Save(path string) error {
	return WriteFile(path, k.Encode(), 0o600)
}

// SaveSplit writes the kubeconfig with the client certificate and key in
// PATH.crt and PATH.key, and refers to caFile for the authority.
func (k Kubeconfig) SaveSplit(path, caFile string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if k.CAFile, err = filepath.Abs(caFile); err != nil {
		return err
	}
	if k.Client != nil {
		if err := k.Client.Save(filepath.Dir(abs), filepath.Base(abs)); err != nil {
			return err
		}
		k.CertFile, k.KeyFile = abs+".crt", abs+".key"
	}
	return k.Save(path)
}

// quote writes s as a YAML double-quoted scalar.
func quote(s string) string {
	return strconv.QuoteToASCII(s)
}
