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

namespace slurmlet::op {

struct ControllerState {
  std::string host;  // SlurmctldHost
  bool up = false;
  bool operator==(const ControllerState&) const = default;
};

struct ControllerFacts {
  std::vector<std::string> names;  // of the Machine's host
  // In the order of slurm.conf, by a ping from now; nothing = not known.
  std::optional<std::vector<ControllerState>> controllers;
  std::set<std::string> leaving = {};  // hosts of controllers whose Machines are being deleted
  std::string took_over = {};  // the host that has just done so, if none has come back since
  bool answered = false;       // the ping before showed the same, and a dump between them is good
};

enum class ControllerAction : std::uint8_t {
  kWait,
  kTakeOver,
  kHandedOver,  // another slurmctld is in charge
};

struct ControllerRuling {
  ControllerAction action = ControllerAction::kWait;
  std::string why;         // for people; "" = unchanged
  std::size_t backup = 0;  // kTakeOver: of the controllers
  bool no_backup = false;  // it waits for one
  std::string host = {};   // SlurmctldHost of the Machine, once that is known
};

// The controller that has one of these names; "" = none, or more than one.
std::string controller_on(const std::vector<std::string>& names,
                          const std::vector<ControllerState>& controllers);

ControllerRuling rule_controller(const ControllerFacts& facts);

}  // namespace slurmlet::op
