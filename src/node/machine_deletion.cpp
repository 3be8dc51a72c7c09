#include "node/machine_deletion.h"

#include "node/vocabulary.h"

namespace slurmlet::node {

bool is_detached(const ObservedNode& node) {
  const auto found = node.annotations.find(vocabulary::kDetach);
  return found != node.annotations.end() && found->second == vocabulary::kDetached;
}

std::optional<DeletionRecord> snapshot(const ObservedNode& node) {
  const bool detached = is_detached(node);
  if (!node.unschedulable && !detached) {
    return std::nullopt;
  }
  const auto machine = node.annotations.find(vocabulary::kMachine);
  return DeletionRecord{node.uid, machine == node.annotations.end() ? "" : machine->second,
                        detached};
}

bool went_with_machine(const DeletionRecord& last) {
  return last.detached || !last.machine.empty();
}

}  // namespace slurmlet::node
