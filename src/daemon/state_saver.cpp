#include "daemon/state_saver.h"

#include <utility>

#include "base/log.h"

namespace slurmlet::daemon {

void StateSaver::save(const std::string& lost, Write write) {
  waiting_[lost] = std::move(write);
  step();
}

void StateSaver::step() {
  if (call_.busy() && !take(Duration::zero())) {
    return;
  }
  while (!waiting_.empty()) {
    const auto next = waiting_.begin();
    if (!call_.begin(next->second, SteadyTime{})) {
      return;  // too many file operations hang
    }
    under_way_ = next->first;
    waiting_.erase(next);
    if (!take(file_patience)) {
      log::warning(under_way_ + " yet: " + call_.file() + " does not answer");
      return;
    }
  }
}

// Whether it has ended.
bool StateSaver::take(Duration patience) {
  const auto saved = call_.take(patience);
  if (saved && !*saved) {
    log::warning(under_way_ + ": " + saved->error().message);
  }
  return saved.has_value();
}

void StateSaver::flush(Duration patience) {
  if (call_.busy()) {
    take(patience);
  }
  step();
}

}  // namespace slurmlet::daemon
