#pragma once

// Decides what follows the deletion of a Node. One deleted with its Machine
// (node/machine_deletion.h) remains deleted, even across restarts of slurmlet; any other is
// re-registered, with back-off if somebody keeps deleting it. Not thread-safe.

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

  // The Node is gone: until when it stays so because its Machine was deleted; nothing = it may be
  // registered.
  std::optional<SteadyTime> remains_deleted(Now now);
  // Why, for people.
  std::string message(const std::string& node) const;
  // The Node was just deleted: earliest time to re-register.
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
