#include "app/state_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/file.h"

namespace slurmlet::app {

Result<UniqueFd> lock_state_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  const std::filesystem::path path = directory / "lock";
  UniqueFd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) {
    return UniqueFd{};
  }
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return UniqueFd{};
    }
    return Error{Code::kConflict,
                 fmt::format("slurmlet runs already with the state directory {} (process {}): stop "
                             "that one, or give this one a --state-dir and a --nodename of its own",
                             directory.string(), read_trimmed(path))};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // For people only: the lock holds without it.
  static_cast<void>(::ftruncate(file.get(), 0) == 0 &&
                    ::write(file.get(), pid.data(), pid.size()) > 0);
  return file;
}

}  // namespace slurmlet::app
