#include "cli/capture_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/rfc3339.h"
#include "node/slurm_view.h"

namespace slurmlet::cli {
namespace {

void add(Document& to, const char* key, const std::string& value) {
  if (!value.empty()) {
    to[key] = value;
  }
}

void add(Document& to, const char* key, const std::vector<std::string>& values) {
  if (!values.empty()) {
    to[key] = values;
  }
}

void add(Document& to, const char* key, const std::optional<std::int64_t>& value) {
  if (value) {
    to[key] = *value;
  }
}

void add(Document& to, const char* key, const std::optional<WallTime>& value) {
  if (value) {
    to[key] = rfc3339(*value);
  }
}

// As Slurm keeps it, in hundredths: 0.58 and not 0.57999999999999996.
void add_load(Document& to, const std::optional<double>& load) {
  if (load && std::isfinite(*load)) {
    to["cpuLoad"] = std::round(*load * 100) / 100;
  }
}

void add_gres(Document& to, const char* key, const std::vector<node::Gres>& entries) {
  Document list = Document::array();
  for (const node::Gres& gres : entries) {
    Document entry;
    add(entry, "name", gres.name);
    add(entry, "type", gres.type);
    entry["count"] = gres.count;
    add(entry, "sockets", gres.sockets);
    add(entry, "indices", gres.indices);
    add(entry, "shares", gres.shares);
    if (gres.no_consume) {
      entry["noConsume"] = true;
    }
    list.push_back(std::move(entry));
  }
  if (!list.empty()) {
    to[key] = std::move(list);
  }
}

void add_state(Document& to, const node::SlurmState& state) {
  if (state.base.empty() && state.flags.empty()) {
    return;
  }
  to["state"] = state.raw();
  add(to, "baseState", state.base);
  to["stateFlags"] = state.flags;
}

void add_reason(Document& to, const node::SlurmNodeRecord& record) {
  add(to, "reason", record.reason);
  add(to, "reasonUser", record.reason_user);
  add(to, "reasonTime", record.reason_time);
}

Document failure_json(const slurm::QueryFailure& failure) {
  node::HostFacts facts;
  facts.slurm.failure = failure.cause;
  Document out;
  out["cause"] = node::slurm_view(facts).reason;
  add(out, "detail", failure.detail);
  return out;
}

}  // namespace

void add_capture_facts(const slurm::Capture& capture, Document& facts) {
  if (capture.slurmd) {
    add(facts, "name", capture.slurmd->node_name);
    add(facts, "slurmdVersion", capture.slurmd->version);
  }
  add(facts, "slurmVersion", capture.slurm_version);
  add(facts, "apiVersion", capture.api_version);
  if (!facts.contains("cluster")) {  // sinfo -M: each node has its own
    add(facts, "cluster", capture.cluster);
  }
  if (capture.http_status != 0) {
    facts["httpStatus"] = capture.http_status;
  }
  if (capture.failure) {
    facts["failure"] = failure_json(*capture.failure);
  }
  if (capture.slurmd) {
    facts["slurmd"] = {{"activeSteps", capture.slurmd->active_steps}};
  }
}

void add_record_facts(const node::SlurmNodeRecord& record, Document& facts) {
  add(facts, "name", record.name);
  add(facts, "hostName", record.hostname);
  add_state(facts, record.state);
  add(facts, "cpus", record.cpus);
  add(facts, "effectiveCpus", record.effective_cpus);
  add(facts, "allocatedCpus", record.allocated_cpus);
  add(facts, "realMemoryMiB", record.real_memory_mib);
  add(facts, "allocatedMemoryMiB", record.allocated_memory_mib);
  add(facts, "memSpecLimitMiB", record.mem_spec_limit_mib);
  add(facts, "freeMemoryMiB", record.free_memory_mib);
  add_load(facts, record.cpu_load);
  if (record.allocated_cpus || record.allocated_memory_mib || !record.gres_used.empty()) {
    facts["allocationIsFresh"] = record.kind == node::AnswerKind::kFullDump;
  }
  add_gres(facts, "gres", record.gres);
  add_gres(facts, "gresUsed", record.gres_used);
  add(facts, "gresDrained", record.gres_drained);
  add_reason(facts, record);
  add(facts, "slurmdVersion", record.version);
  if (record.partitions_known) {
    add(facts, "partitions", record.partitions);
  } else {
    facts["partitions"] = nullptr;
  }
  add(facts, "features", record.features);
  add(facts, "activeFeatures", record.active_features);
  add(facts, "cluster", record.cluster);
  add(facts, "nextState", record.next_state);
  add(facts, "reservation", record.reservation);
  add(facts, "comment", record.comment);
  add(facts, "extra", record.extra);
  add(facts, "instanceId", record.instance_id);
  add(facts, "instanceType", record.instance_type);
  add(facts, "operatingSystem", record.operating_system);
  add(facts, "architecture", record.architecture);
  add(facts, "bootTime", record.boot_time);
  add(facts, "slurmdStartTime", record.slurmd_start_time);
  add(facts, "lastBusy", record.last_busy);
  add(facts, "resumeAfter", record.resume_after);
}

Document conditions_json(const std::vector<node::Condition>& conditions) {
  Document out = Document::array();
  for (const node::Condition& condition : conditions) {
    out.push_back({{"type", condition.type},
                   {"status", condition.status},
                   {"reason", condition.reason},
                   {"message", condition.message}});
  }
  return out;
}

}  // namespace slurmlet::cli
