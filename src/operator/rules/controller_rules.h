#pragma once

// When the Machine of a slurmctld may go (label or annotation slurmlet.io/slurm-role: controller):
// not before another slurmctld is in charge. A primary that is UP is in charge, since it takes
// control back when it starts; without it the only one that is UP. A takeover ends the slurmctld
// that was in charge. That one does not answer proves nothing by itself, so that a Machine goes
// only if two pings show the same and a dump between them was answered. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "node/controller.h"

namespace slurmlet::op {

struct ControllerFacts {
  std::vector<std::string> names;  // of the Machine's host
  // In the order of slurm.conf, by a ping from now; nothing = not known.
  std::optional<std::vector<node::Controller>> controllers;
  std::set<std::string> leaving = {};  // hosts of controllers whose Machines are being deleted
  std::string took_over = {};  // the host that has just done so, if none has come back since
  bool answered = false;       // the ping before showed the same, and a dump between them is good
};

enum class ControllerAction : std::uint8_t {
  kUnknown,  // which controller it is, or which ones answer
  kNoBackup,
  kWait,
  kTakeOver,
  kHandedOver,  // another slurmctld is in charge
};

struct ControllerRuling {
  ControllerAction action = ControllerAction::kUnknown;
  std::string why;         // for people; "" = unchanged
  std::size_t backup = 0;  // kTakeOver: of the controllers
};

// The controller that has one of these names; "" = none, or more than one.
std::string controller_on(const std::vector<std::string>& names,
                          const std::vector<node::Controller>& controllers);

ControllerRuling rule_controller(const ControllerFacts& facts);

}  // namespace slurmlet::op
