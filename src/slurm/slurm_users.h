#pragma once

// Whose slurmd and whose configuration files are Slurm's: root's and SlurmUser's (slurm.conf(5)).
// The file that names SlurmUser cannot vouch for itself, so it must belong to root or to the
// account "slurm"; SlurmUser then counts for the rest.
//
// An account is looked up in /etc/passwd, else with getent(1) under a deadline: a name service that
// hangs must not hold up the loop. What was found is kept for some minutes. Not thread-safe.

#include <optional>
#include <string>
#include <string_view>

#include "base/trusted_file.h"

namespace slurmlet::slurm {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const Account&) const = default;
};

// The account `name` in the text of a passwd(5) file.
std::optional<Account> account_in(std::string_view passwd, std::string_view name);

// Root and the account "slurm".
TrustedUsers usual_slurm_users();

// These and SlurmUser, a name or a number, as a file of theirs has it. The uid of "nobody" is
// nobody's: users of another user namespace show with it.
TrustedUsers with_slurm_user(TrustedUsers users, const std::string& slurm_user);

}  // namespace slurmlet::slurm
