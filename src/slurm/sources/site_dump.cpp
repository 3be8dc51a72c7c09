#include "slurm/sources/site_dump.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/text.h"
#include "slurm/answers/record_text.h"
#include "slurm/answers/scontrol_fields.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::slurm {
namespace {

constexpr std::string_view kRecord = "NodeName=";
constexpr std::string_view kHeading = "last_update_time=";  // of scontrol -v
constexpr std::string_view kNoNodes = "No nodes in the system";

// The node whose record begins with this line; "" when none does.
std::string_view record_name(std::string_view line) {
  if (!line.starts_with(kRecord)) {
    return {};
  }
  const auto name = line.substr(kRecord.size(), line.find(' ') - kRecord.size());
  return is_record_name(name) ? name : std::string_view{};
}

// Fields of numbers stand before everything that people may write. One pass, as there may be ten
// thousand lines.
std::string without_samples(std::string_view line) {
  constexpr std::array<std::string_view, 4> kSamples{
      "CPULoad=", "FreeMem=", "CurrentWatts=", "AveWatts="};
  const auto begins = [](std::string_view field) {
    return [field](std::string_view key) { return field.starts_with(key); };
  };
  std::string out;
  out.reserve(line.size() + 1);
  std::string_view fields = before_free_text(line);
  const std::string_view free_text = line.substr(fields.size());
  while (!fields.empty()) {
    const auto end = std::min(fields.find(' '), fields.size() - 1) + 1;
    const std::string_view field = fields.substr(0, end);
    const auto* key = std::ranges::find_if(kSamples, begins(field));
    if (key == kSamples.end()) {
      out += field;
    } else {
      out += *key;
      out += field.ends_with(' ') ? "N/A " : "N/A";
    }
    fields.remove_prefix(end);
  }
  out += free_text;
  return out;
}

// Of a time that slurmctld gave; it stands before Comment, Extra and Reason. (What stands before
// it, Features and Gres, is written by administrators and by the node itself: a record that they
// forge doubles the real one, and neither is used.)
bool has_nonce(std::string_view line, std::string_view nonce) {
  constexpr std::array<std::string_view, 3> kTimes{
      " BootTime=", " SlurmdStartTime=", " LastBusyTime="};
  return !nonce.empty() && std::ranges::any_of(kTimes, [&](std::string_view key) {
    const auto at = line.find(key);
    const auto value = line.substr(at == std::string_view::npos ? line.size() : at + key.size());
    return value.substr(0, value.find(' ')).ends_with(nonce);
  });
}

struct DumpLine {
  std::string_view text, name;  // of the node whose record it may begin; "" = of none
  bool is_proven = false;
  bool begins = false;  // a record that slurmctld wrote itself
};

// "[root@2020-01-01T00:00:00]" before the signature with the nonce is part of a Reason's text. The
// brackets go, so that it is not read as the signature.
void unsign(std::string& text, std::string_view nonce) {
  const auto end = text.rfind(nonce);
  for (auto open = text.find('['); open < end; open = text.find('[', open + 1)) {
    const auto close = std::min(text.find(']', open), end);
    const auto part = std::string_view{text}.substr(open, close + 1 - open);
    node::SlurmNodeRecord ignored;
    if (is_attribution(part) && take_attribution(part, ignored)) {
      text[open] = '(';
      text[close] = ')';
    }
  }
}

std::string without_nonce(std::string text, std::string_view nonce) {
  auto at = nonce.empty() ? std::string::npos : text.find(nonce);
  if (at == std::string::npos) {
    return text;
  }
  unsign(text, nonce);
  for (; at != std::string::npos; at = text.find(nonce, at)) {
    text.erase(at, nonce.size());
  }
  return text;
}

}  // namespace

Result<std::string> new_nonce() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    return Error{Code::kInternal, "the kernel gives no random number"};
  }
  return fmt::format("x{:016x}", random);
}

CommandSpec dump_query(const ClientSettings& settings, const std::string& nonce,
                       const std::string& node) {
  // Of a federation with fed_display, too, only this cluster.
  CommandSpec spec =
      slurm_command(settings, {"scontrol", "--local", "-a", "-d", "-o", "show", "node"});
  if (!node.empty()) {
    spec.argv.push_back(node);
  }
  spec.extra_environment.emplace_back("SLURM_TIME_FORMAT=%s" + nonce);
  spec.max_output_bytes = std::size_t{256} << 20;
  return spec;
}

std::optional<std::string> dump_query_failure(const CommandOutput& output) {
  const auto failure = classify(output, "scontrol");
  if (!failure) {
    return std::nullopt;
  }
  const bool no_cause = output.too_long || failure->cause == node::SlurmFailure::kNotInSlurm;
  return no_cause ? failure->detail : failure_text(*failure);
}

Status ScontrolDump::start(Now now, bool /*or_unchanged*/) {
  nonce_ = TRY(new_nonce());
  return runner_->start(dump_query(settings_, nonce_), now.steady);
}

std::optional<Result<DumpSource::Answer>> ScontrolDump::poll(Now now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now.steady, output)) {
    return std::nullopt;
  }
  if (auto failure = dump_query_failure(output)) {
    return Error{Code::kUnavailable, *std::move(failure)};
  }
  auto records = TRY(split_dump(output.out, nonce_));
  return Answer{std::move(records), output.took};
}

namespace {

// The lines, and which of them begin a record that slurmctld wrote itself.
std::vector<DumpLine> dump_lines(std::string_view text, std::string_view nonce) {
  std::vector<DumpLine> lines;
  std::set<std::string_view> proven;  // nodes
  for (const auto line : split(text, '\n')) {
    const auto name = record_name(line);
    const bool is_proven = !name.empty() && has_nonce(line, nonce);
    if (is_proven) {
      proven.insert(name);
    }
    lines.push_back({line, name, is_proven});
  }
  for (DumpLine& line : lines) {
    line.begins = !line.name.empty() && (line.is_proven || !proven.contains(line.name));
  }
  return lines;
}

}  // namespace

Result<DumpRecords> split_dump(std::string_view text, std::string_view nonce,
                               std::string_view only) {
  if (!text.ends_with('\n')) {
    return Error{Code::kInvalid, "scontrol's output is truncated"};
  }
  text.remove_suffix(1);
  DumpRecords records;
  if (text == kNoNodes) {
    return records;
  }
  std::string* current = nullptr;
  bool began = false;
  for (const auto& line : dump_lines(text, nonce)) {
    if (line.begins) {
      began = true;
      current = only.empty() || only == line.name ? &records[std::string{line.name}] : nullptr;
      if (current != nullptr) {
        *current += without_nonce(without_samples(line.text), nonce) + "\n";
      }
    } else if (current != nullptr) {
      if (trim(line.text).starts_with(kRecord)) {
        current->back() = ' ';  // it is to be read as no record there either
      }
      *current += without_nonce(std::string{line.text}, nonce) + "\n";
    } else if (!began && !trim(line.text).empty() && !line.text.starts_with(kHeading)) {
      return Error{Code::kInvalid, "scontrol's output is not a list of nodes"};
    }
  }
  if (!began) {
    return Error{Code::kInvalid, "scontrol listed no nodes"};
  }
  return records;
}

}  // namespace slurmlet::slurm
