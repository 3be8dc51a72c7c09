#include "node/desired_node.h"

#include <algorithm>
#include <cstdint>

#include "base/plain_text.h"
#include "base/text.h"
#include "node/gpu_cards.h"
#include "node/gpu_health.h"
#include "node/labels.h"
#include "node/resources.h"
#include "node/slurm_labels.h"
#include "node/slurm_view.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

// Sets a label only when its value is one; what cannot be a label value is in an annotation.
void set_label(DesiredNode& node, const std::string& key, const std::string& value) {
  if (!value.empty() && !label_value_problem(value)) {
    node.labels[key] = value;
  }
}

std::string metal3_uuid(const HostFacts& facts, const NodePolicy& policy) {
  if (!policy.metal3_uuid.empty()) {
    return policy.metal3_uuid;
  }
  return facts.metal3 ? facts.metal3->uuid : "";
}

void add_labels(DesiredNode& node, const HostFacts& facts, const NodePolicy& policy,
                const std::string& version) {
  node.labels = policy.labels;
  set_label(node, vocabulary::kLabelHostname, policy.node_name);
  set_label(node, vocabulary::kLabelOs, "linux");
  set_label(node, vocabulary::kLabelArch, facts.machine.architecture);
  set_label(node, vocabulary::kLabelType, vocabulary::kLabelTypeValue);
  set_label(node, vocabulary::kLabelExcludeBalancers, "true");
  if (policy.exclude_from_disruption) {
    set_label(node, vocabulary::kLabelExcludeDisruption, "true");
  }
  set_label(node, vocabulary::kLabelMetal3Uuid, metal3_uuid(facts, policy));
  set_label(node, vocabulary::kVersion, version);
  node.labels.merge(slurm_labels(facts, policy));
  node.unknown_label_prefixes = unknown_label_prefixes(facts, policy);
}

std::string configured_labels(const NodePolicy& policy) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : policy.labels) {
    keys.push_back(key);
  }
  return join(keys, ",");
}

std::string gres_text(const std::vector<Gres>& gres) {
  std::vector<std::string> parts;
  for (const Gres& g : gres) {
    parts.push_back(g.name + (g.type.empty() ? "" : ":" + g.type) + ":" + std::to_string(g.count));
  }
  return join(parts, ",");
}

// Cards in use; nothing where Slurm counts slices without saying so.
std::optional<std::int64_t> allocated_gpus(const SlurmNodeRecord& record, const HostFacts& facts) {
  for (const auto& [vendor, gpus] : gpus_by_vendor(record.gres, facts)) {
    if (counts_slices_as_gpus(gpus, cards_of(facts.machine, vendor))) {
      return std::nullopt;
    }
  }
  const auto is_gpu = [](const Gres& gres) { return gres.name == "gpu" && !is_mig_slice(gres); };
  if (std::none_of(record.gres.begin(), record.gres.end(), is_gpu) ||
      std::none_of(record.gres_used.begin(), record.gres_used.end(), is_gpu)) {
    return std::nullopt;
  }
  std::int64_t count = 0;
  for (const Gres& gres : record.gres_used) {
    count += is_gpu(gres) ? gres.count : 0;
  }
  return count;
}

void add_allocation(DesiredNode& node, const HostFacts& facts) {
  if (facts.slurm.record) {
    if (const auto gpus = allocated_gpus(*facts.slurm.record, facts)) {
      node.annotations[vocabulary::kSlurmAllocatedGpus] = std::to_string(*gpus);
    }
  }
  const auto [cpus, memory_bytes] = allocation(facts);
  if (cpus) {
    node.annotations[vocabulary::kSlurmAllocatedCpus] = std::to_string(*cpus);
  }
  if (memory_bytes) {
    node.annotations[vocabulary::kSlurmAllocatedMemory] = binary_quantity(*memory_bytes);
  }
}

