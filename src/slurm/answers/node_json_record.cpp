#include "slurm/answers/node_json_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using Json = nlohmann::json;

// Names of a node's members in all of v0.0.36 … v0.0.45. First those that are samples, or of no
// use here.
constexpr std::string_view kOther =
    "alloc_idle_cpus boards burstbuffer_network_address cert_flags cores cpu_binding cpu_load "
    "energy external_sensors free_mem free_memory gpu_spec idle_cpus mcs_label owner port power "
    "res_cores_per_gpu sockets specialized_cores specialized_cpus suspend_time temporary_disk "
    "threads tls_cert_last_renewal topology tres tres_used tres_weighted weight";

// Those that node_record() reads, but for cpu_load and free_mem.
constexpr std::string_view kPublished =
    "active_features address alloc_cpus alloc_memory architecture boot_time cluster_name comment "
    "cpus effective_cpus extra features gres gres_drained gres_used hostname instance_id "
    "instance_type last_busy name next_state_after_reboot next_state_after_reboot_flags "
    "operating_system partitions real_memory reason reason_changed_at reason_set_by_user "
    "reservation resume_after slurmd_start_time slurmd_version specialized_memory state "
    "state_flags version";

// Words of a list in JSON that no text form has (NODE_STATES of Slurm's data_parser).
constexpr std::string_view kListWords = "INVALID POWER_DOWN_ASAP POWER_DOWN_FORCE REBOOT_CANCELED";

bool is_state_word(const std::string& word) { return is_state(word) || has_word(kListWords, word); }

// The words of a state in upper case, base and flags.
std::vector<std::string> state_words(const Fields& fields, Fields::Names state,
                                     Fields::Names flags) {
  auto reported = fields.words(state);
  const auto more = fields.words(flags);
  reported.insert(reported.end(), more.begin(), more.end());
  std::vector<std::string> words;
  for (const auto& text : reported) {
    for (const auto part : split(text, '+')) {
      words.push_back(to_upper(trim(part)));
      if (!is_state_word(words.back())) {
        fields.note(*state.begin(), words.back());
      }
    }
  }
  return words;
}

// What Slurm says of a node after its reboot: RESUME, or a base state. Without one the base is
// INVALID, or UNKNOWN beside the flags of which RESUME is the one that scontrol shows (the bit of
// UNDRAIN is set with it).
std::string next_state(const Fields& fields) {
  const auto words =
      state_words(fields, {"next_state_after_reboot"}, {"next_state_after_reboot_flags"});
  if (std::find(words.begin(), words.end(), "RESUME") != words.end()) {
    return "RESUME";
  }
  if (words.empty() || words.front() == "INVALID" || words.front() == "UNKNOWN") {
    return "";
  }
  return words.front();
}

// Counts of CPUs have 16 bits in Slurm, the two largest stand for no value.
std::optional<std::int64_t> cpu_count(const Fields& fields, Fields::Names names) {
  const auto count = fields.number(names);
  return count == 0xfffe || count == 0xffff ? std::nullopt : count;
}

void set_figures(const Fields& fields, node::SlurmNodeRecord& record) {
  record.cpus = cpu_count(fields, {"cpus"});
  record.effective_cpus = cpu_count(fields, {"effective_cpus"});
  record.allocated_cpus = cpu_count(fields, {"alloc_cpus"});
  record.real_memory_mib = fields.number({"real_memory"});
  record.allocated_memory_mib = fields.number({"alloc_memory"});
  record.mem_spec_limit_mib = fields.number({"specialized_memory"});
  record.free_memory_mib = fields.number({"free_mem", "free_memory"});
  record.cpu_load = Fields::load(fields.number({"cpu_load"}), record.free_memory_mib);
}

// User and time only mean something beside a reason: newer releases say "root" without one.
void set_reason(const Fields& fields, node::SlurmNodeRecord& record) {
  record.reason = fields.text({"reason"});
  if (!record.reason.empty()) {
    record.reason_user = user_name(fields.text({"reason_set_by_user"}));
    record.reason_time = fields.time({"reason_changed_at"});
  }
}

void set_words(const Fields& fields, node::SlurmNodeRecord& record) {
  record.hostname = fields.text({"hostname"});
  record.address = fields.text({"address"});
  record.version = fields.text({"version", "slurmd_version"});
  record.cluster = fields.text({"cluster_name"});
  record.reservation = fields.text({"reservation"});
  record.comment = fields.text({"comment"});
  record.extra = fields.text({"extra"});
  record.instance_id = fields.text({"instance_id"});
  record.instance_type = fields.text({"instance_type"});
  record.operating_system = fields.text({"operating_system"});
  record.architecture = fields.text({"architecture"});
  record.partitions = fields.words({"partitions"});
  record.partitions_known = fields.get({"partitions"}) != nullptr;  // v0.0.36 has none
  record.features = fields.words({"features"});
  record.active_features = fields.words({"active_features"});
}

void set_gres(const Fields& fields, node::SlurmNodeRecord& record) {
  record.gres = parse_gres(fields.text({"gres"}));
  record.gres_used = parse_gres(fields.text({"gres_used"}));
  record.gres_drained = fields.text({"gres_drained"});
  if (record.gres_drained == "N/A") {
    record.gres_drained.clear();
  }
}

}  // namespace

node::SlurmState state_of(const Fields& fields, Fields::Names state, Fields::Names flags) {
  return parse_state(join(state_words(fields, state, flags), "+"));
}

node::SlurmNodeRecord node_record(const Json& object, std::string_view path, Notes& notes) {
  const Fields fields{object, path, notes};
  node::SlurmNodeRecord record;
  record.name = fields.text({"name"});
  record.state = state_of(fields, {"state"}, {"state_flags"});
  if (record.state.base.empty()) {
    fields.note("state", "none");
  }
  record.next_state = next_state(fields);
  set_figures(fields, record);
  set_reason(fields, record);
  set_words(fields, record);
  set_gres(fields, record);
  record.boot_time = fields.time({"boot_time"});
  record.slurmd_start_time = fields.time({"slurmd_start_time"});
  record.last_busy = fields.time({"last_busy"});
  record.resume_after = fields.time({"resume_after"});
  if (object.is_object()) {
    for (const auto& [key, value] : object.items()) {
      if (!has_word(kOther, key) && !has_word(kPublished, key)) {
        fields.note(key.c_str(), "");
      }
    }
  }
  return record;
}

void drop_unpublished(Json& object) {
  // Of ten thousand nodes in each dump.
  static const std::set<std::string_view> published = [] {
    const auto names = words(kPublished);
    return std::set<std::string_view>{names.begin(), names.end()};
  }();
  for (auto at = object.begin(); at != object.end();) {
    at = published.contains(at.key()) ? std::next(at) : object.erase(at);
  }
}

}  // namespace slurmlet::slurm
