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
  const std::string their_uuid = to_lower(label_of(observed.labels, vocabulary::kLabelMetal3Uuid));
  const std::string our_uuid = to_lower(label_of(desired.labels, vocabulary::kLabelMetal3Uuid));
  if (!their_uuid.empty() && !our_uuid.empty()) {
    if (their_uuid != our_uuid) {
      return differs(observed.name, vocabulary::kLabelMetal3Uuid, their_uuid, our_uuid);
    }
  } else {
    std::string their_system = to_lower(observed.node_info.system_uuid);
    if (their_system.empty()) {
      their_system = to_lower(label_of(observed.annotations, vocabulary::kSystemUuid));
    }
    const std::string our_system = to_lower(desired.node_info.system_uuid);
    if (!their_system.empty() && !our_system.empty() && their_system != our_system) {
      return differs(observed.name, "SMBIOS system UUID", their_system, our_system);
    }
  }
  if (!observed.provider_id.empty() && !desired.provider_id.empty() &&
      observed.provider_id != desired.provider_id) {
    return differs(observed.name, "spec.providerID", observed.provider_id, desired.provider_id);
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
