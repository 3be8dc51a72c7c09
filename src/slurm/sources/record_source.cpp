#include "slurm/sources/record_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "node/vocabulary.h"
#include "slurm/answers/record_text.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxAge = 3;  // refreshes and intervals
// Clocks of one cluster agree better than this, or munge would not work.
constexpr Duration kMaxFuture = std::chrono::minutes{1};

QueryFailure unavailable(const std::string& why) {
  return {node::SlurmFailure::kRecordUnavailable, why};
}

std::string annotation_is(const std::string& what) {
  return fmt::format("the annotation {} of this Node {}", node::vocabulary::kRecord, what);
}

Duration most_age(const PublishedRecord& published) {
  return kMaxAge * (published.refresh + published.interval);
}

// Of one that another source could take the place of. All nodes of a site need nearly two refreshes
// for that, each at its own time, and what is known must not end before.
Duration best_age(const PublishedRecord& published, bool is_only) {
  return is_only || controller_cause(published.failure)
             ? most_age(published)
             : std::min(published.refresh + 2 * published.interval, most_age(published));
}

// Why it is not this node's; "" when it is.
std::string foreign(const ReadRecord& record, const std::string& cluster, const std::string& node) {
  const std::string& theirs = record.published.cluster;
  if (!cluster.empty() && !theirs.empty() && to_lower(theirs) != cluster) {
    return fmt::format("is for cluster {}, but this node belongs to {}", plain_text(theirs),
                       cluster);
  }
  return record.node && record.node->name != node
             ? fmt::format("is about {}, but this node is {}", plain_text(record.node->name), node)
             : "";
}

// Why it is not of this time; "" when it is.
std::string outdated(const PublishedRecord& published, Duration good_for, WallTime now) {
  const std::string says = published.failure.empty()
                               ? ""
                               : "; slurmlet-operator reports: " + plain_text(published.failure);
  if (!published.dumped_at) {
    return "contains no answer from slurmctld yet" + says;
  }
  const std::string date = rfc3339(*published.dumped_at);
  if (*published.dumped_at > now + kMaxFuture) {
    return "dates from the future, " + date +
           ": set the clocks of this node and of slurmlet-operator's host";
  }
  if (now - *published.dumped_at > good_for) {
    return "dates from " + date +
           (says.empty() ? "; slurmlet-operator has stopped writing it" : says);
  }
  return "";
}

// Whether slurmctld is to blame for one that is outdated, by an operator that still tries.
std::optional<node::SlurmFailure> blamed(const PublishedRecord& published, WallTime now) {
  const bool lately = published.failed_at && *published.failed_at <= now + kMaxFuture &&
                      now - *published.failed_at <= most_age(published);
  return lately ? controller_cause(published.failure) : std::nullopt;
}

}  // namespace

Result<ReadRecord> read_record(std::string_view annotation) {
  if (annotation.empty()) {
    return Error{Code::kNotFound,
                 fmt::format("this Node has no annotation {}", node::vocabulary::kRecord)};
  }
  auto published = parse_published_record(annotation);
  if (!published) {
    return Error{Code::kInvalid, annotation_is(published.error().message)};
  }
  ReadRecord record{*std::move(published), std::nullopt};
  if (!record.published.text.empty()) {
    auto node = read_record_text(record.published.text);
    if (!node) {
      return Error{Code::kInvalid, annotation_is(node.error().message)};
    }
    record.node = *std::move(node);
  }
  return record;
}

QueryResult judge_record(const Result<ReadRecord>& record, const std::string& cluster,
                         const std::string& node, WallTime now, bool is_only) {
  QueryResult result;
  if (!record) {
    result.failure = unavailable(record.error().message);
    return result;
  }
  const PublishedRecord& published = record->published;
  if (const auto why = foreign(*record, cluster, node); !why.empty()) {
    result.failure = unavailable(annotation_is(why));
    return result;
  }
  const Duration good_for = best_age(published, is_only);
  if (const auto why = outdated(published, good_for, now); !why.empty()) {
    result.failure = unavailable(annotation_is(why));
    if (const auto cause = blamed(published, now)) {
      result.failure->cause = *cause;
      result.next_in = *published.failed_at + most_age(published) - now + milliseconds{1};
    }
    return result;
  }
  result.next_in = *published.dumped_at + good_for - now + milliseconds{1};
  if (!record->node) {
    result.failure = {node::SlurmFailure::kNotInSlurm,
                      "slurmlet-operator reports that slurmctld has no such node"};
    return result;
  }
  result.record = *record->node;
  result.record->cluster = to_lower(published.cluster);
  result.as_of = published.dumped_at;
  result.valid_for = most_age(published) + std::chrono::seconds{1};  // until it is judged again
  return result;
}

bool RecordSource::set_record(const std::optional<std::string>& annotation) {
  if (!annotation || annotation_ == annotation) {
    return false;  // of a Node that is gone the last record counts as long as it would
  }
  annotation_ = annotation;
  record_ = read_record(*annotation);
  return true;
}

}  // namespace slurmlet::slurm
