#pragma once

// The systemd unit of a program, as a command by hand needs it: whether it is meant to run, and
// what its user can read. By systemctl(1); where there is none, there is no unit. Blocks.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "check/finding.h"

namespace slurmlet::check {

struct ServiceUnit {
  std::string name;      // "slurmlet.service"
  std::string user;      // "" = root, or no unit
  bool enabled = false;  // it starts with the machine
  // Running, or started again and again.
  bool active = false;
};
// Without systemctl there is no unit; a systemctl that does not answer is an error.
Result<ServiceUnit> read_unit(const std::string& name);
// `shown`: systemctl show --property=User,UnitFileState,ActiveState. Pure.
ServiceUnit read_unit(const std::string& name, const std::string& shown);

// systemctl with these arguments; its own words where it fails.
Status systemctl(std::vector<std::string> arguments);
Status enable_and_restart(const std::string& name);

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};
// Nothing where there is no such user.
std::optional<Account> account_of(const std::string& user);

// An error for each of `paths` that exists and that the unit's user cannot read. Only root can
// judge that for another user: else, and without such a user, there is none.
Findings unreadable(const ServiceUnit& unit, const std::vector<std::string>& paths);

}  // namespace slurmlet::check
