#include "check/service_unit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include "base/command.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace slurmlet::check {
namespace {

constexpr Duration kSystemctlTime = std::chrono::seconds{3};

// errno of opening it for reading, 0 = it was opened.
int open_error(const std::string& path) {
  const UniqueFd fd{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  return fd.get() >= 0 ? 0 : errno;
}

// The system calls themselves change the calling thread alone; glibc's functions change all.
bool become(const Account& account) {
  return syscall(SYS_setgroups, account.groups.size(), account.groups.data()) == 0 &&
         syscall(SYS_setresgid, account.gid, account.gid, account.gid) == 0 &&
         syscall(SYS_setresuid, account.uid, account.uid, account.uid) == 0;
}

}  // namespace

std::optional<Account> account_of(const std::string& user) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  Account out{entry.pw_uid, entry.pw_gid, std::vector<gid_t>(64)};
  int count = static_cast<int>(out.groups.size());
  if (getgrouplist(user.c_str(), out.gid, out.groups.data(), &count) < 0) {
    count = 0;
  }
  out.groups.resize(static_cast<std::size_t>(count));
  return out;
}

ServiceUnit read_unit(const std::string& name, const std::string& shown) {
  ServiceUnit out;
  out.name = name;
  for (const auto line : split(shown, '\n')) {
    if (line.starts_with("User=") && line != "User=root") {
      out.user = line.substr(5);
    }
    out.enabled = out.enabled || line == "UnitFileState=enabled";
    out.active = out.active || line == "ActiveState=active" || line == "ActiveState=activating" ||
                 line == "ActiveState=reloading";
  }
  return out;
}

Result<ServiceUnit> read_unit(const std::string& name) {
  CommandSpec spec;
  spec.argv = {"systemctl", "show", "--property=User,UnitFileState,ActiveState", name};
  spec.timeout = kSystemctlTime;
  const auto output = run_command(spec);
  if (!output && output.error().code == Code::kTimeout) {
    return output.error();
  }
  return read_unit(name, output && output->succeeded() ? output->out : "");
}

Status systemctl(std::vector<std::string> arguments) {
  CommandSpec spec;
  spec.argv = {"systemctl"};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  spec.timeout = std::chrono::minutes{2};
  const auto output = TRY(run_command(spec));
  if (!output.succeeded()) {
    return Error{Code::kInternal,
                 fmt::format("systemctl {}: {}", join(arguments, " "), trim(output.err))};
  }
  return {};
}

Status enable_and_restart(const std::string& name) {
  TRY(systemctl({"enable", "--quiet", name}));
  return systemctl({"restart", name});
}

Findings unreadable(const ServiceUnit& unit, const std::vector<std::string>& paths) {
  const auto account = geteuid() == 0 && !unit.user.empty() ? account_of(unit.user) : std::nullopt;
  Findings out;
  if (!account) {
    return out;
  }
  std::thread{[&] {
    if (!become(*account)) {
      return;
    }
    for (const auto& path : paths) {
      const int problem = path.empty() ? 0 : open_error(path);
      if (problem != 0 && problem != ENOENT) {
        out.push_back(
            error(fmt::format("user {} of {} cannot read {}", unit.user, unit.name, path),
                  fmt::format("chgrp {} {} && chmod g+r {}, and let it into the directories above",
                              unit.user, path, path),
                  to_lower(std::generic_category().message(problem))));
      }
    }
  }}.join();
  return out;
}

}  // namespace slurmlet::check
