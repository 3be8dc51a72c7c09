#include "daemon/state_saver.h"

#include <iterator>
#include <utility>

#include "base/log.h"

namespace slurmlet::daemon {

void StateSaver::save(const std::string& lost, Write write) {
  waiting_[lost].write = std::move(write);
  step();
}

void StateSaver::step() {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    auto& [write, is_told] = it->second;
    const Status saved = in_time_anew(call_, write);
    const bool is_late = !saved && saved.error().code == Code::kTimeout;
    if (!saved && !is_told) {
      log::warning(it->first + (is_late ? " yet: " : ": ") + saved.error().message);
      is_told = true;
    }
    it = is_late ? std::next(it) : waiting_.erase(it);
  }
}

}  // namespace slurmlet::daemon
