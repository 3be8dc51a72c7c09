#include "slurm/sources/published_record.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "node/slurm_failure.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr std::int64_t kLongestSeconds = 86400;  // a longer one would make old states seem fresh
constexpr std::int64_t kLastPublishedSecond = 1LL << 33;

// The words of the Node's conditions.
constexpr std::array<std::pair<node::SlurmFailure, const char*>, 3> kControllerCauses = {{
    {node::SlurmFailure::kControllerUnreachable, "ControllerUnreachable"},
    {node::SlurmFailure::kTimeout, "ControllerTimeout"},
    {node::SlurmFailure::kRateLimited, "ControllerRateLimited"},
}};

Error invalid(const std::string& why) { return {Code::kInvalid, why}; }

// A member that is there but is no text is `bad`.
std::string take_text(const json& object, const char* key, std::string& bad) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return "";
  }
  if (!found->is_string()) {
    bad = key;
    return "";
  }
  return found->get<std::string>();
}

// Nothing where it is missing; `bad` where it is no number from 1 to `most`.
std::optional<seconds> take_seconds(const json& object, const char* key, std::int64_t most,
                                    std::string& bad) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return std::nullopt;
  }
  // Of one above the largest signed number, get() would make a negative one.
  const auto value = found->is_number_integer() ? found->get<std::int64_t>() : 0;
  if (value < 1 || value > most) {
    bad = key;
    return std::nullopt;
  }
  return seconds{value};
}

}  // namespace

std::string to_annotation(const PublishedRecord& record) {
  nlohmann::ordered_json object{{"format", kRecordFormat}, {"cluster", record.cluster}};
  if (record.dumped_at) {
    object["dumpedAt"] =
        std::chrono::duration_cast<seconds>(record.dumped_at->time_since_epoch()).count();
  }
  object["intervalSeconds"] = record.interval / seconds{1};
  object["refreshSeconds"] = record.refresh / seconds{1};
  if (!record.failure.empty()) {
    object["failure"] = record.failure;
  }
  if (record.failed_at) {
    object["failedAt"] =
        std::chrono::duration_cast<seconds>(record.failed_at->time_since_epoch()).count();
  }
  object["text"] = record.text;
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<PublishedRecord> parse_published_record(std::string_view annotation) {
  if (annotation.size() > kMaxAnnotationBytes) {
    return invalid("is longer than any record");
  }
  const json object = json::parse(annotation, nullptr, false);
  if (!object.is_object()) {
    return invalid("was not written by slurmlet-operator");
  }
  const auto format = object.find("format");
  if (format == object.end() || !format->is_number_integer()) {
    return invalid("does not specify its format");
  }
  if (*format != kRecordFormat) {
    return invalid(
        fmt::format("has format {}, this version reads {}", format->dump(), kRecordFormat));
  }
  PublishedRecord record;
  std::string bad;
  record.cluster = take_text(object, "cluster", bad);
  record.failure = take_text(object, "failure", bad);
  record.text = take_text(object, "text", bad);
  const auto dumped_at = take_seconds(object, "dumpedAt", kLastPublishedSecond, bad);
  const auto failed_at = take_seconds(object, "failedAt", kLastPublishedSecond, bad);
  const auto interval = take_seconds(object, "intervalSeconds", kLongestSeconds, bad);
  const auto refresh = take_seconds(object, "refreshSeconds", kLongestSeconds, bad);
  for (const auto* key : {"text", "intervalSeconds", "refreshSeconds"}) {
    if (bad.empty() && !object.contains(key)) {
      bad = key;
    }
  }
  if (!bad.empty()) {
    return invalid("has no usable \"" + bad + "\"");
  }
  if (dumped_at) {
    record.dumped_at = WallTime{*dumped_at};
  }
  if (failed_at) {
    record.failed_at = WallTime{*failed_at};
  }
  record.interval = *interval;
  record.refresh = *refresh;
  return record;
}

std::string failure_text(const QueryFailure& failure) {
  for (const auto& [cause, word] : kControllerCauses) {
    if (cause == failure.cause) {
      return word + (": " + failure.detail);
    }
  }
  return node::to_string(failure.cause) + (": " + failure.detail);
}

std::optional<node::SlurmFailure> controller_cause(std::string_view failure) {
  for (const auto& [cause, word] : kControllerCauses) {
    if (failure.starts_with(word + std::string{": "})) {
      return cause;
    }
  }
  return std::nullopt;
}

}  // namespace slurmlet::slurm
