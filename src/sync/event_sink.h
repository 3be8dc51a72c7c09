#pragma once

// Sends Events, few of them: the same Event again only raises a count, and a token bucket bounds
// what a storm can cost. What does not fit is dropped and counted, never queued without bound.
// Events that pods bring about, also those on the Node, do not displace what happens to the Node.
// Sending fails quietly (Events are best effort); the caller's step decides when to send.
// Not thread-safe: one owner thread.

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "base/keyed_backoff.h"
#include "base/token_bucket.h"
#include "kube/api.h"

namespace slurmlet::sync {

// Calls per step at most. With a slow API server each takes up to ten seconds, and the watchdog
// allows a step less than a minute.
inline constexpr int kCallsPerStep = 4;

// The reason of Events on the Node that pods bring about in any number.
inline constexpr char kPodRejected[] = "PodRejected";

// What a storm may cost. By default as client-go's spam filter: 25 at once, then one in ten
// seconds.
struct EventLimits {
  double burst = 25;
  double per_second = 0.1;
  std::size_t known = 256;  // different ones of the last ten minutes
};

class EventSink {
 public:
  EventSink(kube::EventApi& api, std::string host, Random random,
            std::string component = "slurmlet", EventLimits limits = {});

  // How late new Events are sent, so that all nodes of a site do not send at one moment.
  void set_delay(Duration delay) { delay_ = delay; }

  // `key` names what counts as the same Event (e.g. reason and controller); the message of the
  // first is kept, later ones are counted. Both are cut to 1 kB.
  void emit(const kube::ObjectRef& about, bool warning, const std::string& reason,
            const std::string& message, const std::string& key, Now now);

  SteadyTime step(Now now);

  // Sends what waits for its time, as long as the API server takes it.
  void flush(Now now);

  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Known {
    kube::Event event;
    bool created = false;
    bool dirty = false;  // has a count that was not sent yet
    SteadyTime send_at{};
    SteadyTime last_seen{};
  };
  Status send(Known& known);
  bool send_in_turn(Known& known, Now now);
  void forget_old(SteadyTime now);

  kube::EventApi& api_;
  std::string host_;
  const std::string component_;
  const EventLimits limits_;
  Duration delay_{};
  Backoff backoff_;
  std::map<std::string, Known> known_;
  // A webhook or a quota may fail the calls of one namespace for good: it comes last.
  KeyedBackoff failing_;
  TokenBucket tokens_;
  SteadyTime not_before_{};  // the API server is down, or requested a pause
  std::uint64_t dropped_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace slurmlet::sync
