#pragma once

// A compute node as the sources see it on a good day; tests change what they are about.

#include <string>
#include <vector>

#include "base/rfc3339.h"
#include "base/text.h"
#include "node/facts.h"
#include "node/node.h"
#include "node/policy.h"

namespace slurmlet::node {

inline WallTime time_of(const char* text) { return parse_rfc3339(text).value(); }

inline SlurmNodeRecord good_record() {
  SlurmNodeRecord record;
  record.name = "n1";
  record.state = {"IDLE", {}};
  record.cpus = 128;
  record.real_memory_mib = 500000;
  record.version = "22.05.8";
  record.partitions = {"batch", "gpu"};
  record.cluster = "alps";
  return record;
}

inline HostFacts good_facts() {
  HostFacts facts;
  MachineFacts& machine = facts.machine;
  machine.hostname = "n1.cluster.example";
  machine.machine_id = "4f2a";
  machine.system_uuid = "8b2a2f8a-0000-4000-8000-000000000001";
  machine.boot_id = "b007";
  machine.kernel_version = "5.14.0-570.el9";
  machine.os_image = "Rocky Linux 9.6 (Blue Onyx)";
  machine.architecture = "amd64";
  machine.cpus = 128;
  machine.memory_bytes = std::int64_t{528163620} * 1024;
  machine.ephemeral_storage_bytes = std::int64_t{900} << 30;
  machine.ip_addresses = {"192.0.2.101", "198.51.100.7"};
  machine.memory_pressure = Pressure{};
  machine.disk_pressure = Pressure{};
  machine.pid_pressure = Pressure{};
  facts.slurm.record = good_record();
  facts.slurm.answered_at = time_of("2026-11-20T14:02:11Z");
  facts.slurmd = {SlurmdFacts::Liveness::kRunning, 1532, "22.05.8", ""};
  facts.slurm_conf.path = "/etc/slurm/slurm.conf";
  facts.slurm_conf.cluster_name = "alps";
  facts.slurm_conf.controllers = {"head1:6817"};
  facts.slurm_conf.node_name = "n1";
  facts.jobs = LocalJobs{};
  return facts;
}

// "gpu:a100:4,nic:2,gpu:h100:8:0-1": kind, type, number, sockets.
inline std::vector<Gres> gres_of(std::string_view text) {
  std::vector<Gres> out;
  for (const auto item : split(trim(text), ',')) {
    const auto parts = split(item, ':');
    if (parts.size() < 2) {
      continue;
    }
    Gres& gres = out.emplace_back();
    gres.name = parts.front();
    gres.type = parts.size() > 2 ? parts[1] : "";
    gres.count = parse_int<std::int64_t>(parts[parts.size() > 2 ? 2 : 1]).value();
    gres.sockets = parts.size() > 3 ? parts[3] : "";
  }
  return out;
}

// Nothing is known of the jobs here.
inline HostFacts facts_in_state(std::string base, std::set<std::string> flags = {}) {
  HostFacts facts = good_facts();
  facts.slurm.record->state = {std::move(base), std::move(flags)};
  facts.jobs.reset();
  return facts;
}

inline NodePolicy policy_for(const std::string& name) {
  NodePolicy policy;
  policy.node_name = name;
  return policy;
}

// The condition of that type; one with type "" if there is none.
inline Condition condition_of(const std::vector<Condition>& conditions, const std::string& type) {
  for (const auto& condition : conditions) {
    if (condition.type == type) {
      return condition;
    }
  }
  return {};
}

// The Node that the API server holds after `desired` was created at `time`.
inline ObservedNode observed_from(const DesiredNode& desired, const std::string& time) {
  ObservedNode node;
  node.name = desired.name;
  node.uid = "uid-1";
  node.resource_version = "100";
  node.labels = desired.labels;
  node.annotations = desired.annotations;
  node.provider_id = desired.provider_id;
  node.taints = desired.taints;
  node.capacity = desired.capacity;
  node.allocatable = desired.allocatable;
  for (const auto& condition : desired.conditions) {
    node.conditions.push_back({condition, time});
  }
  node.addresses = desired.addresses;
  node.node_info = desired.node_info;
  node.kubelet_port = desired.kubelet_port;
  return node;
}

}  // namespace slurmlet::node
