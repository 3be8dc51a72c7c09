#include "slurm/answers/scontrol_fields.h"

#include <algorithm>
#include <array>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmNodeRecord;

// Known, and not used: hardware that the machine itself knows better, accounting, power.
// CapWatts and ExtSensors* were printed until 23.11, Topology, Parameters and TLSCert* are since
// 25.05; LowestJoules and ConsumedJoules come with energy plugins.
constexpr std::string_view kUnusedKeys =
    "AllocTRES AveWatts BcastAddr Boards CPUSpecList CapWatts CertFlags CfgTRES ConsumedJoules "
    "CoreSpecCount CoresPerSocket CpuBind CurrentWatts ExtSensorsJoules ExtSensorsTemp "
    "ExtSensorsWatts GpuSpec LowestJoules MCS_label Owner Parameters Port RestrictedCoresPerGPU "
    "Sockets SuspendTime TLSCertLastRenewal ThreadsPerCore TmpDisk Topology Weight";

// Puts a value into its field; false when it cannot be understood.
using Put = bool (*)(std::string_view value, SlurmNodeRecord& record);

template <auto field, auto parse>
bool put(std::string_view value, SlurmNodeRecord& record) {
  record.*field = parse(value);
  if constexpr (requires { (record.*field).has_value(); }) {  // a number, a time, a load
    return is_nothing(value) || (record.*field).has_value();
  }
  return true;
}

std::string free_text(std::string_view value) { return valid_utf8(trim(value)); }

bool put_state(std::string_view value, SlurmNodeRecord& record) {
  record.state = parse_state(valid_utf8(value));
  return is_state(value);
}

struct Key {
  std::string_view name;
  Put put;
};
using R = SlurmNodeRecord;
constexpr std::array kKeys = std::to_array<Key>({
    {"NodeName", put<&R::name, text_value>},
    {"NodeHostName", put<&R::hostname, text_value>},
    {"NodeAddr", put<&R::address, text_value>},
    {"Arch", put<&R::architecture, text_value>},
    {"OS", put<&R::operating_system, text_value>},
    {"Version", put<&R::version, text_value>},
    {"NextState", put<&R::next_state, text_value>},
    {"GresDrain", put<&R::gres_drained, text_value>},
    {"InstanceId", put<&R::instance_id, text_value>},
    {"InstanceType", put<&R::instance_type, text_value>},
    {"ReservationName", put<&R::reservation, text_value>},
    {"CPUAlloc", put<&R::allocated_cpus, number_value>},
    {"CPUEfctv", put<&R::effective_cpus, number_value>},
    {"CPUTot", put<&R::cpus, number_value>},
    {"RealMemory", put<&R::real_memory_mib, number_value>},
    {"AllocMem", put<&R::allocated_memory_mib, number_value>},
    {"FreeMem", put<&R::free_memory_mib, number_value>},
    {"MemSpecLimit", put<&R::mem_spec_limit_mib, number_value>},
    {"CPULoad", put<&R::cpu_load, load_value>},
    {"BootTime", put<&R::boot_time, time_value>},
    {"SlurmdStartTime", put<&R::slurmd_start_time, time_value>},
    {"LastBusyTime", put<&R::last_busy, time_value>},
    {"ResumeAfterTime", put<&R::resume_after, time_value>},
    {"AvailableFeatures", put<&R::features, list_value>},
    {"ActiveFeatures", put<&R::active_features, list_value>},
    {"Partitions", put<&R::partitions, list_value>},
    {"Gres", put<&R::gres, parse_gres>},
    {"GresUsed", put<&R::gres_used, parse_gres>},
    {"State", put_state},
});
constexpr std::array kFreeTextKeys = std::to_array<Key>({
    {"Reason", put<&R::reason, free_text>},
    {"Comment", put<&R::comment, free_text>},
    {"Extra", put<&R::extra, free_text>},
});

template <std::size_t N>
const Key* find_row(const std::array<Key, N>& keys, std::string_view name) {
  const auto* at = std::ranges::find(keys, name, &Key::name);
  return at == keys.end() ? nullptr : at;
}

// The time behind the last "@": names of users of a directory service have one too.
std::size_t attribution_at(std::string_view text) { return text.rfind('@'); }

}  // namespace

bool is_key_shaped(std::string_view key) {
  const auto is_letter = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  };
  return !key.empty() && key.size() <= 40 && key.front() >= 'A' && key.front() <= 'Z' &&
         std::all_of(key.begin(), key.end(), is_letter);
}

bool is_free_text_key(std::string_view key) { return find_row(kFreeTextKeys, key) != nullptr; }

std::string_view before_free_text(std::string_view line) {
  for (const auto& [name, put] : kFreeTextKeys) {
    line = line.substr(0, line.find(" " + std::string{name} + "="));
  }
  return line;
}

bool is_known_key(std::string_view key) {
  return find_row(kKeys, key) != nullptr || is_free_text_key(key) || key.starts_with("TLSCert") ||
         has_word(kUnusedKeys, key);
}

bool is_tail_key(std::string_view key) {
  constexpr std::string_view kTail =
      "InstanceId InstanceType ReservationName Topology Parameters CertFlags";
  return is_free_text_key(key) || key.starts_with("TLSCert") || has_word(kTail, key);
}

bool take_field(std::string_view key, std::string_view value, SlurmNodeRecord& record) {
  const Key* known = find_row(kKeys, key);
  known = known == nullptr ? find_row(kFreeTextKeys, key) : known;
  return known == nullptr || known->put(value, record);
}

bool is_attribution(std::string_view text) {
  if (text.size() < 5 || text.size() > 300 || text.front() != '[' || text.back() != ']') {
    return false;
  }
  const auto inside = text.substr(1, text.size() - 2);
  const auto at = attribution_at(inside);
  return at != std::string_view::npos && at > 0 && at + 1 < inside.size() &&
         inside.find_first_of("[]\n") == std::string_view::npos &&
         inside.substr(0, at).find_first_of(" \t") == std::string_view::npos;
}

bool take_attribution(std::string_view text, SlurmNodeRecord& record) {
  const auto inside = text.substr(1, text.size() - 2);
  const auto at = attribution_at(inside);
  const auto time = inside.substr(at + 1);
  record.reason_user = user_name(inside.substr(0, at));
  record.reason_time = time_value(time);
  return record.reason_time.has_value() || is_nothing(time);
}

}  // namespace slurmlet::slurm
