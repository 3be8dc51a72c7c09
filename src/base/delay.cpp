#include "base/delay.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <utility>

#include "base/text.h"

namespace slurmlet {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kZero{};

// In the order of Delay. What a whole site may do at once is spread so far that 10,000 nodes stay
// below three times their steady rate of a thousand requests a second.
constexpr std::array kTable = std::to_array<DelayRule>({
    {Delay::kHeldLease, "first renewal after a restart (nodes / 2500 s)", kZero, kZero, kZero, "",
     0, 0, 2500},
    {Delay::kStart, "registration (nodes / 133 s)", kZero, kZero, kZero, "", 0, 0, 133},
    {Delay::kNews, "Node changed (nodes / 1000 s)", kZero, kZero, kZero, "", 0, 0, 1000},
    {Delay::kEvent, "new Event (nodes / 500 s)", kZero, kZero, kZero, "", 0, 0, 500},
    {Delay::kOverloaded, "all but Lease and Events: no answer in time, 429, 503, 504", seconds{2},
     seconds{10}, seconds{120}},
    {Delay::kLeaseRetry, "Lease not renewed", seconds{3}, milliseconds{4500}, seconds{12}},
    {Delay::kNodeRetry, "Node not read or written", milliseconds{100}, seconds{1}, seconds{15}},
    {Delay::kPodRetry, "pod not rejected", milliseconds{500}, seconds{2}, seconds{30}},
    {Delay::kEventRetry, "Event not sent", seconds{10}, seconds{20}, seconds{60}},
    {Delay::kRecreate, "Node deleted: create it again", milliseconds{200}, milliseconds{800},
     minutes{5}},
    {Delay::kNotKept, "Node not kept as it was written", seconds{1}, seconds{2}, minutes{1}},
    {Delay::kCredentialReplaced, "denied, and the credential was replaced", kZero, seconds{10}},
    {Delay::kWatchExpired, "watch ended when it should", kZero, seconds{1}},
    {Delay::kWatchLost, "watch ended early (API server, load balancer)", kZero, seconds{30}},
    {Delay::kWatchSilent, "watch silent", kZero, seconds{5}},
    {Delay::kWatchRetry, "watch or list failed", seconds{5}, seconds{20}, seconds{60}},
    {Delay::kRelist, "list again after 410 Gone", kZero, seconds{40}},
    {Delay::kRelistUnreadable, "list again for objects too large", seconds{225}, seconds{375}},
    {Delay::kWatchLife, "life of a watch", hours{1}, hours{3}},
    {Delay::kConnectionLife, "life of a connection", hours{1}, hours{3}},
    // As the kubelet's.
    {Delay::kReport, "status report", kZero, kZero, kZero, "kubernetes.statusReportInterval", 50,
     150},
    {Delay::kCertificateRetry, "CSR not created or read", seconds{2}, seconds{10}, minutes{5}},
    {Delay::kCertificateRejected, "CSR denied or failed", seconds{10}, seconds{30}, hours{1}},
    {Delay::kCertificateChange, "CSR for other addresses", minutes{2}, minutes{6}, hours{4}},
    {Delay::kCredentialRejected, "credential rejected: first bootstrap", seconds{30}, seconds{60}},
    {Delay::kBootstrapRetry, "bootstrap not possible", seconds{1}, seconds{3}, seconds{30}},
    {Delay::kBootstrapAgain, "credential rejected: bootstrap again", minutes{1}, minutes{3},
     hours{1}},
    {Delay::kFirstQuery, "first query (nodes² × 125 µs if longer)", kZero, seconds{2}},
    {Delay::kQueryRetry, "query failed (nodes² × 125 µs if longer)", seconds{5}, seconds{15},
     minutes{5}},
    {Delay::kStale, "answer out of date (slurm.staleAfter)", kZero, seconds{30}},
    {Delay::kReread, "slurm.conf again after scontrol reconfigure", kZero, seconds{30}},
    {Delay::kPortRetry, "port 10250 not opened", seconds{1}, seconds{3}, seconds{30}},
});

// Names that differ in their last digits have hashes that are near each other; this spreads them
// (the finalizer of SplitMix64). In [0, 1).
double spread_hash(std::string_view text) {
  std::uint64_t value = stable_hash(text);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return static_cast<double>((value ^ (value >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

std::span<const DelayRule> delay_table() { return kTable; }

const DelayRule& delay_rule(Delay cause) { return kTable.at(static_cast<std::size_t>(cause)); }

Duration part_of(Duration range, const Random& random) {
  return Duration{static_cast<Duration::rep>(static_cast<double>(range.count()) * random())};
}

Duration delay(Delay cause, const Random& random, Duration interval) {
  const DelayRule& rule = delay_rule(cause);
  const Duration from = rule.of.empty() ? rule.from : interval * rule.from_percent / 100;
  const Duration to = rule.of.empty() ? rule.to : interval * rule.to_percent / 100;
  return from + part_of(std::max(to - from, kZero), random);
}

Duration site_delay(Delay cause, std::int64_t nodes) {
  return nodes <= kSmallSite ? kZero
                             : Duration{seconds{1}} * std::min(nodes, kLargestSite) /
                                   delay_rule(cause).nodes_per_second;
}

SitePlace::SitePlace(std::string name, std::int64_t nodes, std::optional<std::int64_t> at_once)
    : name_(std::move(name)), nodes_(nodes), at_once_(at_once.value_or(nodes)) {}

Duration SitePlace::in(Duration range, std::string_view salt) const {
  return Duration{static_cast<Duration::rep>(spread_hash(std::string{salt} + name_) *
                                             static_cast<double>(std::max(range, kZero).count()))};
}

Duration SitePlace::until_own_time(Duration interval, std::string_view salt, WallTime now) const {
  const Duration wall = std::chrono::duration_cast<Duration>(now.time_since_epoch());
  const Duration into = ((wall - in(interval, salt)) % interval + interval) % interval;
  return interval - into;
}

Random system_random() {
  auto engine = std::make_shared<std::minstd_rand>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>{0.0, 1.0}(*engine); };
}

Duration requested_pause(std::optional<Duration> requested, const Random& random) {
  if (!requested) {
    return Duration::zero();
  }
  const Duration bounded = std::clamp(*requested, Duration::zero(), kLongestRequestedPause);
  return bounded + part_of(bounded / 4, random);
}

Backoff::Backoff(Delay cause, Random random)
    : Backoff(delay_rule(cause).from, delay_rule(cause).to, delay_rule(cause).cap,
              std::move(random)) {}

Backoff::Backoff(Duration from, Duration to, Duration cap, Random random)
    : from_(from), to_(to), cap_(std::max(to, cap)), random_(std::move(random)) {}

Duration Backoff::next(std::optional<Duration> requested) {
  Duration floor = from_;
  Duration ceiling = to_;
  for (int doublings = failures_; doublings > 0 && ceiling < cap_; --doublings) {
    floor = std::max(floor, std::min(floor * 2, cap_ / 2));
    ceiling = std::min(ceiling, cap_ / 2) * 2;
  }
  ++failures_;
  const Duration own = floor + part_of(ceiling - floor, random_);
  return std::max(own, requested_pause(requested, random_));
}

}  // namespace slurmlet
