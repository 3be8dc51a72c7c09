#include "app/lease_thread.h"

#include <utility>

namespace slurmlet::app {

LeaseThread::LeaseThread(std::unique_ptr<http::Client> client, sync::LeaseOptions options,
                         Shared& shared)
    : client_(std::move(client)),
      api_(*client_, {&shared.requests, {}}),
      sync_(api_, std::move(options), system_random(), shared.lease),
      thread_([this, &shared] { run(shared.clock); }) {}

LeaseThread::~LeaseThread() {
  stopping_ = true;
  client_->interrupt();
  thread_.join();
}

void LeaseThread::run(const Clock& clock) {
  while (!stopping_) {
    const SteadyTime next = sync_.step(clock.now());
    if (!stopping_ && !client_->wait(next, {wakeup_.fd()}).empty()) {
      wakeup_.clear();
    }
  }
}

}  // namespace slurmlet::app
