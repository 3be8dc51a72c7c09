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
  } else {
    const bool is_news = !watch_->changed().empty() && !first_is_late_;
    first_is_late_ = first_is_late_ && !watch_->problem().empty();
    if (is_news) {
      until_ = {};
      backoff_.reset();
    }
  }
  return until_;
}

}  // namespace slurmlet::credentials
