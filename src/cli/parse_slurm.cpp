#include "cli/parse_slurm.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/unique_fd.h"
#include "cli/secrets.h"
#include "node/conditions.h"
#include "node/resources.h"
#include "node/slurm_labels.h"
#include "node/slurm_view.h"
#include "slurm/answers/capture.h"

namespace slurmlet::cli {
namespace {

using Document = nlohmann::ordered_json;
using Liveness = node::SlurmdFacts::Liveness;

// Twice the dump of a site with 65,000 nodes.
constexpr std::size_t kMaxCaptureBytes = std::size_t{512} << 20;
constexpr std::int64_t kMiB = 1024 * 1024;

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

// The facts that the whole capture tells: who answered, failure, slurmd. What it does not tell is
// left out.
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

// The daemon's facts as this answer alone makes them. The machine is taken to be what Slurm says.
node::HostFacts facts_of(const slurm::Capture& capture, const node::SlurmNodeRecord* record) {
  node::HostFacts facts;
  facts.slurm_conf.cluster_name = capture.cluster;
  facts.slurmd.detail = "the captured answer does not report whether slurmd is running";
  if (capture.slurmd) {
    facts.slurmd.liveness = Liveness::kRunning;
    facts.slurmd.version = capture.slurmd->version;
  }
  if (capture.failure) {
    facts.slurm.failure = capture.failure->cause;
    facts.slurm.failure_detail = capture.failure->detail;
  }
  if (record != nullptr) {
    // Where slurmd runs not, Slurm says so in the state, and the rules follow it.
    facts.slurmd.liveness = Liveness::kRunning;
    facts.slurmd.version = record->version;
    facts.slurm.record = *record;
    facts.machine.cpus = record->cpus;
    // 1 where slurm.conf does not tell: no amount of memory.
    if (record->real_memory_mib.value_or(1) > 1 &&
        *record->real_memory_mib < std::numeric_limits<std::int64_t>::max() / kMiB) {
      facts.machine.memory_bytes = *record->real_memory_mib * kMiB;
    }
    if (facts.slurm_conf.cluster_name.empty()) {
      facts.slurm_conf.cluster_name = record->cluster;
    }
  }
  return facts;
}

std::vector<node::Condition> conditions_of(const slurm::Capture& capture,
                                           const node::HostFacts& facts) {
  std::vector<node::Condition> out;
  if (capture.slurmd) {
    out.push_back(node::slurmd_condition(facts));
  }
  const auto& record = facts.slurm.record;
  // `sinfo -R` tells the reason of a state and not the state: nothing follows from it.
  if (record ? !record->state.base.empty() : facts.slurm.failure.has_value()) {
    const auto states = node::slurm_state_conditions(facts);
    out.insert(out.end(), states.begin(), states.end());
  }
  if (!out.empty()) {
    node::NodePolicy policy;
    policy.ready_follows = node::ReadyFollows::kSlurm;
    out.push_back(node::ready_condition(facts, policy, {}));
  }
  for (auto& condition : out) {
    condition.message = plain_text(condition.message);
  }
  return out;
}

void add_resources(const node::HostFacts& facts, Document& document) {
  document["capacity"] = Document::object();
  document["allocatable"] = Document::object();
  if (facts.slurm.record) {
    const node::Resources resources = node::resources(facts, {});
    if (resources.capacity.size() > 1) {  // more than that no pods run
      document["capacity"] = resources.capacity;
      document["allocatable"] = resources.allocatable;
    }
  }
}

Document empty_document(const slurm::Capture& capture) {
  Document document;
  document["source"] = capture.source;
  document["facts"] = Document::object();
  document["conditions"] = Document::array();
  document["capacity"] = Document::object();
  document["allocatable"] = Document::object();
  document["labels"] = Document::object();
  document["notUnderstood"] = Document::array();
  return document;
}

Document document_of(const slurm::Capture& capture, const node::SlurmNodeRecord* record) {
  Document document = empty_document(capture);
  if (record != nullptr) {
    add_record_facts(*record, document["facts"]);
  }
  add_capture_facts(capture, document["facts"]);
  const node::HostFacts facts = facts_of(capture, record);
  document["conditions"] = conditions_json(conditions_of(capture, facts));
  add_resources(facts, document);
  if (record != nullptr) {
    document["labels"] = node::slurm_labels(facts, {});
  }
  return document;
}

Document document_of_all(const slurm::Capture& capture) {
  Document document = empty_document(capture);
  Document names = Document::array();
  Document nodes = Document::array();
  for (const auto& record : capture.nodes) {
    names.push_back(record.name);
    nodes.push_back(document_of(capture, &record));
  }
  document["facts"]["nodes"] = std::move(names);
  document["nodes"] = std::move(nodes);
  return document;
}

// Leaves `name` alone in the capture; when it is not there, that is the failure. An answer that
// names no node (`sinfo -o %T`) is about whom the person says.
void keep_only(const std::string& name, slurm::Capture& capture) {
  if (capture.nodes.empty()) {
    return;
  }
  std::vector<node::SlurmNodeRecord> kept;
  for (auto& record : capture.nodes) {
    if (record.name == name || (record.name.empty() && capture.nodes.size() == 1)) {
      kept.push_back(std::move(record));
    }
  }
  if (kept.empty()) {
    const bool one = capture.nodes.size() == 1;
    capture.failure = {
        one ? node::SlurmFailure::kGarbage : node::SlurmFailure::kNotInSlurm,
        one ? fmt::format("the captured answer is about {}, not {}", capture.nodes[0].name, name)
            : fmt::format("none of the {} nodes captured is {}", capture.nodes.size(), name)};
  }
  capture.nodes = std::move(kept);
}

// slurmctld has no part in why `scontrol show slurmd` got nothing. It may have asked at a port that
// is not slurmd's, so nothing is said of whether slurmd runs.
Document document_of_silence(const slurm::Capture& capture) {
  Document document = empty_document(capture);
  document["facts"]["failure"] = {{"cause", "SlurmdNotAnswering"},
                                  {"detail", capture.slurmd_failure}};
  node::HostFacts facts;
  facts.slurmd.detail = "slurmd did not answer scontrol show slurmd: " + capture.slurmd_failure;
  document["conditions"] = conditions_json({node::slurmd_condition(facts)});
  return document;
}

}  // namespace

ParsedSlurm parse_slurm(std::string_view text, const std::string& node) {
  slurm::Capture capture = slurm::parse_capture(text);
  const bool asked_for = !node.empty() && !capture.nodes.empty();
  if (asked_for) {
    keep_only(node, capture);
  }
  Document document =
      capture.nodes.size() > 1 ? document_of_all(capture)
      : !capture.slurmd_failure.empty()
          ? document_of_silence(capture)
          : document_of(capture, capture.nodes.empty() ? nullptr : &capture.nodes.front());
  document["notUnderstood"] = capture.not_understood;
  remove_secrets(document);
  ParsedSlurm out;
  out.json = document.dump(2, ' ', false, Document::error_handler_t::replace) + "\n";
  // A list of nodes without its "meta" does not tell who wrote it.
  const bool known = capture.source != "unknown" || !capture.nodes.empty();
  out.recognised = known && !(asked_for && capture.nodes.empty());
  return out;
}

Result<std::string> read_capture(const std::string& file) {
  if (file.empty() || file == "-") {
    return read_to_end(STDIN_FILENO, "stdin", kMaxCaptureBytes);
  }
  const UniqueFd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (fd.get() < 0) {
    return Error{Code::kInvalid,
                 fmt::format("{} cannot be read: {}; give the file with Slurm's answer, or \"-\" "
                             "and the answer on stdin",
                             file, std::strerror(errno))};
  }
  return read_to_end(fd.get(), file, kMaxCaptureBytes);
}

}  // namespace slurmlet::cli
