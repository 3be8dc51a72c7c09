#include "slurm/sources/feed_source.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "slurm/answers/scontrol_text.h"
#include "slurm/sources/feed_directory.h"
#include "slurm/sources/local_directory.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kMaxAgeIntervals = 5;
// Clocks of one cluster agree better than this, or munge would not work.
constexpr Duration kMaxFuture = std::chrono::minutes{1};
// From the beginning of a dump until its files are there, for a site of middling size.
constexpr Duration kDumpTakes = milliseconds{250};
constexpr Duration kRetryUnknown = seconds{10};  // while the header cannot be read

QueryResult failed(QueryFailure failure, Duration again) {
  QueryResult result;
  result.failure = std::move(failure);
  result.next_in = again;
  return result;
}

QueryResult unavailable(const FeedSettings& settings, const std::string& why,
                        Duration again = kRetryUnknown) {
  return failed({node::SlurmFailure::kFeedUnavailable,
                 fmt::format("the feed in {} {}", settings.directory, why)},
                again);
}

std::string reader_of(const FeedHeader& header) {
  return header.reader.empty() ? "its publisher" : "its publisher on " + valid_utf8(header.reader);
}

// Why the header must not be believed; "" when it may.
std::string refusal(const FeedSettings& settings, const FeedHeader& header, WallTime now) {
  if (!settings.cluster.empty() && !header.cluster.empty() &&
      to_lower(header.cluster) != settings.cluster) {
    return fmt::format("is for cluster {}, but this node belongs to {}", valid_utf8(header.cluster),
                       settings.cluster);
  }
  const std::string says =
      header.failure.empty()
          ? ""
          : fmt::format("; {} reports: {}", reader_of(header), valid_utf8(header.failure));
  if (!header.dumped_at) {
    return "contains no answer from slurmctld yet" + says;
  }
  if (*header.dumped_at > now + kMaxFuture) {
    return fmt::format("was written in the future, at {}: set the clocks of this node and of {}",
                       rfc3339(*header.dumped_at), reader_of(header));
  }
  if (now - *header.dumped_at > kMaxAgeIntervals * header.interval) {
    return fmt::format(
        "dates from {}{}", rfc3339(*header.dumped_at),
        says.empty() ? fmt::format("; slurmlet feed{} has stopped writing",
                                   header.reader.empty() ? "" : " on " + valid_utf8(header.reader))
                     : says);
  }
  return "";
}

// Until the next dump should be there; soon again when it is late.
Duration until_next(const FeedHeader& header, const std::string& node, WallTime now) {
  const Duration spread = std::min<Duration>(milliseconds{500}, header.interval / 4);
  const Duration phase{static_cast<Duration::rep>(stable_hash("feed:" + node) %
                                                  static_cast<std::uint64_t>(spread.count()))};
  const Duration until = *header.dumped_at + header.interval + kDumpTakes + phase - now;
  if (until > Duration::zero()) {
    return until;
  }
  // Late: soon at first, then ever more rarely.
  return std::max<Duration>(milliseconds{500}, std::min(-until, header.interval / 2)) + phase;
}

// The record of exactly this node; kInvalid with why.
Result<node::SlurmNodeRecord> record_of(const std::string& text, const std::string& node) {
  if (!text.ends_with('\n')) {
    return Error{Code::kInvalid, "is cut off"};
  }
  auto parsed = parse_scontrol_nodes(text);
  if (parsed.nodes.size() > 1) {
    return Error{Code::kInvalid, "contains more than one record"};
  }
  if (parsed.nodes.empty() || parsed.nodes.front().state.base.empty()) {
    return Error{Code::kInvalid, "is not a node record"};
  }
  if (parsed.nodes.front().name != node) {
    return Error{Code::kInvalid, "is about another node"};
  }
  return std::move(parsed.nodes.front());
}

}  // namespace

