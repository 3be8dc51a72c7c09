#include "node/lease_holder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"

namespace slurmlet::node {
namespace {

using std::chrono::seconds;

constexpr seconds kDefaultDuration{40};
constexpr std::chrono::minutes kMaxPatience{10};

seconds duration_of(const LeaseHolder& held) {
  return held.duration_seconds > 0 ? seconds{held.duration_seconds} : kDefaultDuration;
}

}  // namespace

// A node name has no slash in it.
bool names_machine(const std::string& identity) {
  const auto slash = identity.find('/');
  return slash != std::string::npos && slash + 1 < identity.size();
}

bool is_foreign_holder(const std::string& identity, const std::string& ours) {
  return names_machine(identity) && to_lower(identity) != to_lower(ours);
}

Duration holder_patience(const LeaseHolder& held) {
  const Duration duration = duration_of(held);
  return std::min<Duration>(duration + duration / 4, kMaxPatience);
}

HolderRuling judge_holder(const LeaseHolder& held, const std::string& ours,
                          const std::optional<HolderSighting>& before, SteadyTime now) {
  using Verdict = HolderRuling::Verdict;
  if (!is_foreign_holder(held.identity, ours)) {
    return {};
  }
  const bool known = before && before->held.identity == held.identity;
  const bool renewed = known && before->held.renew_time != held.renew_time;
  HolderSighting sighting{held, now, renewed};
  if (known && !renewed) {
    sighting = *before;
    if (now - sighting.since >= holder_patience(held)) {
      return {};
    }
  }
  return {sighting.alive ? Verdict::kAlive : Verdict::kWait, sighting.since + holder_patience(held),
          sighting};
}

std::string held_by_another(const std::string& name, const LeaseHolder& held) {
  return fmt::format(
      "Node {0} is run by another machine: its Lease kube-node-lease/{0} is held by {1}, which "
      "renewed it at {2}. Give this machine another node name (--nodename), or stop slurmlet on "
      "that machine; this machine retries and takes the Node over once the other stops renewing "
      "its Lease",
      name, held.identity, held.renew_time);
}

WallTime next_renew_time(WallTime now, WallTime last) {
  return std::max(now, last + std::chrono::microseconds{1});
}

Duration renew_interval(Duration lease_duration, Duration latency, const Random& random) {
  constexpr int kSlowdown = 8;
  const Duration usual = lease_duration / 4;
  const Duration pause =
      usual + part_of(std::clamp(kSlowdown * latency, usual / 25, usual), random);
  return std::min(latency + pause, std::max(latency, 2 * usual));
}

Duration renew_out_of_step(Duration lease_duration, Duration spread, const Random& random) {
  const Duration usual = lease_duration / 4;
  const Duration apart = std::clamp<Duration>(spread, usual / 10, usual * 3 / 2);
  return apart >= usual ? apart : usual - part_of(usual - apart, random);
}

}  // namespace slurmlet::node
