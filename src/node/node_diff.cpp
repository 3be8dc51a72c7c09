#include "node/node_diff.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "node/gpu_health.h"
#include "node/labels.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

using StringMap = std::map<std::string, std::string>;
using PatchMap = std::map<std::string, std::optional<std::string>>;

constexpr std::size_t kMaxShownName = 100;

bool has_prefix_of(const std::set<std::string>& prefixes, const std::string& key) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return key.starts_with(prefix); });
}

// Changed and missing keys of `desired`; owned keys that only `observed` has are removed, unless
// they are to be kept.
PatchMap map_diff(const StringMap& observed, const StringMap& desired,
                  const std::set<std::string>& owned_prefixes,
                  const std::set<std::string>& kept_prefixes = {}) {
  PatchMap out;
  for (const auto& [key, value] : desired) {
    const auto found = observed.find(key);
    if (found == observed.end() || found->second != value) {
      out[key] = value;
    }
  }
  for (const auto& [key, value] : observed) {
    if (!desired.contains(key) && has_prefix_of(owned_prefixes, key) &&
        !has_prefix_of(kept_prefixes, key)) {
      out[key] = std::nullopt;
    }
  }
  return out;
}

// The elements of an annotation that is a list of ours.
std::set<std::string> list_at(const StringMap& annotations, const char* key) {
  std::set<std::string> out;
  if (const auto found = annotations.find(key); found != annotations.end()) {
    for (const auto name : split(found->second, ',')) {
      if (!trim(name).empty()) {
        out.emplace(trim(name));
      }
    }
  }
  return out;
}

// Labels that were in node.labels and have left it. Not what a node may not touch: that would have
// the whole patch rejected.
void remove_left_labels(const ObservedNode& observed, const DesiredNode& desired,
                        PatchMap& labels) {
  for (const auto& key : list_at(observed.annotations, vocabulary::kConfiguredLabels)) {
    if (observed.labels.contains(key) && !desired.labels.contains(key) &&
        key != vocabulary::kLabelMetal3Uuid && !node_restriction_problem(key)) {
      labels[key] = std::nullopt;
    }
  }
}

// A GPU resource that we published and that is gone becomes "0", as the kubelet does with devices;
// its name stays on our list so that the zero stays ours.
DesiredNode with_gone_gpus(const ObservedNode& observed, DesiredNode desired) {
  std::set<std::string> gpus = list_at(observed.annotations, vocabulary::kGpuResources);
  std::erase_if(gpus, [&](const auto& name) { return !observed.capacity.contains(name); });
  if (!desired.slurm_facts_known || gpus.empty()) {
    return desired;
  }
  for (const auto& name : gpus) {
    desired.capacity.try_emplace(name, "0");
    desired.allocatable.try_emplace(name, "0");
  }
  gpus.merge(list_at(desired.annotations, vocabulary::kGpuResources));
  desired.annotations[vocabulary::kGpuResources] =
      join(std::vector<std::string>(gpus.begin(), gpus.end()), ",");
  return desired;
}

// Until slurmctld has reported what this node has, what it reported to an earlier run holds: a
// restart of slurmlet must not publish a guess for two seconds. Not if the hardware has changed.
DesiredNode with_earlier_answers(const ObservedNode& observed, DesiredNode desired) {
  if (desired.slurm_facts_known) {
    return desired;
  }
  for (const char* name : {"cpu", "memory"}) {
    const auto had = observed.capacity.find(name);
    const auto has = desired.capacity.find(name);
    const auto usable = observed.allocatable.find(name);
    if (had != observed.capacity.end() && has != desired.capacity.end() &&
        had->second == has->second && usable != observed.allocatable.end()) {
      desired.allocatable[name] = usable->second;
    }
  }
  const std::string& runtime = observed.node_info.container_runtime_version;
  if (desired.node_info.container_runtime_version == vocabulary::kUnknownRuntime &&
      runtime.starts_with(vocabulary::kRuntimePrefix)) {
    desired.node_info.container_runtime_version = runtime;
  }
  return desired;
}

const ObservedCondition* observed_condition(const ObservedNode& observed, const std::string& type) {
  for (const auto& condition : observed.conditions) {
    if (condition.condition.type == type) {
      return &condition;
    }
  }
  return nullptr;
}

// Whether the Node's own condition says more than a provisional one. Nobody's Unknown does, such as
// that of the node controller after a long pause.
bool is_kept(const ObservedCondition& old, const Condition& condition, const DesiredNode& desired) {
  if (desired.provisional_messages.contains(condition.type)) {
    return old.condition.status == condition.status;
  }
  return desired.provisional_conditions.contains(condition.type) &&
         (old.condition.status != "Unknown" || condition.status == "Unknown");
}

// The API server accepts several of one type; which one counts is up to the reader.
bool is_doubled(const ObservedNode& observed, const std::string& type) {
  return std::ranges::count_if(observed.conditions, [&type](const ObservedCondition& one) {
           return one.condition.type == type;
         }) > 1;
}

void remove_stale_conditions(const ObservedNode& observed, const DesiredNode& desired,
                             NodePatch& patch) {
  for (const auto& old : observed.conditions) {
    const std::string& type = old.condition.type;
    const bool is_ours = type.starts_with(vocabulary::kSlurmNodeState) ||
                         (desired.slurm_facts_known && is_gpu_condition_of_ours(old.condition));
    if (is_ours && find_condition(desired.conditions, type) == nullptr) {
      patch.removed_conditions.insert(type);
    }
  }
}