QueryResult read_feed(const FeedSettings& settings, std::string_view header_text,
                      const std::optional<std::string>& record, const std::string& node,
                      WallTime now) {
  const auto header = parse_feed_header(header_text);
  if (!header) {
    return unavailable(settings, "cannot be used: " + header.error().message);
  }
  if (const auto why = refusal(settings, *header, now); !why.empty()) {
    return unavailable(settings, why,
                       std::clamp<Duration>(header->interval, seconds{1}, seconds{30}));
  }
  const Duration next = until_next(*header, node, now);
  if (!record) {
    return failed({node::SlurmFailure::kNotInSlurm,
                   fmt::format("the feed in {} has no such node", settings.directory)},
                  next);
  }
  auto read = record_of(*record, node);
  if (!read) {
    return failed(
        {node::SlurmFailure::kGarbage,
         fmt::format("{}/{}/{} {}", settings.directory, kFeedNodes, node, read.error().message)},
        next);
  }
  QueryResult result;
  result.record = *std::move(read);
  result.record->cluster = to_lower(header->cluster);
  result.as_of = header->dumped_at;
  result.next_in = next;
  return result;
}

std::optional<QueryFailure> FeedSource::ask(const std::string& node, Query /*query*/, Now now) {
  if (!is_feed_file_name(node)) {
    return QueryFailure{node::SlurmFailure::kBadConfiguration,
                        "'" + node + "' is not a valid node name for the feed"};
  }
  asked_ = node;
  const auto directory = open_local_directory(settings_.mountinfo, settings_.directory);
  if (directory || directory.error().code != Code::kUnavailable) {
    ready_ = directory ? read_in_place(directory->get(), node, now.wall)
                       : unavailable(settings_, "cannot be read: " + directory.error().message);
    ready_at_ = now.steady;
    ++counters_.reads;
    return std::nullopt;
  }
  CommandSpec spec;
  // The header first: a record is never older than the header that was read before it.
  spec.argv = {"cat", "--", settings_.directory + "/" + kFeedHeaderFile,
               settings_.directory + "/" + kFeedNodes + "/" + node};
  spec.extra_environment = {"LC_ALL=C"};
  spec.timeout = settings_.timeout;
  spec.max_output_bytes = 2 * kMaxFeedFileBytes;
  if (auto started = runner_->start(spec, now.steady); !started) {
    return QueryFailure{node::SlurmFailure::kFeedUnavailable, started.error().message};
  }
  ++counters_.reads;
  ++counters_.commands;
  return std::nullopt;
}

QueryResult FeedSource::read_in_place(int directory, const std::string& node, WallTime now) const {
  const auto header = read_file_at(directory, kFeedHeaderFile, kMaxFeedFileBytes);
  if (!header) {
    return unavailable(settings_, "cannot be read: " + header.error().message);
  }
  const UniqueFd nodes{
      ::openat(directory, kFeedNodes, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  auto record = read_file_at(nodes.get(), node.c_str(), kMaxFeedFileBytes);
  if (!record && record.error().code != Code::kNotFound) {
    return unavailable(settings_, "cannot be read: " + record.error().message);
  }
  return read_feed(settings_, *header, record ? std::optional{*std::move(record)} : std::nullopt,
                   node, now);
}

QueryResult FeedSource::interpret(const CommandOutput& output, WallTime now) const {
  if (output.timed_out) {
    return unavailable(settings_, "cannot be read in time: its file system does not answer");
  }
  if (output.too_long || output.signal != 0) {
    return unavailable(settings_, "cannot be read: its files were not written by slurmlet feed");
  }
  const auto end = output.out.find('\n');
  const std::string complaint = valid_utf8(output.err.substr(0, output.err.find('\n')));
  if (complaint.find(kFeedHeaderFile) != std::string::npos) {
    return unavailable(settings_, "cannot be read: " + complaint);
  }
  if (end == std::string::npos) {
    return unavailable(settings_, "cannot be used: its header is cut off");
  }
  std::optional<std::string> record = output.out.substr(end + 1);
  if (output.exit_code != 0) {
    if (complaint.find("No such file or directory") == std::string::npos) {
      return unavailable(settings_, "cannot be read: " + complaint);
    }
    record.reset();
  }
  return read_feed(settings_, output.out.substr(0, end), record, asked_, now);
}

std::optional<QueryResult> FeedSource::poll(Now now) {
  if (ready_) {
    return std::exchange(ready_, std::nullopt);
  }
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now.steady, output)) {
    return std::nullopt;
  }
  return interpret(output, now.wall);
}

SteadyTime FeedSource::wake_at() const {
  if (ready_) {
    return ready_at_;
  }
  return runner_->running() ? runner_->deadline() : kNever;
}

}  // namespace slurmlet::slurm
