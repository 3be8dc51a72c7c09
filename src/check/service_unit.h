#pragma once

// The systemd unit of a program, as a check by hand needs it: whether it is meant to run, and what
// its user can read. By systemctl(1); where there is none, there is no unit. Blocks.

#include <string>
#include <vector>

#include "check/finding.h"

namespace slurmlet::check {

struct ServiceUnit {
  std::string name;      // "slurmlet.service"
  std::string user;      // "" = root, or no unit
  bool enabled = false;  // it starts with the machine
  // Running, or started again and again.
  bool active = false;
};
ServiceUnit read_unit(const std::string& name);
// `shown`: systemctl show --property=User,UnitFileState,ActiveState. Pure.
ServiceUnit read_unit(const std::string& name, const std::string& shown);

// An error for each of `paths` that exists and that the unit's user cannot read. Only root can
// judge that for another user: else, and without such a user, there is none.
Findings unreadable(const ServiceUnit& unit, const std::vector<std::string>& paths);

}  // namespace slurmlet::check