void add_annotations(DesiredNode& node, const HostFacts& facts, const NodePolicy& policy,
                     const std::string& version) {
  if (policy.exclude_from_disruption) {
    node.annotations[vocabulary::kScaleDownDisabled] = "true";
  }
  node.annotations[vocabulary::kVersion] = version;
  node.annotations[vocabulary::kSlurmVersion] = slurm_version(facts);
  node.annotations[vocabulary::kSystemUuid] = facts.machine.system_uuid;
  node.annotations[vocabulary::kConfiguredLabels] = configured_labels(policy);
  node.annotations[vocabulary::kSlurmCluster] = to_lower(slurm_cluster(facts));
  node.annotations[vocabulary::kSlurmNode] =
      facts.slurm.record ? facts.slurm.record->name : facts.slurm_node;
  if (facts.slurm.record) {
    const SlurmNodeRecord& record = *facts.slurm.record;
    node.annotations[vocabulary::kSlurmState] = record.state.raw();
    node.annotations[vocabulary::kSlurmReason] = record.reason;
    node.annotations[vocabulary::kSlurmPartitions] = join(record.partitions, ",");
    node.annotations[vocabulary::kSlurmFeatures] = join(record.features, ",");
    node.annotations[vocabulary::kSlurmGres] = gres_text(record.gres);
    node.annotations[vocabulary::kSlurmGresUsed] = gres_text(record.gres_used);
    node.annotations[vocabulary::kSlurmReservation] = record.reservation;
    node.annotations[vocabulary::kSlurmNextState] = next_state(record);
    node.annotations[vocabulary::kSlurmComment] = record.comment;
  }
  if (facts.jobs) {
    node.annotations[vocabulary::kSlurmJobs] = std::to_string(facts.jobs->jobs);
  }
  add_allocation(node, facts);
}

// Two InternalIPs only where they are configured, as with the kubelet: two addresses of one type
// break other writers' merge patches.
void add_addresses(DesiredNode& node, const HostFacts& facts, const NodePolicy& policy) {
  for (const std::string& configured : policy.node_ips) {
    node.addresses.push_back({"InternalIP", configured});
  }
  std::string ip;
  if (facts.metal3) {
    // A static address from the provisioning network counts if the machine really has it.
    for (const auto& candidate : facts.metal3->ip_addresses) {
      const auto& own = facts.machine.ip_addresses;
      if (ip.empty() && std::find(own.begin(), own.end(), candidate) != own.end()) {
        ip = candidate;
      }
    }
  }
  if (ip.empty() && !facts.machine.ip_addresses.empty()) {
    ip = facts.machine.ip_addresses.front();
  }
  if (!ip.empty() && policy.node_ips.empty()) {
    node.addresses.push_back({"InternalIP", ip});
  }
  if (policy.publish_hostname) {
    node.addresses.push_back({"Hostname", policy.node_name});
  }
}

NodeInfo node_info(const HostFacts& facts, const NodePolicy& policy) {
  const MachineFacts& machine = facts.machine;
  NodeInfo info;
  info.machine_id = machine.machine_id;
  info.system_uuid = machine.system_uuid;
  info.boot_id = machine.boot_id;
  info.kernel_version = machine.kernel_version;
  info.os_image = machine.os_image;
  info.architecture = machine.architecture;
  info.operating_system = "linux";
  const std::string version = slurm_version(facts);
  info.container_runtime_version =
      version.empty() ? vocabulary::kUnknownRuntime : vocabulary::kRuntimePrefix + version;
  if (policy.kubelet_version != kAutoVersion && policy.kubelet_version != kNoVersion) {
    info.kubelet_version = policy.kubelet_version;
  }
  if (machine.swap_bytes.value_or(0) > 0) {
    info.swap_bytes = machine.swap_bytes;
  }
  return info;
}

