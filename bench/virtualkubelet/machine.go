package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describeMachine gives the Node object of this machine.
func describeMachine(name string) (*corev1.Node, error) {
	memory, err := totalMemory()
	if err != nil {
		return nil, err
	}
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return nil, err
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: memory,
		corev1.ResourcePods:   resource.MustParse("0"),
	}
	taint := corev1.Taint{Key: "virtual-kubelet.io/provider", Value: "slurm"}
	noSchedule, noExecute := taint, taint
	noSchedule.Effect = corev1.TaintEffectNoSchedule
	noExecute.Effect = corev1.TaintEffectNoExecute
	now := metav1.Now()
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   runtime.GOOS,
				corev1.LabelArchStable: runtime.GOARCH,
				"type":                 "virtual-kubelet",
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{noSchedule, noExecute}},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources.DeepCopy(),
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS,
				Architecture:    runtime.GOARCH,
				KernelVersion:   unix.ByteSliceToString(system.Release[:]),
				KubeletVersion:  "v1.11.0-virtual-kubelet",
			},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "the node is up"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "enough memory"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "enough disk space"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "enough process ids"),
			},
		},
	}, nil
}

// totalMemory reads the machine's memory from /proc/meminfo.
func totalMemory() (resource.Quantity, error) {
	const path = "/proc/meminfo"
	f, err := os.Open(path)
	if err != nil {
		return resource.Quantity{}, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			return resource.ParseQuantity(fields[1] + "Ki")
		}
	}
	return resource.Quantity{}, fmt.Errorf("%s: no MemTotal", path)
}
