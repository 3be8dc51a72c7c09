#include "daemon/state_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file.h"

namespace slurmlet::daemon {

Result<UniqueFd> lock_state_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  const std::filesystem::path path = directory / "lock";
  UniqueFd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return UniqueFd{};
  }
  // A record lock and no flock(2): that would pass to a child that has not come to its exec yet,
  // and outlive a daemon that is killed in that moment.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(file.get(), F_SETLK, &whole) != 0) {
    if (errno != EACCES && errno != EAGAIN) {
      return UniqueFd{};
    }
    return Error{
        Code::kConflict,
        fmt::format("slurmlet is already running with the state directory {} (process {}): stop "
                    "that one, or give this one its own --state-dir and --nodename",
                    directory.string(), read_trimmed(path))};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // For people only: the lock holds without it.
  static_cast<void>(::ftruncate(file.get(), 0) == 0 &&
                    ::write(file.get(), pid.data(), pid.size()) > 0);
  return file;
}

bool is_lock_of(const UniqueFd& lock, const std::filesystem::path& directory) {
  struct stat held {};
  struct stat named {};
  return lock && ::fstat(lock.get(), &held) == 0 &&
         ::lstat((directory / "lock").c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

}  // namespace slurmlet::daemon
