// NodeSync: what the watch tells of the Node, and what is known of one that is not there.

#include "base/log.h"
#include "base/text.h"
#include "node/vocabulary.h"
#include "sync/node_sync.h"

namespace slurmlet::sync {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// A write may find the Node gone before the watch reports how it was at the end.
constexpr seconds kWatchLag{2};
constexpr seconds kBrokenWatchLag{30};  // while the watch has no connection

// A watch event may be older than the answer to our own write; resourceVersions of one object are
// ordered numbers (KEP-5504). Where they are not, every event counts.
bool is_older(const std::string& version, const std::string& than) {
  const auto a = parse_int<std::uint64_t>(version);
  const auto b = parse_int<std::uint64_t>(than);
  return a && b && *a < *b;
}

}  // namespace

Duration NodeSync::watch_lag() const {
  if (watch_.position().empty()) {
    return {};  // it must list, which does not tell how a Node ended
  }
  return watch_.last_error() ? kBrokenWatchLag : kWatchLag;
}

bool NodeSync::may_read_watch() const {
  return observed_ || watching_ || (refusal_ && !holder_refused_);
}

// Of our Node, which may be that of an earlier run.
std::string NodeSync::known_uid() const {
  if (observed_ || !lost_uid_.empty()) {
    return observed_ ? observed_->uid : lost_uid_;
  }
  const auto published = link_.node_uid.get();
  return published ? *published : "";
}

void NodeSync::read_watch(Now now) {
  std::vector<kube::WatchEvent<node::ObservedNode>> events;
  watching_ = true;  // from now on always: an unread watch would keep the loop awake
  watch_next_ = watch_.step(now, events);
  using Type = kube::WatchEvent<node::ObservedNode>::Type;
  for (auto& event : events) {
    if (event.type == Type::kDeleted || (event.type == Type::kReplaced && event.objects.empty())) {
      on_gone(event.objects.empty() ? std::nullopt : std::optional{event.objects.front()}, now);
      continue;
    }
    for (const auto& seen : event.objects) {
      on_seen(seen);
    }
  }
}

// `last`: the Node as it was at its end; nothing where a list just lacks it.
void NodeSync::on_gone(const std::optional<node::ObservedNode>& last, Now now) {
  const std::string known = known_uid();
  // News of a Node that was deleted before we made this one says nothing of this one.
  if (!known.empty() && last && last->uid != known) {
    return;
  }
  if (last && last->uid == known) {
    set_end(node::last_sight(*last));
  }
  if (!observed_ && !known.empty()) {
    lost_uid_.clear();
    told_by_ = {};
    found_.reset();
    publish_uid("");
    if (!gave_up_) {
      (void)stays_gone(now);
    }
    return;
  }
  on_deleted(now);
}

void NodeSync::on_seen(const node::ObservedNode& seen) {
  if (!observed_) {
    const bool is_old =
        found_ && found_->node && is_older(seen.resource_version, found_->node->resource_version);
    if (seen.uid == known_uid() && !is_old) {
      set_end(node::last_sight(seen));
      if (found_ && found_->node) {
        found_->node = seen;
      }
    }
    if (let_go_) {
      next_try_ =
          told_by_ = {};  // made anew, or never gone; of old news registration finds nothing
    }
    return;  // registration reads the Node itself
  }
  if (is_older(seen.resource_version, observed_->resource_version)) {
    return;
  }
  if (seen.uid != observed_->uid) {
    // Somebody deleted and re-created it: decide anew whether it is ours.
    set_observed(std::nullopt);
    next_try_ = {};
    return;
  }
  const char* key = node::vocabulary::kLabelMetal3Uuid;
  if (observed_->labels.contains(key) && !seen.labels.contains(key) && !uuid_label_surrendered_) {
    uuid_label_surrendered_ = true;
    log::warning(std::string{"the label "} + key +
                 " was removed from this Node (Cluster API's label sync with prefix metal3.io?); "
                 "left as it is");
  }
  set_observed(seen);
}

void NodeSync::on_deleted(Now now) {
  if (!observed_) {
    if (!gave_up_ && !holder_refused_ && !let_go_) {
      refusal_.reset();  // the Node that was in our way is gone
    }
    return;
  }
  set_observed(std::nullopt);
  if (!options_.recreate) {
    gave_up_ = true;
    refusal_ = "the Node was deleted and node.recreate is \"never\"";
    log::warning("Node " + desired_.name + " was deleted; not registered again (node.recreate)");
    return;
  }
  if (stays_gone(now)) {
    return;
  }
  if (now.steady - recreated_at_ > minutes{10}) {
    recreate_backoff_.reset();
  }
  next_try_ = now.steady + recreate_backoff_.next();
  recreated_at_ = now.steady;
  log::warning("Node " + desired_.name + " was deleted; registering it again");
}

}  // namespace slurmlet::sync
