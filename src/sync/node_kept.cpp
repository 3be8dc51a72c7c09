// NodeSync: whether the Node stays as it is written. Another client may change it back, the API
// server may alter it.

#include <algorithm>
#include <utility>

#include "base/delay.h"
#include "base/log.h"
#include "node/node_diff.h"
#include "sync/node_sync.h"

namespace slurmlet::sync {
namespace {

using std::chrono::minutes;

constexpr minutes kQuietAfterReverts{10};
constexpr int kRevertsThatCount = 3;
constexpr minutes kContested{1};  // after a write that undid a revert

}  // namespace

// The server may hold a value otherwise than it was sent (a quantity in another form, an admission
// plugin). Sending it again at every wake-up would not help; once, since it may have met another
// client's write.
void NodeSync::note_unkept(Now now) {
  const node::NodePatch left = node::node_diff(*observed_, effective_desired(), now.wall);
  if (!is_news(left) || ++alterations_ < 2) {
    return;
  }
  if (!unkept_) {
    log::warning("the API server changes " + node::example_of(left) + " of Node " + desired_.name +
                 " when it is written (an admission plugin?); retrying at the next status report");
  }
  unkept_ = node::changes_of(left);
}

// Whether there is something to write that the server has not just refused to keep.
bool NodeSync::is_news(const node::NodePatch& patch) {
  if (!patch.has_changes) {
    unkept_.reset();
    alterations_ = 0;
  }
  return patch.has_changes && unkept_ != node::changes_of(patch);
}

// Somebody has changed back what was written.
void NodeSync::note_revert(const node::NodePatch& patch, Now now) {
  std::string what = node::example_of(patch, unkept_.value_or(node::NodePatch{}));
  if (what.empty()) {
    return;  // part of what the API server alters
  }
  reverted_ = std::move(what);
  if (std::exchange(reverted_now_, true)) {
    return;
  }
  // One that was held back belongs to it however late it came.
  const bool goes_on = now.steady < std::max(contested_until_, revert_not_before_);
  reverts_ = (goes_on ? reverts_ : 0) + 1;
  if (reverts_ == kRevertsThatCount) {
    log::warning(contest() + "; writing at increasing intervals");
  }
}

// What is held back because of a label must not leave Ready at the node controller's Unknown. Not
// for a condition that was changed back a few minutes ago as well: it may be contested itself.
void NodeSync::hasten_conditions(const node::NodePatch& patch, Now now) {
  const SteadyTime soon = now.steady + delay(Delay::kRevertedCondition, random_);
  if (soon >= revert_not_before_) {
    return;
  }
  bool is_new = false;
  for (const auto& item : patch.conditions) {
    if (item.differs) {
      const auto [seen, added] = hastened_.try_emplace(item.condition.type, now.steady);
      is_new |= added || now.steady - seen->second > kQuietAfterReverts;
      seen->second = now.steady;
    }
  }
  if (is_new) {
    revert_not_before_ = soon;
  }
}

// Whether the next revert begins a contest anew.
bool NodeSync::is_quiet(Now now) const {
  return revert_backoff_.failures() == 0 || now.steady - revert_not_before_ > kQuietAfterReverts;
}

void NodeSync::back_off(Now now) {
  if (is_quiet(now)) {
    revert_backoff_.reset();
  }
  revert_not_before_ = now.steady + revert_backoff_.next();
}

// Two writers who disagree must not keep the API server busy: each time waits longer.
void NodeSync::note_write(bool again, Now now) {
  if (!again && now.steady >= std::max(contested_until_, revert_not_before_)) {
    reverts_ = 0;  // nobody has answered the last one
  }
  if (again || is_quiet(now)) {
    back_off(now);
  }
  if (std::exchange(reverted_now_, false)) {
    contested_until_ = now.steady + kContested;
  }
  is_written_ = true;
}

// There is another Node now.
void NodeSync::forget_former_writes() {
  unkept_.reset();
  alterations_ = 0;
  is_written_ = false;
  revert_backoff_.reset();
  revert_not_before_ = contested_until_ = {};
  hastened_.clear();
  reverts_ = 0;
  reverted_now_ = false;
  provider_id_rejected_.clear();
}

std::string NodeSync::contest() const {
  return "another client keeps reverting " + reverted_ + " of Node " + desired_.name +
         " (kubectl get node " + desired_.name + " -o yaml --show-managed-fields shows which one)";
}

std::string NodeSync::difference(Now now) const {
  if (lacks_provider_id() && !provider_id_rejected_.empty()) {
    return "spec.providerID is rejected: " + provider_id_rejected_;
  }
  if (reverts_ >= kRevertsThatCount && (reverted_now_ || now.steady < contested_until_)) {
    return contest();
  }
  return unkept_ ? "the API server changes " + node::example_of(*unkept_) + " when it is written"
                 : "";
}

}  // namespace slurmlet::sync
