#include "node/slurm_labels.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.h"
#include "node/labels.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

constexpr std::size_t kMaxLabel = 63;
constexpr std::string_view kEscapedBegin = "x_";
constexpr std::string_view kEscapedEnd = "_x";

std::string escaped(char c) {
  if (all_alnum({&c, 1}, ".-")) {
    return {c};
  }
  return c == '_' ? "__" : fmt::format("_{:02X}", static_cast<unsigned char>(c));
}

struct GpuTypes {
  std::map<std::string, std::int64_t> counts;
  bool all_typed = true;
};

GpuTypes gpu_types(const SlurmNodeRecord& record) {
  GpuTypes types;
  for (const Gres& gres : record.gres) {
    if (gres.name != "gpu" || gres.count <= 0) {
      continue;
    }
    if (gres.type.empty() || gres.type == "(null)") {
      types.all_typed = false;
    } else {
      types.counts[gres.type] += gres.count;
    }
  }
  return types;
}

using Labels = std::map<std::string, std::string>;

void add_value(Labels& labels, const char* key, const std::string& name) {
  if (!name.empty()) {
    labels[key] = label_name(name);
  }
}

void add_names(Labels& labels, const std::string& prefix, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.empty()) {
      labels[prefix + label_name(name)] = "true";
    }
  }
}

void add_gpu_labels(Labels& labels, const SlurmNodeRecord& record) {
  const GpuTypes types = gpu_types(record);
  for (const auto& [type, count] : types.counts) {
    labels[vocabulary::kGpuTypePrefix + label_name(type)] = std::to_string(count);
  }
  if (types.counts.size() == 1 && types.all_typed) {
    add_value(labels, vocabulary::kGpuType, types.counts.begin()->first);
  }
}

}  // namespace

std::string label_name(std::string_view name) {
  if (!label_value_problem(name) && !name.starts_with(kEscapedBegin)) {
    return std::string{name};
  }
  const std::string hash_end = fmt::format("_h{:016x}x", stable_hash(name));
  const std::size_t room = kMaxLabel - kEscapedBegin.size() - hash_end.size();
  std::string all;
  std::string beginning;  // as much as fits beside the hash; never half an escape
  bool is_cut = false;
  for (const char c : name) {
    const std::string next = escaped(c);
    all += next;
    is_cut = is_cut || beginning.size() + next.size() > room;
    if (!is_cut) {
      beginning += next;
    }
  }
  const bool fits = kEscapedBegin.size() + all.size() + kEscapedEnd.size() <= kMaxLabel;
  return std::string{kEscapedBegin} +
         (fits ? all + std::string{kEscapedEnd} : beginning + hash_end);
}

std::string slurm_cluster(const HostFacts& facts) {
  if (!facts.slurm_conf.cluster_name.empty()) {
    return facts.slurm_conf.cluster_name;
  }
  return facts.slurm.record ? facts.slurm.record->cluster : "";
}

std::map<std::string, std::string> slurm_labels(const HostFacts& facts, const NodePolicy& policy) {
  Labels labels;
  const auto wants = [&](const char* kind) { return policy.slurm_labels.contains(kind); };
  if (wants("cluster")) {
    add_value(labels, vocabulary::kSlurmCluster, slurm_cluster(facts));
  }
  if (wants("version")) {
    add_value(labels, vocabulary::kSlurmVersion, slurm_version(facts));
  }
  if (!facts.slurm.record) {
    return labels;
  }
  const SlurmNodeRecord& record = *facts.slurm.record;
  if (wants("partitions") && record.partitions_known) {
    add_names(labels, vocabulary::kPartitionPrefix, record.partitions);
  }
  if (wants("features")) {
    add_names(labels, vocabulary::kFeaturePrefix, record.active_features);
  }
  if (wants("gpu")) {
    add_gpu_labels(labels, record);
  }
  return labels;
}

std::set<std::string> unknown_label_prefixes(const HostFacts& facts, const NodePolicy& policy) {
  std::set<std::string> untold;
  const auto add = [&](const char* kind, std::initializer_list<const char*> prefixes) {
    if (policy.slurm_labels.contains(kind)) {
      untold.insert(prefixes.begin(), prefixes.end());
    }
  };
  if (!facts.slurm.record) {
    add("cluster", {vocabulary::kSlurmCluster});
    add("version", {vocabulary::kSlurmVersion});
    add("features", {vocabulary::kFeaturePrefix});
    add("gpu", {vocabulary::kGpuTypePrefix, vocabulary::kGpuType});
  }
  if (!facts.slurm.record || !facts.slurm.record->partitions_known) {
    add("partitions", {vocabulary::kPartitionPrefix});
  }
  return untold;
}

std::string slurm_version(const HostFacts& facts) {
  if (!facts.slurmd.version.empty()) {
    return facts.slurmd.version;
  }
  return facts.slurm.record ? facts.slurm.record->version : "";
}

}  // namespace slurmlet::node
