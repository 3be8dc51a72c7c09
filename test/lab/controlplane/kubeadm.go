package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes/cmd/kubeadm/app/phases/upgrade"

	"slurmlet.io/test/lab/controlplane/internal/cluster"
)

func kubeadmVersionsCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "kubeadm-versions --dir DIR",
		Short: "Judge the versions of the Nodes as kubeadm upgrade apply does",
		Long: `Runs the check of versions with which kubeadm upgrade apply to this very release
begins: that of the kubelets among them. Fails where kubeadm would stop unless it
is forced.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := cluster.NewDir(dir)
			if err != nil {
				return err
			}
			client, err := adminClient(l)
			if err != nil {
				return err
			}
			getter := upgrade.NewKubeVersionGetter(client)
			text, _, err := getter.KubeadmVersion()
			if err != nil {
				return err
			}
			wanted, err := version.ParseSemantic(text)
			if err != nil {
				return err
			}
			found := upgrade.EnforceVersionPolicies(getter, text, wanted, false, false)
			if found == nil {
				return nil
			}
			return errors.Join(append(found.Mandatory, found.Skippable...)...)
		},
	}
	c.SetOut(os.Stdout)
	c.Flags().StringVar(&dir, "dir", "", "the cluster's folder")
	_ = c.MarkFlagRequired("dir")
	return c
}
