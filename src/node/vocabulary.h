#pragma once

// Every string of the Kubernetes API surface that slurmlet writes, once: labels, annotations,
// taints, condition types and reasons. People alert on these; renaming one is a breaking change.

namespace slurmlet::node::vocabulary {

// Labels of others that we set at creation.
inline constexpr char kLabelHostname[] = "kubernetes.io/hostname";
inline constexpr char kLabelOs[] = "kubernetes.io/os";
inline constexpr char kLabelArch[] = "kubernetes.io/arch";
inline constexpr char kLabelType[] = "type";  // virtual-kubelet's own label
inline constexpr char kLabelTypeValue[] = "virtual-kubelet";
inline constexpr char kLabelMetal3Uuid[] = "metal3.io/uuid";
// Cluster API's annotations.
inline constexpr char kMachine[] = "cluster.x-k8s.io/machine";
inline constexpr char kClusterName[] = "cluster.x-k8s.io/cluster-name";
inline constexpr char kClusterNamespace[] = "cluster.x-k8s.io/cluster-namespace";
inline constexpr char kLabelExcludeBalancers[] =
    "node.kubernetes.io/exclude-from-external-load-balancers";
inline constexpr char kLabelExcludeDisruption[] = "node.kubernetes.io/exclude-disruption";
inline constexpr char kScaleDownDisabled[] =
    "cluster-autoscaler.kubernetes.io/scale-down-disabled";  // annotation

// Who a compute node is for the API server: kNodeUser + its name, in group kNodesGroup.
inline constexpr char kNodeUser[] = "system:node:";
inline constexpr char kNodesGroup[] = "system:nodes";

// Our own domain.
inline constexpr char kDomainPrefix[] = "slurmlet.io/";
inline constexpr char kVersion[] = "slurmlet.io/version";             // label and annotation
inline constexpr char kSlurmVersion[] = "slurmlet.io/slurm-version";  // label and annotation
inline constexpr char kSlurmCluster[] = "slurmlet.io/slurm-cluster";  // label and annotation
inline constexpr char kGpuType[] = "slurmlet.io/gpu-type";            // label
// Domains of labels whose names come from Slurm.
inline constexpr char kPartitionPrefix[] = "partition.slurmlet.io/";
inline constexpr char kFeaturePrefix[] = "feature.slurmlet.io/";
inline constexpr char kGpuTypePrefix[] = "gpu-type.slurmlet.io/";   // value: how many
inline constexpr char kSlurmNode[] = "slurmlet.io/slurm-node";      // annotation
inline constexpr char kSlurmState[] = "slurmlet.io/slurm-state";    // annotation, raw
inline constexpr char kSlurmReason[] = "slurmlet.io/slurm-reason";  // annotation
inline constexpr char kSlurmPartitions[] = "slurmlet.io/slurm-partitions";
inline constexpr char kSlurmFeatures[] = "slurmlet.io/slurm-features";
inline constexpr char kSlurmGres[] = "slurmlet.io/slurm-gres";
inline constexpr char kSlurmGresUsed[] = "slurmlet.io/slurm-gres-used";
inline constexpr char kSlurmJobs[] = "slurmlet.io/slurm-jobs";  // jobs seen on the machine
inline constexpr char kSlurmAllocatedCpus[] = "slurmlet.io/slurm-allocated-cpus";
inline constexpr char kSlurmAllocatedMemory[] = "slurmlet.io/slurm-allocated-memory";
inline constexpr char kSlurmAllocatedGpus[] = "slurmlet.io/slurm-allocated-gpus";
inline constexpr char kSlurmReservation[] = "slurmlet.io/slurm-reservation";
inline constexpr char kSlurmNextState[] = "slurmlet.io/slurm-next-state";  // after a reboot
inline constexpr char kSlurmComment[] = "slurmlet.io/slurm-comment";
// Written by slurmlet-operator, or for it; the daemon lets them be.
inline constexpr char kRecord[] = "slurmlet.io/record";  // the node's part of the last full dump
inline constexpr char kDetach[] = "slurmlet.io/detach";
inline constexpr char kDrain[] = "slurmlet.io/drain";  // drain_rules.h
inline constexpr char kDraining[] = "Draining";        // values of kDetach
inline constexpr char kDetached[] = "Detached";
// Annotations of a Machine (Cluster API), set by people in its template.
inline constexpr char kDrainPolicy[] = "slurmlet.io/drain-policy";
inline constexpr char kSlurmRole[] = "slurmlet.io/slurm-role";  // or a label
inline constexpr char kController[] = "controller";             // its value: slurmctld's host
inline constexpr char kMachineHook[] =
    "pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet";
// Of Cluster API, on a Machine: it is deleted first; and the label with its MachineDeployment.
inline constexpr char kDeleteMachine[] = "cluster.x-k8s.io/delete-machine";
inline constexpr char kDeleteMachineBy[] = "slurmlet";  // our value
inline constexpr char kDeployment[] = "cluster.x-k8s.io/deployment-name";
// Annotations of a MachineDeployment, set by people (scale_policy.h).
inline constexpr char kScaleFor[] = "slurmlet.io/scale-for";
inline constexpr char kScaleFeatures[] = "slurmlet.io/scale-features";
inline constexpr char kIdleAfter[] = "slurmlet.io/idle-after";
inline constexpr char kBootTimeout[] = "slurmlet.io/boot-timeout";
inline constexpr char kMarkIdle[] = "slurmlet.io/mark-idle";
// Cluster API's, with our value on the Machine of a host that Slurm has powered down.
inline constexpr char kSkipRemediation[] = "cluster.x-k8s.io/skip-remediation";
inline constexpr char kSleeping[] = "slurmlet";
inline constexpr char kPowerOff[] = "reboot.metal3.io/slurmlet";  // of a BareMetalHost
// Keys of node.labels that we set, for removing those that have left it.
inline constexpr char kConfiguredLabels[] = "slurmlet.io/configured-labels";
inline constexpr char kGpuResources[] = "slurmlet.io/gpu-resources";  // names we published
inline constexpr char kSystemUuid[] = "slurmlet.io/system-uuid";      // who claims this Node
inline constexpr char kGenericGpu[] = "slurmlet.io/gpu";              // resource of last resort

// Taints; virtual-kubelet's key, so that its users' tolerations and affinities keep working.
inline constexpr char kTaintKey[] = "virtual-kubelet.io/provider";
inline constexpr char kTaintValue[] = "slurm";

// nodeInfo.containerRuntimeVersion: what runs the jobs here.
inline constexpr char kRuntimePrefix[] = "slurm://";
inline constexpr char kUnknownRuntime[] = "slurm://unknown";

// Condition types.
inline constexpr char kReady[] = "Ready";
inline constexpr char kMemoryPressure[] = "MemoryPressure";
inline constexpr char kDiskPressure[] = "DiskPressure";
inline constexpr char kPidPressure[] = "PIDPressure";
inline constexpr char kNetworkUnavailable[] = "NetworkUnavailable";
inline constexpr char kSlurmdReady[] = "SlurmdReady";
inline constexpr char kSlurmNodeState[] = "SlurmNodeState";  // prefix, Slinky's names follow
inline constexpr char kSlurmNodeStateOther[] = "SlurmNodeStateOther";
// Of those that Events follow.
inline constexpr char kSlurmNodeStateDrain[] = "SlurmNodeStateDrain";
inline constexpr char kSlurmNodeStateDown[] = "SlurmNodeStateDown";
inline constexpr char kSlurmNodeStateFail[] = "SlurmNodeStateFail";
inline constexpr char kSlurmNodeStateNotResponding[] = "SlurmNodeStateNotResponding";
inline constexpr char kSlurmNodeStateInvalidReg[] = "SlurmNodeStateInvalidReg";
inline constexpr char kSlurmNodeStateMaintenance[] = "SlurmNodeStateMaintenance";
inline constexpr char kGpuHealthy[] = "GPUHealthy";

// Reasons that Events depend on.
inline constexpr char kDrained[] = "Drained";
inline constexpr char kNotAskedYet[] = "NotQueriedYet";
inline constexpr char kJobStarted[] = "JobStarted";

// A rejected pod's status.reason.
inline constexpr char kPodRejectedReason[] = "SlurmNodeNoPods";

}  // namespace slurmlet::node::vocabulary
