#include "slurm/local/munge_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace slurmlet::slurm {
namespace {

// Why, for people; "" when the connection was accepted or cannot be tried.
std::string why_closed(int error, const std::string& path) {
  switch (error) {
    case ENOENT:
      return fmt::format("munged is not running: there is no {}", path);
    case ECONNREFUSED:
      return fmt::format("munged is not running: nothing is listening on {}", path);
    case EACCES:
      return fmt::format("slurmlet's user cannot access {}; its directory must have mode 0755",
                         path);
    case EAGAIN:
      return fmt::format("munged does not accept connections on {}", path);
    default:
      return "";
  }
}

}  // namespace

std::optional<QueryFailure> munge_problem(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return std::nullopt;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!fd ||
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return std::nullopt;
  }
  std::string why = why_closed(errno, path);
  if (why.empty()) {
    return std::nullopt;
  }
  return QueryFailure{node::SlurmFailure::kMungeUnavailable, std::move(why)};
}

}  // namespace slurmlet::slurm
