// Package cluster says where a cluster's files are and how kubeconfig files for it are made.
package cluster

import (
	"path/filepath"
	"strings"
)

// Names that kubeadm uses as well.
const (
	Name       = "kubernetes"
	CAName     = "ca"
	NodesGroup = "system:nodes"
)

// Dir names the files of a cluster's folder.
type Dir struct{ Root string }

func NewDir(root string) (Dir, error) {
	abs, err := filepath.Abs(root)
	return Dir{abs}, err
}

func (d Dir) Path(parts ...string) string {
	return filepath.Join(append([]string{d.Root}, parts...)...)
}
func (d Dir) PKI(parts ...string) string { return d.Path(append([]string{"pki"}, parts...)...) }
func (d Dir) Kubeconfig(name string) string {
	return d.Path(strings.TrimPrefix(name, "kube-") + ".kubeconfig")
}
func (d Dir) Log(name string) string { return d.Path("logs", name+".log") }
func (d Dir) Ports() string          { return d.Path("ports.json") }