void add_conditions(DesiredNode& node, const HostFacts& facts, const NodePolicy& policy,
                    const ReadyContext& ready_context) {
  node.conditions = machine_conditions(facts.machine);
  node.conditions.push_back(slurmd_condition(facts));
  const bool is_queried = slurm_view(facts).knowledge != Knowledge::kNotAskedYet;
  if (!is_queried) {
    node.provisional_messages.insert(vocabulary::kSlurmdReady);
  }
  for (Condition& condition : slurm_state_conditions(facts, policy)) {
    if (!is_queried) {
      node.provisional_conditions.insert(condition.type);
    }
    node.conditions.push_back(std::move(condition));
  }
  if (auto gpus = gpu_condition(facts)) {
    node.conditions.push_back(*std::move(gpus));
  }
  const Condition& ready =
      node.conditions.emplace_back(ready_condition(facts, policy, ready_context));
  // Slurm's verdict decides and is about to come: what it was when slurmlet last ran holds till
  // then.
  if (!is_queried && policy.ready_follows == ReadyFollows::kSlurm &&
      !facts.slurm_conf.node_name.empty() && ready.status == "True") {
    node.provisional_conditions.insert(vocabulary::kReady);
  }
}

// The texts of Slurm, of Metal3's metadata and of the machine pass here, whatever they went into:
// at most 1 KiB each, so that all annotations together stay below a tenth of what a Node may have.
// The keys of the configured labels are checked text of ours and read back, so none is left out.
void make_plain(DesiredNode& node) {
  static const std::set<std::string> kLists = {
      vocabulary::kSlurmPartitions, vocabulary::kSlurmFeatures, vocabulary::kSlurmGres,
      vocabulary::kSlurmGresUsed, vocabulary::kGpuResources};
  for (auto& [key, value] : node.annotations) {
    if (key != vocabulary::kConfiguredLabels) {
      value = kLists.contains(key) ? plain_list(value) : plain_text(value);
    }
  }
  // What is not known is no annotation.
  std::erase_if(node.annotations, [](const auto& entry) { return entry.second.empty(); });
  for (Condition& condition : node.conditions) {
    condition.message = plain_text(condition.message);
  }
  for (const auto& [name, text] : kNodeInfoFields) {
    node.node_info.*text = plain_text(node.node_info.*text);
  }
}

}  // namespace

DesiredNode desired_node(const HostFacts& facts, const NodePolicy& policy,
                         const ReadyContext& ready_context, const std::string& slurmlet_version) {
  DesiredNode node;
  node.name = policy.node_name;
  node.provider_id = policy.provider_id;
  if (node.provider_id.empty() && facts.metal3) {
    node.provider_id = facts.metal3->provider_id;
  }
  for (const char* effect : {"NoSchedule", "NoExecute"}) {
    node.taints.push_back({vocabulary::kTaintKey, vocabulary::kTaintValue, effect});
  }
  node.taints.insert(node.taints.end(), policy.taints.begin(), policy.taints.end());
  node.unschedulable = policy.unschedulable;
  node.kubelet_port = policy.kubelet_port;
  node.node_info = node_info(facts, policy);
  add_labels(node, facts, policy, slurmlet_version);
  add_annotations(node, facts, policy, slurmlet_version);
  add_addresses(node, facts, policy);
  Resources amounts = resources(facts, policy);
  node.capacity = std::move(amounts.capacity);
  node.allocatable = std::move(amounts.allocatable);
  node.slurm_facts_known = facts.slurm.record.has_value();
  node.annotations[vocabulary::kGpuResources] = join(amounts.gpus, ",");
  add_conditions(node, facts, policy, ready_context);
  make_plain(node);
  return node;
}

std::optional<DesiredNode> DesiredNodeMaker::follow(const HostFacts& facts,
                                                    const ReadyContext& ready_context) {
  if (ready_context_ == ready_context && facts_ == facts) {
    return std::nullopt;
  }
  facts_ = facts;
  ready_context_ = ready_context;
  return desired_node(facts, policy_, ready_context, version_);
}

}  // namespace slurmlet::node
