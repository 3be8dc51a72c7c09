// NodeSync: what the watch reports of the Node.

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "node/vocabulary.h"
#include "sync/node_sync.h"

namespace slurmlet::sync {
namespace {

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
    return {};  // it must list, which does not report how a Node ended
  }
  return watch_.last_error() ? kBrokenWatchLag : kWatchLag;
}

// Always, once begun: an unread watch would keep the loop awake.
bool NodeSync::watches() const {
  const auto* blocked = in<Blocked>();
  return watch_next_ || registered() ||
         (blocked != nullptr && blocked->why != Blocked::Why::kLeaseHeld);
}

// Of our Node.
std::string NodeSync::uid() const {
  if (const auto* registered = in<Registered>()) {
    return registered->node.uid;
  }
  if (const auto* confirming = in<Confirming>()) {
    return confirming->uid;
  }
  const auto* claimed = in<Claimed>();
  return claimed != nullptr && claimed->existing ? claimed->existing->uid : "";
}

void NodeSync::read_watch(Now now) {
  std::vector<kube::WatchEvent<node::ObservedNode>> events;
  watch_next_ = watch_.step(now, events);
  using Type = kube::WatchEvent<node::ObservedNode>::Type;
  for (auto& event : events) {
    if (event.type == Type::kDeleted || (event.type == Type::kReplaced && event.objects.empty())) {
      on_gone(event.objects.empty() ? std::nullopt : std::optional{event.objects.front()}, now);
      continue;
    }
    for (const auto& seen : event.objects) {
      on_seen(seen, now);
    }
  }
}

// `last`: the Node as it was at its end; nothing where a list just lacks it.
void NodeSync::on_gone(const std::optional<node::ObservedNode>& last, Now now) {
  const std::string known = uid();
  // An event about an earlier Node says nothing of this one.
  if (!known.empty() && last && last->uid != known) {
    return;
  }
  if (!known.empty() && last) {
    deletion_.seen(*last);
  }
  if (registered()) {
    on_deleted(now, true);
    return;
  }
  if (const auto* blocked = in<Blocked>()) {
    if (blocked->why == Blocked::Why::kForeignNode) {
      state_ = Unclaimed{now.steady};
    }
    return;
  }
  if (!known.empty()) {
    const auto* confirming = in<Confirming>();
    release(confirming != nullptr ? confirming->retry_at : now.steady);
    (void)remains_deleted(now);
  }
}

void NodeSync::on_seen(const node::ObservedNode& seen, Now now) {
  auto* registered = in<Registered>();
  if (registered == nullptr) {
    auto* claimed = in<Claimed>();
    const bool is_known = seen.uid == uid();
    if (is_known && claimed != nullptr &&
        !is_older(seen.resource_version, claimed->existing->resource_version)) {
      claimed->existing = seen;
    }
    if (is_known) {
      deletion_.seen(seen);
    }
    if (went_with_machine()) {
      std::get<Blocked>(state_).recheck_at = now.steady;  // made anew, or never gone
    }
    return;  // registration reads the Node itself
  }
  if (is_older(seen.resource_version, registered->node.resource_version)) {
    return;
  }
  if (seen.uid != registered->node.uid) {
    // Somebody deleted and re-created it: decide anew whether it is ours.
    release(now.steady);
    return;
  }
  const char* key = node::vocabulary::kLabelMetal3Uuid;
  if (registered->node.labels.contains(key) && !seen.labels.contains(key) &&
      !std::exchange(registered->uuid_label_surrendered, true)) {
    log::warning(std::string{"the label "} + key +
                 " was removed from this Node (Cluster API's label sync with prefix metal3.io?); "
                 "left as it is");
  }
  registered->writer.observed_changed();
  observe(seen);
}

}  // namespace slurmlet::sync
