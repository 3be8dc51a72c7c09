#include "operator/machines/job_queue.h"

#include <algorithm>

namespace slurmlet::op {

void QueuePoll::start(SteadyTime now) {
  due_ = now + interval_;
  if (const Status started = runner_->start(slurm::queue_query(client_), now); !started) {
    problem_ = started.error().message;
  }
}

std::optional<slurm::JobQueue> QueuePoll::poll(SteadyTime now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now, output)) {
    return std::nullopt;
  }
  auto queue = slurm::read_queue(output);
  problem_ = queue ? "" : queue.error().message;
  return queue ? std::optional{*std::move(queue)} : std::nullopt;
}

}  // namespace slurmlet::op
