#pragma once

// What becomes of the Node when it is deleted. One that went with its Machine
// (node/machine_deletion.h) remains deleted, also over restarts of slurmlet; any other is
// registered again, ever more slowly where somebody keeps deleting it. Not thread-safe.

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "node/machine_deletion.h"

namespace slurmlet::sync {

class DeletionTracker {
 public:
  using Changed = std::function<void(const std::optional<node::DeletionRecord>&)>;

  // `record`: of an earlier run in this boot. `recreate_after`: when a Node that went with its
  // Machine is registered again; nothing = never.
  DeletionTracker(std::optional<node::DeletionRecord> record, Changed changed,
                  std::optional<Duration> recreate_after, const Random& random);

  void seen(const node::ObservedNode& node) { set(node::snapshot(node)); }
  void forget() { set(std::nullopt); }
  const std::optional<node::DeletionRecord>& record() const { return record_; }

  // There is no Node. Until when that is to remain so, since it went with its Machine; nothing = it
  // may be registered.
  std::optional<SteadyTime> remains_deleted(Now now);
  // Why, for people.
  std::string message(const std::string& node) const;
  // The Node was deleted just now: not to be registered again before.
  SteadyTime recreate_at(SteadyTime now);

 private:
  void set(std::optional<node::DeletionRecord> record);

  std::optional<node::DeletionRecord> record_;
  Changed changed_;
  std::optional<Duration> recreate_after_;
  Backoff backoff_;
  SteadyTime recreated_at_{};
};

}  // namespace slurmlet::sync
