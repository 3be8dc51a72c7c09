#pragma once

// The Kubernetes Node as slurmlet reads and writes it: only the fields it owns or compares. Plain
// values; JSON lives in kube/. Field names follow core/v1 Node
// (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/node-v1/).

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "node/facts.h"
#include "node/policy.h"

namespace slurmlet::node {

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;  // CamelCase
  std::string message;
  bool operator==(const Condition&) const = default;
};

// nullptr where there is none of this type.
const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);

// A condition as the API server holds it.
struct ObservedCondition {
  Condition condition;
  std::string last_transition_time;  // RFC 3339 as read, "" if absent
  bool operator==(const ObservedCondition&) const = default;
};

struct NodeInfo {
  std::string machine_id, system_uuid, boot_id, kernel_version, os_image;
  std::string container_runtime_version, kubelet_version, kube_proxy_version;
  std::string operating_system, architecture;
  std::optional<std::int64_t> swap_bytes;  // nothing without swap, as the kubelet
  // The Node has status.declaredFeatures, of a kubelet that had its name; never ours.
  bool declared_features = false;
  bool operator==(const NodeInfo&) const = default;
};

// The texts of a NodeInfo by the names that they have in the API (core/v1 NodeSystemInfo). All of
// them always: the API marks them required, and "" is how the kubelet says "none".
struct NodeInfoField {
  const char* name;
  std::string NodeInfo::*text;
};
inline constexpr NodeInfoField kNodeInfoFields[] = {
    {"architecture", &NodeInfo::architecture},
    {"bootID", &NodeInfo::boot_id},
    {"containerRuntimeVersion", &NodeInfo::container_runtime_version},
    {"kernelVersion", &NodeInfo::kernel_version},
    {"kubeProxyVersion", &NodeInfo::kube_proxy_version},
    {"kubeletVersion", &NodeInfo::kubelet_version},
    {"machineID", &NodeInfo::machine_id},
    {"operatingSystem", &NodeInfo::operating_system},
    {"osImage", &NodeInfo::os_image},
    {"systemUUID", &NodeInfo::system_uuid},
};

// The Node this daemon wants the API server to hold. Pure output of desired_node().
struct DesiredNode {
  std::string name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string provider_id;    // "" = leave alone
  std::vector<Taint> taints;  // used when the Node is created; a node credential cannot add later
  std::map<std::string, std::string> capacity;  // Kubernetes quantities
  std::map<std::string, std::string> allocatable;
  std::vector<Condition> conditions;  // in the order kubectl describe shows, Ready last
  std::vector<Address> addresses;     // one per type and IP family
  NodeInfo node_info;
  int kubelet_port = 0;        // 0 = no daemonEndpoints
  bool unschedulable = false;  // at creation only; afterwards it belongs to whoever cordons
  // Conditions not known yet: written where the Node lacks them, else the Node's are kept.
  std::set<std::string> provisional_conditions;
  // Conditions whose status is known, but whose words need slurmctld's first answer: the Node's are
  // kept where the status is the same.
  std::set<std::string> provisional_messages;
  // Whether slurmctld has reported what this node has. Until then what an earlier run of slurmlet
  // published about Slurm (GPUs, allocatable, annotations) stays. (Further conditions go
  // with the core ones: they stay while those are provisional.)
  bool slurm_facts_known = false;
  // Beginnings of our label keys that nothing is known of now: the Node's are kept.
  std::set<std::string> unknown_label_prefixes;
  bool operator==(const DesiredNode&) const = default;
};

// The Node as last seen on the API server.
struct ObservedNode {
  std::string name, uid, resource_version;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string provider_id;
  bool unschedulable = false;
  bool deleting = false;  // metadata.deletionTimestamp is set
  std::vector<Taint> taints;
  std::map<std::string, std::string> capacity;
  std::map<std::string, std::string> allocatable;
  std::vector<ObservedCondition> conditions;
  std::vector<Address> addresses;
  NodeInfo node_info;
  int kubelet_port = 0;
  bool operator==(const ObservedNode&) const = default;
};

// What slurmlet-operator wrote about it (vocabulary::kRecord); "" where it wrote nothing.
std::string record_of(const ObservedNode& node);

}  // namespace slurmlet::node
