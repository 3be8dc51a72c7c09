#include "operator/machines/machine_events.h"

#include <utility>

#include "base/log.h"

namespace slurmlet::op {
namespace {

// An API server keeps an Event for an hour.
constexpr Duration kReportAgain = std::chrono::minutes{30};

}  // namespace

void MachineEvents::report(const kube::Machine& machine, const MachinePlace& place,
                           const EventReason& reason, const std::string& message, Now now,
                           const std::string& job) {
  Reported& last = reported_[key_of(machine)][job];
  const bool changed = std::exchange(last.message, message) != message;
  if (!changed && now.steady - last.at < kReportAgain) {
    return;
  }
  last.at = now.steady;
  if (changed) {
    (reason.warning ? log::warning : log::info)("Machine " + key_of(machine) + ": " + message);
  }
  machine_events_.emit({"Machine", machine.namespace_name, machine.name, machine.uid,
                        "cluster.x-k8s.io/" + machine.api_version},
                       reason.warning, reason.name, message, message, now);
  if (place.has_node) {
    node_events_.emit({"Node", "", place.node.name, place.node.uid}, reason.warning, reason.name,
                      message, message, now);
  }
}

void MachineEvents::retain(const Machines& machines) {
  std::erase_if(reported_, [&](const auto& entry) { return !machines.contains(entry.first); });
}

}  // namespace slurmlet::op
