#pragma once

// What the operator configured about the Node: the part of the settings that the pure rules of
// node/ need. config/ fills it; it has been validated there.

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace slurmlet::node {

struct Taint {
  std::string key, value, effect;
  bool operator==(const Taint&) const = default;
};

enum class ReadyFollows {
  kDaemon,  // Ready is True while slurmlet runs
  kSlurmd,  // and slurmd runs (default)
  kSlurm,   // and Slurm does not say DOWN, FAIL, INVALID_REG, NOT_RESPONDING, FUTURE or that it
            // is powered down, going there or on the way back
};

enum class SlurmSource { kAuto, kOperator, kScontrol };  // slurm.source

inline constexpr char kAutoVersion[] = "auto";
inline constexpr char kNoVersion[] = "none";

// What the rules take as it is configured (config::NodeSettings).
struct NodeChoices {
  std::map<std::string, std::string> labels;  // besides our own; validated against NodeRestriction
  std::string metal3_uuid;       // configured or from --provider-config; wins over metadata
  std::string provider_id;       // configured; wins over metadata
  bool publish_hostname = true;  // address of type Hostname
  // kubeadm upgrade wants one of each Node; Cluster API (1.14) one that equals the Machine's, or
  // none.
  std::string kubelet_version = kAutoVersion;  // "auto", "none", "v1.37.2"
  // "gpu" or "gpu:TYPE" → Kubernetes resource name.
  std::map<std::string, std::string> gpu_resources;
  ReadyFollows ready_follows = ReadyFollows::kSlurmd;
  // Label node.kubernetes.io/exclude-disruption, and cluster-autoscaler's annotation.
  bool exclude_from_disruption = true;
  bool unschedulable = false;
};

struct NodePolicy : NodeChoices {
  std::string node_name;
  std::vector<std::string>
      node_ips;               // one, or one of each family; none = chosen from the machine's
  std::vector<Taint> taints;  // besides our own; at creation only
  int kubelet_port = 0;       // 0 = nothing serves; no daemonEndpoints published
  std::set<std::string> slurm_labels = {"cluster", "version", "partitions", "features", "gpu"};
  bool publish_job_ids = false;
};

}  // namespace slurmlet::node
