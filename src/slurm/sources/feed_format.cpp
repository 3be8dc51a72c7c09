#include "slurm/sources/feed_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/slurm_command.h"

namespace slurmlet::slurm {
namespace {

using nlohmann::json;

constexpr std::string_view kRecord = "NodeName=";

// The node whose record begins with this line; "" when none does.
std::string_view record_name(std::string_view line) {
  if (!line.starts_with(kRecord)) {
    return {};
  }
  const auto name = line.substr(kRecord.size(), line.find(' ') - kRecord.size());
  return is_feed_file_name(name) ? name : std::string_view{};
}

// Fields of numbers stand before everything that people may write.
std::size_t end_of_numbers(std::string_view line) {
  std::size_t end = line.size();
  for (const std::string_view text : {" Reason=", " Comment=", " Extra="}) {
    end = std::min(end, line.find(text));
  }
  return end;
}

std::string without_samples(std::string_view line) {
  std::string out{line};
  for (const std::string_view key : {" CPULoad=", " FreeMem=", " CurrentWatts=", " AveWatts="}) {
    const auto at = out.find(key);
    if (at < end_of_numbers(out)) {
      const auto value = at + key.size();
      out.replace(value, std::min(out.find(' ', value), out.size()) - value, "N/A");
    }
  }
  return out;
}

Error no_header(const std::string& why) { return {Code::kInvalid, "its header " + why}; }

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) {
    return std::nullopt;
  }
  return found->get<std::int64_t>();
}

}  // namespace

std::string to_text(const FeedHeader& header) {
  nlohmann::ordered_json object{{"format", header.format},
                                {"cluster", header.cluster},
                                {"reader", header.reader},
                                {"slurmVersion", header.slurm_version},
                                {"intervalSeconds", header.interval / std::chrono::seconds{1}},
                                {"nodes", header.nodes}};
  if (header.dumped_at) {
    object["dumpedAt"] =
        std::chrono::duration_cast<std::chrono::seconds>(header.dumped_at->time_since_epoch())
            .count();
  }
  if (!header.failure.empty()) {
    object["failure"] = header.failure;
  }
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<FeedHeader> parse_feed_header(std::string_view text) {
  if (trim(text).empty()) {
    return no_header("is empty");
  }
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) {
    return no_header("was not written by slurmlet feed");
  }
  FeedHeader header;
  const auto format = number_of(object, "format");
  if (!format || *format != kFeedFormat) {
    return no_header(format
                         ? fmt::format("has format {}, this version reads {}", *format, kFeedFormat)
                         : "does not specify its format");
  }
  // 1 s … 1 day: a wrong one would make old states look fresh.
  const auto interval = number_of(object, "intervalSeconds");
  if (!interval || *interval < 1 || *interval > 86400) {
    return no_header("does not specify the interval between its dumps");
  }
  header.interval = std::chrono::seconds{*interval};
  if (const auto at = number_of(object, "dumpedAt"); at && *at > 0 && *at < (1LL << 33)) {
    header.dumped_at = WallTime{std::chrono::seconds{*at}};
  }
  header.cluster = text_of(object, "cluster");
  header.reader = text_of(object, "reader");
  header.slurm_version = text_of(object, "slurmVersion");
  header.nodes = number_of(object, "nodes").value_or(0);
  header.failure = text_of(object, "failure");
  return header;
}

bool is_feed_file_name(std::string_view name) {
  return valid_node_name(name) && name.front() != '.';
}

CommandSpec feed_question(const SinfoSettings& settings) {
  CommandSpec spec = slurm_command(settings.bin_dir, "scontrol", settings.conf);
  // Of a federation with fed_display, too, only this cluster.
  spec.argv.insert(spec.argv.end(), {"--local", "-a", "-d", "-o", "show", "node"});
  spec.extra_environment.emplace_back("SLURM_TIME_FORMAT=%s");
  spec.timeout = settings.timeout;
  spec.max_output_bytes = std::size_t{256} << 20;
  return spec;
}

std::optional<std::string> feed_question_failure(const CommandOutput& output) {
  if (output.too_long) {
    return "scontrol printed more than the records of a cluster can contain";
  }
  auto failure = classify(output);  // Slurm's messages are the same in all its commands
  if (!failure) {
    return std::nullopt;
  }
  if (failure->cause == node::SlurmFailure::kNotInSlurm) {
    return "scontrol printed nothing";
  }
  constexpr std::string_view kOther = "sinfo";
  std::string detail = std::move(failure->detail);
  if (detail.starts_with(kOther)) {
    detail.replace(0, kOther.size(), "scontrol");
  }
  return std::string{to_string(failure->cause)} + ": " + detail;
}

Result<std::map<std::string, std::string>> split_dump(std::string_view text) {
  std::map<std::string, std::string> records;
  std::string* current = nullptr;
  if (!text.ends_with('\n')) {
    return Error{Code::kInvalid, "scontrol's output is truncated"};
  }
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const auto name = record_name(line);
    if (!name.empty()) {
      current = &records[std::string{name}];
      *current += without_samples(line) + "\n";
    } else if (current != nullptr) {
      *current += std::string{line} + "\n";
    } else if (!trim(line).empty()) {
      return Error{Code::kInvalid, line.find("No nodes in the system") != std::string_view::npos
                                       ? "slurmctld shows no nodes at all (with PrivateData=nodes, "
                                         "slurmlet feed must run as a Slurm operator)"
                                       : "scontrol's output is not a list of nodes"};
    }
  }
  if (records.empty()) {
    return Error{Code::kInvalid, "scontrol listed no nodes"};
  }
  return records;
}

}  // namespace slurmlet::slurm
