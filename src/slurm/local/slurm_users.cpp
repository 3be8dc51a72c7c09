#include "slurm/local/slurm_users.h"

#include <mutex>
#include <system_error>
#include <thread>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

constexpr uid_t kOverflowUid = 65534;
constexpr Duration kKept = std::chrono::minutes{5};
constexpr Duration kRetry = std::chrono::seconds{25};  // at each reading of a rejected slurm.conf

std::optional<Account> find_account(const std::string& name) {
  if (const auto local = read_file("/etc/passwd", std::size_t{16} << 20)) {
    if (const auto account = account_in(*local, name)) {
      return account;
    }
  }
  static std::mutex one_at_a_time;  // readings of slurm.conf run on threads of their own
  const std::scoped_lock lock{one_at_a_time};
  static NameService service;
  static KnownAccounts known{[](const std::string& asked) { return service.look_up(asked); }};
  return known.find(name, std::chrono::steady_clock::now());
}

void add_account(const std::optional<Account>& account, TrustedUsers& users) {
  if (account && account->uid != kOverflowUid) {
    users.uids.push_back(account->uid);
    users.gids.push_back(account->gid);
  }
}

}  // namespace

std::optional<Account> account_in(std::string_view passwd, std::string_view name) {
  for (const auto line : split(passwd, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 4 || fields[0] != name) {
      continue;
    }
    const auto uid = parse_int<uid_t>(fields[2]);
    const auto gid = parse_int<gid_t>(fields[3]);
    return uid && gid ? std::optional{Account{*uid, *gid}} : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Account> KnownAccounts::find(const std::string& name, SteadyTime now) {
  Known& known = known_[name];
  if (!known.coming.valid() && (!known.next || now >= *known.next)) {
    known.coming = look_up_(name);
  }
  const bool is_there = known.coming.valid() && (!known.next || known.coming.wait_for(Duration{}) !=
                                                                    std::future_status::timeout);
  if (is_there) {
    const auto found = known.coming.get();
    known.account = found ? found : known.account;
    known.next = now + (found ? kKept : kRetry);
  }
  return known.account;
}

KnownAccounts::Answer NameService::look_up(const std::string& name) {
  auto& command = commands_[name];
  if (!command) {
    command = std::make_shared<Command>();
  }
  CommandSpec spec;
  spec.argv = program_;
  spec.argv.push_back(name);
  spec.timeout = deadline_;
  spec.max_output_bytes = 4096;
  const auto ask = [spec, name, command]() -> std::optional<Account> {
    const auto output = run_command(*command, spec);
    return output && output->succeeded() ? account_in(output->out, name) : std::nullopt;
  };
  std::packaged_task<std::optional<Account>()> task{ask};
  auto coming = task.get_future();
  try {
    std::thread{std::move(task)}.detach();
  } catch (const std::system_error&) {  // no thread to be had: in KnownAccounts::find() itself
    return std::async(std::launch::deferred, ask);
  }
  return coming;
}

TrustedUsers usual_slurm_users() {
  TrustedUsers users;
  add_account(find_account("slurm"), users);
  return users;
}

TrustedUsers with_slurm_user(TrustedUsers users, const std::string& slurm_user) {
  if (const auto uid = parse_int<uid_t>(slurm_user)) {
    if (*uid != kOverflowUid) {
      users.uids.push_back(*uid);
    }
  } else if (!slurm_user.empty() && slurm_user != "root" && slurm_user != "slurm") {
    add_account(find_account(slurm_user), users);
  }
  return users;
}

}  // namespace slurmlet::slurm
