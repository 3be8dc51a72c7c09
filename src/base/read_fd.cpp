#include "base/read_fd.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace slurmlet {

Result<std::string> read_to_end(int fd, const std::string& name, std::size_t max_bytes) {
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) {
      return content;
    }
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno_error(errno, "read " + name);
    }
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > max_bytes) {
      return Error{Code::kInvalid, fmt::format("{} is longer than {} bytes", name, max_bytes)};
    }
  }
}

}  // namespace slurmlet