void diff_conditions(const ObservedNode& observed, const DesiredNode& desired,
                     const std::string& now, NodePatch& patch) {
  for (const Condition& condition : desired.conditions) {
    const ObservedCondition* old = observed_condition(observed, condition.type);
    if (old != nullptr && is_kept(*old, condition, desired)) {
      continue;
    }
    const bool doubled = is_doubled(observed, condition.type);
    if (doubled) {
      patch.removed_conditions.insert(condition.type);  // all of it; one is written anew
    }
    const bool same_status = old != nullptr && old->condition.status == condition.status &&
                             !old->last_transition_time.empty();
    const bool differs = old == nullptr || doubled || old->condition != condition;
    patch.conditions.push_back(
        {condition, now, same_status ? old->last_transition_time : now, differs});
    patch.has_changes |= differs;
  }
  if (desired.provisional_conditions.empty()) {  // else further states stay as they were
    remove_stale_conditions(observed, desired, patch);
  }
}

}  // namespace

std::string record_of(const ObservedNode& node) {
  const auto found = node.annotations.find(vocabulary::kRecord);
  return found == node.annotations.end() ? "" : found->second;
}

NodePatch node_diff(const ObservedNode& observed, const DesiredNode& wanted, WallTime now) {
  const DesiredNode desired = with_earlier_answers(observed, with_gone_gpus(observed, wanted));
  // Keys of ours though `desired` does not name them now: one that the Node has and `desired` lacks
  // is removed (labels: unless it is unknown).
  static const std::set<std::string> kOwnLabels = {
      vocabulary::kDomainPrefix, vocabulary::kPartitionPrefix, vocabulary::kFeaturePrefix,
      vocabulary::kGpuTypePrefix};
  static const std::set<std::string> kOwnAnnotations = {vocabulary::kDomainPrefix};
  // Of these, those that are not the daemon's.
  static const std::set<std::string> kOfOperator = {vocabulary::kRecord, vocabulary::kDetach,
                                                    vocabulary::kDrainPolicy};
  const std::set<std::string> none;
  const bool remove_stale = desired.slurm_facts_known;
  NodePatch patch;
  patch.uid = observed.uid;
  patch.labels =
      map_diff(observed.labels, desired.labels, kOwnLabels, desired.unknown_label_prefixes);
  remove_left_labels(observed, desired, patch.labels);
  patch.annotations = map_diff(observed.annotations, desired.annotations,
                               remove_stale ? kOwnAnnotations : none, kOfOperator);
  patch.capacity = map_diff(observed.capacity, desired.capacity, none);
  patch.allocatable = map_diff(observed.allocatable, desired.allocatable, none);
  if (observed.addresses != desired.addresses) {
    patch.addresses = desired.addresses;
  }
  if (observed.node_info != desired.node_info) {
    patch.node_info = desired.node_info;
  }
  if (observed.kubelet_port != desired.kubelet_port) {
    patch.kubelet_port = desired.kubelet_port;
  }
  // An API server before 1.33 drops swap: it must not count as a change that was not kept.
  NodeInfo but_for_swap = desired.node_info;
  but_for_swap.swap_bytes = observed.node_info.swap_bytes;
  diff_conditions(observed, desired, rfc3339(now), patch);
  patch.has_changes |= !patch.labels.empty() || !patch.annotations.empty() ||
                       !patch.capacity.empty() || !patch.allocatable.empty() || patch.addresses ||
                       observed.node_info != but_for_swap || patch.kubelet_port ||
                       !patch.removed_conditions.empty();
  return patch;
}

NodePatch changes_of(NodePatch patch) {
  std::erase_if(patch.conditions, [](const PatchedCondition& item) { return !item.differs; });
  for (auto& condition : patch.conditions) {
    condition.last_heartbeat_time.clear();
    condition.last_transition_time.clear();
  }
  return patch;
}

namespace {

// "" = all are in `others`.
std::string first_beyond(const PatchMap& map, const PatchMap& others) {
  const auto found =
      std::ranges::find_if(map, [&](const auto& entry) { return !others.contains(entry.first); });
  return found == map.end() ? "" : found->first;
}

}  // namespace

std::string example_of(const NodePatch& patch, const NodePatch& but) {
  for (const auto& [what, map] : {std::pair{"the label ", &NodePatch::labels},
                                  {"the annotation ", &NodePatch::annotations},
                                  {"capacity ", &NodePatch::capacity},
                                  {"allocatable ", &NodePatch::allocatable}}) {
    if (const std::string key = first_beyond(patch.*map, but.*map); !key.empty()) {
      return what + plain_text(key, kMaxShownName);
    }
  }
  if (patch.addresses && !but.addresses) {
    return "the addresses";
  }
  for (const PatchedCondition& item : patch.conditions) {
    const auto is_same = [&item](const PatchedCondition& other) {
      return other.differs && other.condition.type == item.condition.type;
    };
    if (item.differs && std::none_of(but.conditions.begin(), but.conditions.end(), is_same)) {
      return "the condition " + item.condition.type;
    }
  }
  for (const std::string& type : patch.removed_conditions) {
    if (!but.removed_conditions.contains(type)) {
      return "the condition " + plain_text(type, kMaxShownName);  // free text to the API server
    }
  }
  if (patch.kubelet_port && !but.kubelet_port) {
    return "status.daemonEndpoints";
  }
  return patch.node_info && !but.node_info ? "status.nodeInfo" : "";
}

}  // namespace slurmlet::node
