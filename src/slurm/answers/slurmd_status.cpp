#include "slurm/answers/slurmd_status.h"

#include <algorithm>
#include <array>

#include "base/plain_text.h"
#include "base/text.h"
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

constexpr std::string_view kStepsKey = "Active Steps";
constexpr std::string_view kNodeNameKey = "Hostname";
constexpr std::string_view kVersionKey = "Version";  // the last line
constexpr auto kUnusedLines = std::to_array<std::string_view>(
    {"Actual CPUs", "Actual Boards", "Actual sockets", "Actual cores", "Actual threads per core",
     "Actual real memory", "Actual temp disk space", "Boot time", "Last slurmctld msg time",
     "Slurmd PID", "Slurmd Debug", "Slurmd Logfile"});

bool is_unused(std::string_view key) {
  return std::find(kUnusedLines.begin(), kUnusedLines.end(), key) != kUnusedLines.end();
}

// False for a line that is not understood.
bool take_line(const Line& line, SlurmdStatus& status) {
  if (line.key == kStepsKey) {
    status.active_steps = list_value(line.value);
  } else if (line.key == kNodeNameKey) {
    status.node_name = text_value(line.value);
  } else if (line.key == kVersionKey) {
    status.version = text_value(line.value);
  } else {
    return is_unused(line.key);
  }
  return true;
}

// Keys that no other output has in this form.
bool is_telling(std::string_view line) {
  const auto parts = parse_line(line);
  return parts && (parts->key == kStepsKey || is_unused(parts->key));
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
    if (line && line->key == kVersionKey) {
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
