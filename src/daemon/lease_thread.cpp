#include "daemon/lease_thread.h"

#include <utility>

namespace slurmlet::daemon {

LeaseThread::LeaseThread(std::unique_ptr<http::Client> client, sync::LeaseOptions options,
                         Shared& shared)
    : shared_(shared),
      client_(std::move(client)),
      api_(*client_, {&shared.requests, {}}),
      sync_(api_, std::move(options), system_random(), shared.lease),
      thread_([this] { run(); }) {}

LeaseThread::~LeaseThread() {
  stopping_ = true;
  client_->interrupt();
  thread_.join();
  shared_.service.ended(status::Loop::kLease);
}

void LeaseThread::wake() {
  shared_.service.woken(status::Loop::kLease, shared_.clock.now());
  wakeup_.notify();
}

void LeaseThread::run() {
  while (!stopping_) {
    const Duration pause = shared_.turns.lease.turn(
        shared_.clock.now().steady, woken_ ? "the main thread" : "its own deadline");
    std::this_thread::sleep_for(pause);
    const Now now = shared_.clock.now();
    shared_.service.works(status::Loop::kLease, now);
    const SteadyTime next = sync_.step(now);
    if (!stopping_) {
      sleep_until(next);
    }
  }
}

void LeaseThread::sleep_until(SteadyTime next) {
  const auto report = shared_.report.get();
  const auto status = shared_.lease.status.get();
  shared_.service.sleeps(status::Loop::kLease, shared_.clock.now(), next,
                         report ? *report : status::Report{},
                         status ? *status : sync::LeaseStatus{});
  woken_ = !client_->wait(next, {wakeup_.fd()}).empty();
  if (woken_) {
    wakeup_.clear();
  }
}

}  // namespace slurmlet::daemon
