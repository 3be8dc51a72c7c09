#include "node/machine_end.h"

#include "node/vocabulary.h"

namespace slurmlet::node {

std::optional<LastSight> cordoned_sight(const ObservedNode& node) {
  if (!node.unschedulable) {
    return std::nullopt;
  }
  const auto machine = node.annotations.find(vocabulary::kMachine);
  return LastSight{node.uid, machine == node.annotations.end() ? "" : machine->second};
}

bool went_with_machine(const LastSight& last) { return !last.machine.empty(); }

}  // namespace slurmlet::node
