#include "credentials/bootstrap_pause.h"

#include <utility>

namespace slurmlet::credentials {

BootstrapPause::BootstrapPause(std::vector<std::filesystem::path> files, Random random)
    : files_(std::move(files)), backoff_(Delay::kBootstrapAgain, std::move(random)) {}

void BootstrapPause::tried(SteadyTime now) { until_ = now + backoff_.next(); }

SteadyTime BootstrapPause::refused() {
  if (!watch_) {
    watch_.emplace(files_);
    first_is_late_ = !watch_->problem().empty();
  } else if (!watch_->changed().empty() && !std::exchange(first_is_late_, false)) {
    until_ = {};
    backoff_.reset();
  }
  return until_;
}

}  // namespace slurmlet::credentials
