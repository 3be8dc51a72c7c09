#include "base/inotify.h"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "base/detached_task.h"

namespace slurmlet {

Inotify::Inotify() : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

std::optional<int> Inotify::add(const std::string& directory, std::uint32_t mask) {
  if (!fd_ || directory.empty()) {
    return std::nullopt;
  }
  touches_file(directory);
  const int watch =
      ::inotify_add_watch(fd_.get(), directory.c_str(), mask | IN_ONLYDIR | IN_MASK_ADD);
  return watch < 0 ? std::nullopt : std::optional{watch};
}

void Inotify::remove(int watch) {
  if (fd_) {
    ::inotify_rm_watch(fd_.get(), watch);
  }
}

std::vector<Inotify::Event> Inotify::read() {
  std::vector<Event> events;
  alignas(inotify_event) std::array<char, 4096> buffer;
  while (fd_) {
    const ssize_t size = ::read(fd_.get(), buffer.data(), buffer.size());
    if (size <= 0) {
      break;
    }
    std::size_t at = 0;
    while (at + sizeof(inotify_event) <= static_cast<std::size_t>(size)) {
      inotify_event header;
      std::memcpy(&header, buffer.data() + at, sizeof header);
      const char* name = buffer.data() + at + sizeof header;
      events.push_back(
          {header.wd, header.mask, header.len > 0 ? std::string{name} : std::string{}});
      at += sizeof header + header.len;
    }
  }
  return events;
}

}  // namespace slurmlet
