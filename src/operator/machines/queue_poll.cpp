#include "operator/machines/queue_poll.h"

#include <algorithm>

namespace slurmlet::op {

void QueuePoll::start(SteadyTime now) {
  due_ = now + interval_;
  begin(now);
}

void QueuePoll::begin(SteadyTime now) {
  const auto first = shown_.query(now);
  asks_shown_ = first.has_value();
  const Status started = runner_->start(first ? *first : slurm::queue_query(client_), now);
  if (!started) {
    problem_ = started.error().message;
  }
}

std::optional<slurm::JobQueue> QueuePoll::poll(SteadyTime now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now, output)) {
    return std::nullopt;
  }
  if (asks_shown_) {
    if (shown_.take(now, output)) {
      begin(now);
    } else {
      problem_ = shown_.problem();
    }
    return std::nullopt;
  }
  auto queue = slurm::read_queue(output);
  problem_ = queue ? "" : queue.error().message;
  return queue ? std::optional{*std::move(queue)} : std::nullopt;
}

}  // namespace slurmlet::op
