#include "operator/machines/shown_jobs.h"

namespace slurmlet::op {
namespace {

// An administrator may set PrivateData at any time.
constexpr Duration kPrivacyKnown = std::chrono::minutes{1};

}  // namespace

std::optional<CommandSpec> ShownJobs::query(SteadyTime now) {
  if (asks_level_) {
    return slurm::admin_level_query(client_, self_.name);
  }
  if (shown_at_ && now - *shown_at_ < kPrivacyKnown) {
    return std::nullopt;
  }
  return slurm::config_query(client_);
}

bool ShownJobs::hidden() {
  problem_ = slurm::hidden_text(privacy_, self_);
  return false;
}

bool ShownJobs::take(SteadyTime now, const CommandOutput& output) {
  shown_at_.reset();
  if (std::exchange(asks_level_, false)) {
    if (!slurm::is_operator(output)) {
      return hidden();
    }
  } else {
    const auto privacy = slurm::read_privacy(output);
    if (!privacy) {
      problem_ = privacy.error().message;
      return false;
    }
    privacy_ = *privacy;
    if (!slurm::shows_all(privacy_, self_)) {
      asks_level_ = !self_.name.empty();
      return asks_level_ || hidden();
    }
  }
  shown_at_ = now;
  return true;
}

}  // namespace slurmlet::op
