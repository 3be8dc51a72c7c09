#pragma once

// Whose slurmd and whose configuration files are Slurm's: root's and SlurmUser's (slurm.conf(5)).
// The file that names SlurmUser cannot vouch for itself, so it must belong to root or to the
// account "slurm"; SlurmUser then counts for the rest.
//
// An account is looked up in /etc/passwd, else with getent(1) under a deadline. The first lookup of
// a name, at start-up, is waited for; later ones run beside the loop, which a name service that
// hangs must not hold up. Thread-safe: usual_slurm_users(), with_slurm_user().

#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/command.h"
#include "base/trusted_file.h"

namespace slurmlet::slurm {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const Account&) const = default;
};

// The account `name` in the text of a passwd(5) file.
std::optional<Account> account_in(std::string_view passwd, std::string_view name);

// Accounts that a name service has reported. They are looked up anew after five minutes, but count
// till another answer is there: getent(1) finds nothing where there is no such account and where
// the name service (sssd) does not run alike. What was not found is looked up again soon.
class KnownAccounts {
 public:
  using Answer = std::future<std::optional<Account>>;
  using LookUp = std::function<Answer(const std::string& name)>;
  explicit KnownAccounts(LookUp look_up) : look_up_(std::move(look_up)) {}
  std::optional<Account> find(const std::string& name, SteadyTime now);

 private:
  struct Known {
    std::optional<Account> account;
    std::optional<SteadyTime> next;  // nothing before the first lookup
    Answer coming;
  };
  LookUp look_up_;
  std::map<std::string, Known> known_;
};

// Asks with getent(1) in a thread that nobody waits for, so that a name service that hangs holds up
// no exit either. Until a getent that cannot be ended has ended, no other is started for its name.
class NameService {
 public:
  explicit NameService(std::vector<std::string> program = {"getent", "passwd"},
                       Duration deadline = std::chrono::seconds{2})
      : program_(std::move(program)), deadline_(deadline) {}
  // Not before the previous lookup of this name ends.
  KnownAccounts::Answer look_up(const std::string& name);

 private:
  std::vector<std::string> program_;  // gets the name as last argument
  Duration deadline_;
  std::map<std::string, std::shared_ptr<Command>> commands_;
};

// Root and the account "slurm".
TrustedUsers usual_slurm_users();

// These and SlurmUser, a name or a number, as a file of theirs has it. The uid of "nobody" is
// nobody's: users of another user namespace show with it.
TrustedUsers with_slurm_user(TrustedUsers users, const std::string& slurm_user);

}  // namespace slurmlet::slurm
