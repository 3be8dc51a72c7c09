#include "sync/node_announcer.h"

#include <utility>

#include "base/log.h"
#include "node/claim.h"
#include "node/node_events.h"

namespace slurmlet::sync {

void NodeAnnouncer::emit(const std::string& node, const std::string& uid, bool warning,
                         const std::string& reason, const std::string& message, Now now) {
  events_.emit({"Node", "", node, uid}, warning, reason, message, message, now);
}

void NodeAnnouncer::conditions(const node::DesiredNode& desired, const std::string& uid, Now now) {
  for (const auto& event : node::condition_events(announced_, desired.conditions)) {
    emit(desired.name, uid, event.warning, event.reason, event.message, now);
    (event.warning ? log::warning : log::info)(event.reason + ": " + event.message);
  }
  remember(desired);
}

// A first answer does not change what was provisional.
void NodeAnnouncer::remember(const node::DesiredNode& desired) {
  announced_ = desired.conditions;
  std::erase_if(announced_, [&desired](const node::Condition& condition) {
    return desired.provisional_conditions.contains(condition.type);
  });
}

void NodeAnnouncer::created(const node::DesiredNode& desired, const std::string& uid, Now now) {
  const std::string message = node::registered_message(desired, cluster_);
  log::info("Node " + desired.name + " " + message);
  emit(desired.name, uid, false,
       std::exchange(was_registered_, true) ? "Reregistered" : "Registered", message, now);
  remember(desired);
}

void NodeAnnouncer::adopted(const node::ObservedNode& node, const node::DesiredNode& desired,
                            Now now) {
  log::info("Node " + desired.name + " already exists and belongs to this machine; adopted");
  for (const auto& taint : node::missing_taints(node, desired)) {
    const std::string what = taint.key + "=" + taint.value + ":" + taint.effect;
    log::warning("the Node lacks the taint " + what +
                 ", which a node credential cannot add: kubectl taint node " + desired.name + " " +
                 what);
    emit(desired.name, node.uid, true, "MissingTaint",
         "the taint " + what + " is missing and must be added by an administrator", now);
  }
  was_registered_ = true;
  remember(desired);
}

}  // namespace slurmlet::sync
