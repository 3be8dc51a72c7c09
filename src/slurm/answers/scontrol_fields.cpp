#include "slurm/answers/scontrol_fields.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmNodeRecord;

// Known, and not used: hardware that the machine itself tells better, accounting, power.
// CapWatts and ExtSensors* were printed until 23.11, Topology, Parameters and TLSCert* are since
// 25.05; LowestJoules and ConsumedJoules come with energy plugins.
constexpr auto kUnusedKeys = std::to_array<std::string_view>({"AllocTRES",
                                                              "AveWatts",
                                                              "BcastAddr",
                                                              "Boards",
                                                              "CPUSpecList",
                                                              "CapWatts",
                                                              "CertFlags",
                                                              "CfgTRES",
                                                              "ConsumedJoules",
                                                              "CoreSpecCount",
                                                              "CoresPerSocket",
                                                              "CpuBind",
                                                              "CurrentWatts",
                                                              "ExtSensorsJoules",
                                                              "ExtSensorsTemp",
                                                              "ExtSensorsWatts",
                                                              "GpuSpec",
                                                              "LowestJoules",
                                                              "MCS_label",
                                                              "Owner",
                                                              "Parameters",
                                                              "Port",
                                                              "RestrictedCoresPerGPU",
                                                              "Sockets",
                                                              "SuspendTime",
                                                              "TLSCertLastRenewal",
                                                              "ThreadsPerCore",
                                                              "TmpDisk",
                                                              "Topology",
                                                              "Weight"});

struct TextKey {
  std::string_view key;
  std::string SlurmNodeRecord::*field;
};
constexpr std::array kTextKeys = std::to_array<TextKey>({
    {"NodeName", &SlurmNodeRecord::name},
    {"NodeHostName", &SlurmNodeRecord::hostname},
    {"NodeAddr", &SlurmNodeRecord::address},
    {"Arch", &SlurmNodeRecord::architecture},
    {"OS", &SlurmNodeRecord::operating_system},
    {"Version", &SlurmNodeRecord::version},
    {"NextState", &SlurmNodeRecord::next_state},
    {"GresDrain", &SlurmNodeRecord::gres_drained},
    {"InstanceId", &SlurmNodeRecord::instance_id},
    {"InstanceType", &SlurmNodeRecord::instance_type},
    {"ReservationName", &SlurmNodeRecord::reservation},
});

struct FreeTextKey {
  std::string_view key;
  std::string SlurmNodeRecord::*field;
};
constexpr std::array kFreeTextKeys = std::to_array<FreeTextKey>({
    {"Reason", &SlurmNodeRecord::reason},
    {"Comment", &SlurmNodeRecord::comment},
    {"Extra", &SlurmNodeRecord::extra},
});

struct NumberKey {
  std::string_view key;
  std::optional<std::int64_t> SlurmNodeRecord::*field;
};
constexpr std::array kNumberKeys = std::to_array<NumberKey>({
    {"CPUAlloc", &SlurmNodeRecord::allocated_cpus},
    {"CPUEfctv", &SlurmNodeRecord::effective_cpus},
    {"CPUTot", &SlurmNodeRecord::cpus},
    {"RealMemory", &SlurmNodeRecord::real_memory_mib},
    {"AllocMem", &SlurmNodeRecord::allocated_memory_mib},
    {"FreeMem", &SlurmNodeRecord::free_memory_mib},
    {"MemSpecLimit", &SlurmNodeRecord::mem_spec_limit_mib},
});

struct TimeKey {
  std::string_view key;
  std::optional<WallTime> SlurmNodeRecord::*field;
};
constexpr std::array kTimeKeys = std::to_array<TimeKey>({
    {"BootTime", &SlurmNodeRecord::boot_time},
    {"SlurmdStartTime", &SlurmNodeRecord::slurmd_start_time},
    {"LastBusyTime", &SlurmNodeRecord::last_busy},
    {"ResumeAfterTime", &SlurmNodeRecord::resume_after},
});

struct ListKey {
  std::string_view key;
  std::vector<std::string> SlurmNodeRecord::*field;
};
constexpr std::array kListKeys = std::to_array<ListKey>({
    {"AvailableFeatures", &SlurmNodeRecord::features},
    {"ActiveFeatures", &SlurmNodeRecord::active_features},
    {"Partitions", &SlurmNodeRecord::partitions},
});

template <typename Table>
auto find(const Table& table, std::string_view key) {
  const auto at =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.key == key; });
  return at == table.end() ? nullptr : &*at;
}

bool take_state(std::string_view value, SlurmNodeRecord& record) {
  record.state = parse_state(valid_utf8(value));
  return is_state(value);
}

// CPULoad, Gres and GresUsed.
bool take_other(std::string_view key, std::string_view value, SlurmNodeRecord& record) {
  if (key == "CPULoad") {
    record.cpu_load = load_value(value);
    return record.cpu_load.has_value() || is_nothing(value);
  }
  (key == "Gres" ? record.gres : record.gres_used) = parse_gres(valid_utf8(value));
  return true;
}

bool is_other_key(std::string_view key) {
  return key == "CPULoad" || key == "Gres" || key == "GresUsed";
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

bool is_free_text_key(std::string_view key) { return find(kFreeTextKeys, key) != nullptr; }

std::string_view before_free_text(std::string_view line) {
  for (const auto& [key, field] : kFreeTextKeys) {
    line = line.substr(0, line.find(" " + std::string{key} + "="));
  }
  return line;
}

bool is_known_key(std::string_view key) {
  return key == "State" || is_other_key(key) || is_free_text_key(key) ||
         find(kTextKeys, key) != nullptr || find(kNumberKeys, key) != nullptr ||
         find(kTimeKeys, key) != nullptr || find(kListKeys, key) != nullptr ||
         key.starts_with("TLSCert") ||
         std::find(kUnusedKeys.begin(), kUnusedKeys.end(), key) != kUnusedKeys.end();
}

bool is_tail_key(std::string_view key) {
  constexpr auto kTail = std::to_array<std::string_view>(
      {"InstanceId", "InstanceType", "ReservationName", "Topology", "Parameters", "CertFlags"});
  return is_free_text_key(key) || key.starts_with("TLSCert") ||
         std::find(kTail.begin(), kTail.end(), key) != kTail.end();
}

bool take_field(std::string_view key, std::string_view value, SlurmNodeRecord& record) {
  if (key == "State") {
    return take_state(value, record);
  }
  if (is_other_key(key)) {
    return take_other(key, value, record);
  }
  if (const auto* text = find(kTextKeys, key)) {
    record.*text->field = text_value(value);
  } else if (const auto* free_text = find(kFreeTextKeys, key)) {
    record.*free_text->field = valid_utf8(trim(value));
  } else if (const auto* list = find(kListKeys, key)) {
    record.*list->field = list_value(value);
  } else if (const auto* number = find(kNumberKeys, key)) {
    record.*number->field = number_value(value);
    return is_nothing(value) || (record.*number->field).has_value();
  } else if (const auto* time = find(kTimeKeys, key)) {
    record.*time->field = time_value(value);
    return is_nothing(value) || (record.*time->field).has_value();
  }
  return true;
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
  record.reason_user = text_value(inside.substr(0, at));
  record.reason_time = time_value(time);
  return record.reason_time.has_value() || is_nothing(time);
}

}  // namespace slurmlet::slurm
