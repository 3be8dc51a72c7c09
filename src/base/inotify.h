#pragma once

// Events of directories (inotify(7)), without blocking. A directory that is not there cannot be
// watched: add() gives nothing and the caller tries again later. Not thread-safe.

#include <sys/inotify.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace slurmlet {

class Inotify {
 public:
  struct Event {
    int watch = -1;          // -1 with `overflow`
    std::uint32_t mask = 0;  // IN_…
    std::string name;        // of the entry; "" for the directory itself
  };

  Inotify();
  // Descriptor to wait on; -1 when the kernel gave none (then there are never events).
  int fd() const { return fd_.get(); }
  // A watch number; the same one for a directory already watched, whose mask then grows.
  std::optional<int> add(const std::string& directory, std::uint32_t mask);
  void remove(int watch);
  // All events there are. IN_Q_OVERFLOW comes as an event with watch -1.
  std::vector<Event> read();

 private:
  UniqueFd fd_;
};

}  // namespace slurmlet
