#include "sync/deletion_tracker.h"

#include <fmt/format.h>

#include <utility>

#include "base/rfc3339.h"

namespace slurmlet::sync {
namespace {

// A Node that lived this long was not in a delete loop.
constexpr Duration kLasted = std::chrono::minutes{10};

}  // namespace

DeletionTracker::DeletionTracker(std::optional<node::DeletionRecord> record, Changed changed,
                                 std::optional<Duration> recreate_after, const Random& random)
    : record_(std::move(record)),
      changed_(std::move(changed)),
      recreate_after_(recreate_after),
      backoff_(Delay::kRecreate, random) {}

void DeletionTracker::set(std::optional<node::DeletionRecord> record) {
  if (record_ != record) {
    record_ = std::move(record);
    changed_(record_);
  }
}

std::optional<SteadyTime> DeletionTracker::remains_deleted(Now now) {
  if (!record_ || !node::went_with_machine(*record_)) {
    return std::nullopt;
  }
  if (!record_->gone_at) {
    node::DeletionRecord record = *record_;
    record.gone_at = now.steady;
    record.deleted_at = rfc3339(now.wall);
    set(std::move(record));
  }
  const SteadyTime until = recreate_after_ ? *record_->gone_at + *recreate_after_ : kNever;
  return now.steady < until ? std::optional{until} : std::nullopt;
}

std::string DeletionTracker::message(const std::string& node) const {
  return fmt::format(
      "Node {} was deleted with its Machine{}: it was {} at the time (noticed at {}). It is not "
      "registered again {} (node.recreateAfter), unless this host is reprovisioned or gets another "
      "credential",
      node, record_->machine.empty() ? "" : " " + record_->machine,
      record_->detached ? "detached from Slurm" : "cordoned", record_->deleted_at,
      recreate_after_ ? "for now" : "until the next boot");
}

SteadyTime DeletionTracker::recreate_at(SteadyTime now) {
  if (now - recreated_at_ > kLasted) {
    backoff_.reset();
  }
  recreated_at_ = now;
  return now + backoff_.next();
}

}  // namespace slurmlet::sync
