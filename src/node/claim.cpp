#include "node/claim.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

std::string label_of(const std::map<std::string, std::string>& labels, const char* key) {
  const auto found = labels.find(key);
  return found == labels.end() ? "" : found->second;
}

std::string differs(const std::string& node, const char* what, const std::string& theirs,
                    const std::string& ours) {
  return fmt::format(
      "Node {} belongs to another machine: its {} is {}, this machine's is {}. Give this machine "
      "another node name (--nodename), or delete the Node if that machine is gone "
      "(kubectl delete node {})",
      node, what, theirs, ours, node);
}

}  // namespace

std::optional<std::string> foreign_claim(const ObservedNode& observed, const DesiredNode& desired) {
  std::string their_system = to_lower(observed.node_info.system_uuid);
  if (their_system.empty()) {
    their_system = to_lower(label_of(observed.annotations, vocabulary::kSystemUuid));
  }
  struct Proof {
    const char* what;
    std::string theirs, ours;
    bool is_known() const { return !theirs.empty() && !ours.empty(); }
  };
  const Proof metal3{vocabulary::kLabelMetal3Uuid,
                     to_lower(label_of(observed.labels, vocabulary::kLabelMetal3Uuid)),
                     to_lower(label_of(desired.labels, vocabulary::kLabelMetal3Uuid))};
  const Proof system{"SMBIOS system UUID", their_system, to_lower(desired.node_info.system_uuid)};
  const Proof provider{"spec.providerID", observed.provider_id, desired.provider_id};
  bool proven = false;
  for (const Proof& proof : {metal3.is_known() ? metal3 : system, provider}) {
    if (proof.is_known() && proof.theirs != proof.ours) {
      return differs(observed.name, proof.what, proof.theirs, proof.ours);
    }
    proven = proven || proof.is_known();
  }
  const std::string& runtime = observed.node_info.container_runtime_version;
  if (!proven && !runtime.empty() && !runtime.starts_with(vocabulary::kRuntimePrefix)) {
    return fmt::format(
        "Node {} belongs to a kubelet: its container runtime is {}. Give this machine another node "
        "name (--nodename), or delete the Node if no kubelet runs it any more (kubectl delete node "
        "{})",
        observed.name, runtime, observed.name);
  }
  return std::nullopt;
}

std::vector<Taint> missing_taints(const ObservedNode& observed, const DesiredNode& desired) {
  std::vector<Taint> out;
  for (const Taint& taint : desired.taints) {
    if (taint.key != vocabulary::kTaintKey) {
      continue;  // of node.taints: whoever takes it off may want it so
    }
    const auto same = [&](const Taint& other) {
      return other.key == taint.key && other.effect == taint.effect;
    };
    if (std::none_of(observed.taints.begin(), observed.taints.end(), same)) {
      out.push_back(taint);
    }
  }
  return out;
}

}  // namespace slurmlet::node
