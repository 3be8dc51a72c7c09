#pragma once

// Which Events a change of the Node's conditions is worth. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "node/node.h"

namespace slurmlet::node {

struct NodeEvent {
  bool warning = false;
  std::string reason;
  std::string message;
  bool operator==(const NodeEvent&) const = default;
};

// Compares the conditions of two successive desired Nodes; `before` empty = the first one after
// start, which is no change.
std::vector<NodeEvent> condition_events(const std::vector<Condition>& before,
                                        const std::vector<Condition>& after);

// The message of the Event on registration.
std::string registered_message(const DesiredNode& desired, const std::string& cluster);

}  // namespace slurmlet::node
