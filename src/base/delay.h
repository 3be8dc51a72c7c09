#pragma once

// Every delay of the daemon that is spread, by its cause, in one table, so that ten thousand nodes
// to which the same thing happens at the same moment do not act at the same moment. Pure but for
// the injected source of chance.
//
// A delay is spread from its first time on ("full jitter"): by chance, or by the node's place among
// all nodes of the site.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace slurmlet {

// Uniform in [0, 1).
using Random = std::function<double()>;
Random system_random();

enum class Delay : std::uint8_t {
  // of all nodes of a site
  kHeldLease,
  kStart,
  kNews,
  kEvent,
  // a call to the API server that failed
  kOverloaded,
  kLeaseRetry,
  kNodeRetry,
  kPodRetry,
  kEventRetry,
  kRecreate,
  kNotKept,
  // watches and connections
  kCredentialReplaced,
  kWatchExpired,
  kWatchLost,
  kWatchSilent,
  kWatchRetry,
  kRelist,
  kRelistUnreadable,
  kWatchLife,
  kConnectionLife,
  kReport,
  // certificates and bootstrap
  kCertificateRetry,
  kCertificateRejected,
  kCertificateChange,
  kCredentialRejected,
  kBootstrapRetry,
  kBootstrapAgain,
  // slurmctld
  kFirstQuery,
  kQueryRetry,
  kStale,
  kReread,
  kPortRetry,
};

struct DelayRule {
  Delay cause;
  std::string_view what;  // for people
  Duration from, to;      // the first one is anywhere between
  Duration cap = {};      // of repeated ones, whose `to` doubles; zero = it does not
  // Where they are not fixed: `from` and `to` as percentages of this setting's interval.
  std::string_view of = {};
  int from_percent = 0, to_percent = 0;
  int nodes_per_second = 0;  // where it grows with the site
};

std::span<const DelayRule> delay_table();
const DelayRule& delay_rule(Delay cause);

// Any part of `range`, by chance.
Duration part_of(Duration range, const Random& random);

// The delay of one that does not repeat; `interval` is that of the rule's setting, if it has one.
Duration delay(Delay cause, const Random& random, Duration interval = {});

// Over how long a site of so many nodes does what `cause`, one with nodes_per_second, is about. A
// small one does it at once.
inline constexpr std::int64_t kSmallSite = 40;
// No Lease waits longer.
inline constexpr std::int64_t kLargestSite = 10'000;
Duration site_delay(Delay cause, std::int64_t nodes);

// When this node of a site acts, by a hash of its name: not all of them at one moment, nor the
// neighbours, which run the same jobs.
class SitePlace {
 public:
  // `at_once`: how many nodes may start together, if not all.
  explicit SitePlace(std::string name = {}, std::int64_t nodes = 0,
                     std::optional<std::int64_t> at_once = {});
  // 0 = not known.
  std::int64_t nodes() const { return nodes_; }
  std::int64_t at_once() const { return at_once_; }
  // This node's part of [0, range). `salt` keeps two uses apart.
  Duration in(Duration range, std::string_view salt) const;
  // Until the next time of the wall clock that is this node's in each interval.
  Duration until_own_time(Duration interval, std::string_view salt, WallTime now) const;
  bool operator==(const SitePlace&) const = default;

 private:
  std::string name_;
  std::int64_t nodes_, at_once_;
};

// The longest pause of Retry-After.
inline constexpr Duration kLongestRequestedPause = std::chrono::minutes{1};

// The pause that a server requested plus up to a quarter, so that its clients do not
// return together; none requested, no pause.
Duration requested_pause(std::optional<Duration> requested, const Random& random);

// Exponential back-off, spread from the first delay on: both bounds of the table of delays double
// until the upper one is at the cap; the lower one is never more than half of it.
class Backoff {
 public:
  Backoff(Delay cause, Random random);
  // With bounds of its own where a setting gives them.
  Backoff(Duration from, Duration to, Duration cap, Random random);
  // No less than requested_pause().
  Duration next(std::optional<Duration> requested = {});
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  Duration from_;
  Duration to_;
  Duration cap_;
  Random random_;
  int failures_ = 0;
};

}  // namespace slurmlet
