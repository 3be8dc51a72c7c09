#include "slurm/answers/slurmd_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "slurm/answers/utf8.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

struct Line {
  std::string_view key;
  std::string_view value;
};

// "Actual real memory       = 24105 MB". Both parts are trimmed.
std::optional<Line> parse_line(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) {
    return std::nullopt;
  }
  return Line{trim(line.substr(0, equals)), trim(line.substr(equals + 1))};
}

struct NumberKey {
  std::string_view key;
  std::optional<std::int64_t> SlurmdStatus::*field;
  std::string_view unit;
};
constexpr std::array kNumberKeys = std::to_array<NumberKey>({
    {"Actual CPUs", &SlurmdStatus::cpus, ""},
    {"Actual Boards", &SlurmdStatus::boards, ""},
    {"Actual sockets", &SlurmdStatus::sockets, ""},
    {"Actual cores", &SlurmdStatus::cores, ""},
    {"Actual threads per core", &SlurmdStatus::threads_per_core, ""},
    {"Actual real memory", &SlurmdStatus::real_memory_mib, "MB"},
    {"Actual temp disk space", &SlurmdStatus::temporary_disk_mib, "MB"},
    {"Slurmd PID", &SlurmdStatus::pid, ""},
});

constexpr std::string_view kSteps = "Active Steps";
constexpr std::string_view kStarted = "Boot time";
constexpr std::string_view kNodeName = "Hostname";
constexpr std::string_view kLastMessage = "Last slurmctld msg time";
constexpr std::string_view kLogFile = "Slurmd Logfile";
constexpr std::string_view kVersion = "Version";  // the last line
constexpr std::string_view kDebug = "Slurmd Debug";

const NumberKey* find_number(std::string_view key) {
  const auto at = std::find_if(kNumberKeys.begin(), kNumberKeys.end(),
                               [&](const NumberKey& row) { return row.key == key; });
  return at == kNumberKeys.end() ? nullptr : &*at;
}

bool take_number(const NumberKey& key, std::string_view value, SlurmdStatus& status) {
  if (value.ends_with(key.unit)) {
    value.remove_suffix(key.unit.size());
  }
  status.*key.field = number_value(value);
  return (status.*key.field).has_value() || is_nothing(value);
}

bool take_time(std::string_view value, std::optional<WallTime>& time) {
  time = time_value(value);
  return time.has_value() || is_nothing(value);
}

// False for a line that is not understood.
bool take_line(const Line& line, SlurmdStatus& status) {
  if (const auto* number = find_number(line.key)) {
    return take_number(*number, line.value, status);
  }
  if (line.key == kStarted) {
    return take_time(line.value, status.started);
  }
  if (line.key == kLastMessage) {
    return take_time(line.value, status.last_slurmctld_message);
  }
  if (line.key == kSteps) {
    status.active_steps = list_value(line.value);
  } else if (line.key == kNodeName) {
    status.node_name = text_value(line.value);
  } else if (line.key == kLogFile) {
    status.log_file = text_value(line.value);
  } else if (line.key == kVersion) {
    status.version = text_value(line.value);
  } else if (line.key != kDebug) {
    return false;
  }
  return true;
}

// Keys that no other output has in this form.
bool is_telling(std::string_view line) {
  const auto parts = parse_line(line);
  return parts && (parts->key == kSteps || parts->key == kLastMessage || parts->key == kDebug ||
                   parts->key == kLogFile || find_number(parts->key) != nullptr);
}

}  // namespace

std::string parse_slurmd_version(std::string_view text) {
  const auto line = trim(text.substr(0, text.find('\n')));
  const auto space = line.rfind(' ');
  if (!line.starts_with("slurm") || space == std::string_view::npos) {
    return "";
  }
  const auto version = line.substr(space + 1);
  const bool number = !version.empty() && version.front() >= '0' && version.front() <= '9';
  return number ? valid_utf8(version) : std::string{};
}

bool looks_like_slurmd_status(std::string_view text) {
  const auto lines = split(text, '\n');
  return std::count_if(lines.begin(), lines.end(), is_telling) >= 2;
}

SlurmdStatus parse_slurmd_status(std::string_view text) {
  SlurmdStatus status;
  bool complete = false;
  while (!text.empty()) {
    const auto raw = text.substr(0, text.find('\n'));
    const bool cut = raw.size() == text.size();  // no line break behind it
    text.remove_prefix(cut ? raw.size() : raw.size() + 1);
    const auto line = parse_line(raw);
    if (trim(raw).empty()) {
      continue;
    }
    if (line && line->key == kVersion) {
      complete = true;
    }
    // Without its end, what stands in the last line may be half of a value.
    if ((cut && !complete) || !line || !take_line(*line, status)) {
      status.not_understood.push_back(excerpt(trim(raw)));
    }
  }
  if (!complete) {
    status.not_understood.emplace_back("the answer is not complete");
  }
  return status;
}

}  // namespace slurmlet::slurm
