package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	_ "time/tzdata" // time zones for CronJobs

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// assetsVariable names a folder with prebuilt programs to use instead of the
// contained ones.
const assetsVariable = "KUBEBUILDER_ASSETS"

// isComponent says whether name is a program contained in this binary.
func isComponent(name string) bool {
	switch name {
	case etcdName, apiserverName, controllerManagerName, schedulerName, kubectlName:
		return true
	}
	return false
}

// dispatch runs a program asked for on the command line and does not return.
// Only kubectl is looked for among the assets here: the supervisor decides
// about the others itself, and starts the contained ones through this same path.
func dispatch(name string, args []string) {
	if assets := os.Getenv(assetsVariable); name == kubectlName && assets != "" {
		path := filepath.Join(assets, name)
		if !isSelf(path) {
			err := syscall.Exec(path, append([]string{path}, args...), os.Environ())
			fmt.Fprintf(os.Stderr, "controlplane: %s: %v\n", path, err)
			os.Exit(1)
		}
	}
	runContained(name, args)
}

// isSelf says whether path is this very binary, perhaps through a link.
func isSelf(path string) bool {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(self, other)
}

// runContained runs a contained program as if it had been started under its
// own name, and does not return.
func runContained(name string, args []string) {
	os.Args = append([]string{name}, args...)
	switch name {
	case etcdName:
		etcdmain.Main(os.Args)
	case apiserverName:
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case controllerManagerName:
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case schedulerName:
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case kubectlName:
		// kubectl logs while it builds its command, before flags are parsed.
		_, _ = logs.GlogSetter(kubectlcmd.GetLogVerbosity(os.Args))
		if err := cli.RunNoErrOutput(kubectlcmd.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	}
	os.Exit(0)
}

// program gives the command line that starts a component.
func program(name string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	contained := []string{self, name}
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		return contained, nil
	}
	path := filepath.Join(assets, name)
	_, err = os.Stat(path)
	optional := name == controllerManagerName || name == schedulerName
	if errors.Is(err, os.ErrNotExist) && optional {
		return contained, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", assetsVariable, err)
	}
	return []string{path}, nil
}
