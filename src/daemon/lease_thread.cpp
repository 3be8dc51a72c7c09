#include "daemon/lease_thread.h"

#include <algorithm>
#include <utility>

namespace slurmlet::daemon {
namespace {

// An overloaded API server queues a request for up to 15 s
// (https://kubernetes.io/docs/concepts/cluster-administration/flow-control/): who gives up sooner
// closes a connection that would have been answered, and costs it another TLS handshake.
constexpr Duration kRenewalTimeout = std::chrono::seconds{20};

}  // namespace

LeaseThread::LeaseThread(std::unique_ptr<http::Client> client, sync::LeaseOptions options,
                         Shared& shared)
    : shared_(shared),
      client_(std::move(client)),
      api_(*client_, {.counter = &shared.requests,
                      .timeout = std::min<Duration>(kRenewalTimeout, options.duration / 2)}),
      sync_(api_, std::move(options), system_random(), shared.lease),
      thread_([this] { run(); }) {}

LeaseThread::~LeaseThread() {
  stopping_ = true;
  client_->interrupt();
  thread_.join();
  shared_.service.ended(status::Loop::kLease);
}

void LeaseThread::run() {
  while (!stopping_) {
    const Now now = shared_.clock.now();
    shared_.service.works(status::Loop::kLease, now);
    const SteadyTime next = sync_.step(now);
    if (!stopping_) {
      sleep_until(next);
    }
  }
}

void LeaseThread::sleep_until(SteadyTime next) {
  static const status::Report kNoReport;
  static const sync::LeaseStatus kNoStatus;
  const auto report = shared_.report.get();
  const auto status = shared_.lease.status.get();
  // References both: a copy of the report would be a seventh of a renewal.
  shared_.service.sleeps(status::Loop::kLease, shared_.clock.now(), next,
                         report ? *report : kNoReport, status ? *status : kNoStatus);
  const Wakeup& changed = shared_.lease.changed;
  if (!client_->wait(next, {changed.fd()}).empty()) {
    changed.clear();
  }
}

}  // namespace slurmlet::daemon
