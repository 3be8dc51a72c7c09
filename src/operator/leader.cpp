#include "operator/leader.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/host_name.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace slurmlet::op {

std::string leader_lease(const std::string& cluster) {
  constexpr std::size_t kMost = 200;  // of 253
  std::string name;
  for (const char c : to_lower(cluster.substr(0, kMost))) {
    name += all_alnum({&c, 1}, "-") ? c : '-';
  }
  const bool is_same = name == to_lower(cluster) && !name.ends_with('-');
  return "slurmlet-operator-" + name +
         (is_same ? "" : fmt::format("-{:08x}", stable_hash(to_lower(cluster)) & 0xffffffff));
}

std::string leader_identity() {
  std::uint64_t random = 0;
  (void)!::getrandom(&random, sizeof random, 0);
  return fmt::format("{}_{:016x}", host_name(), random);
}

std::string host_of_leader(const std::string& identity) {
  return identity.substr(0, identity.rfind('_'));
}

SteadyTime Leader::step(Now now) {
  if (now.steady < next_) {
    return next_;
  }
  const Status held = try_to_hold(now);
  problem_ = held ? "" : held.error().message;
  // Jitter of a fifth keeps candidates from trying at the same time.
  next_ = now.steady + kTry + part_of(Duration{kTry} / 5, random_);
  return next_;
}

void Leader::observe(kube::Lease lease, SteadyTime now) {
  if (lease.resource_version != seen_.resource_version) {
    seen_at_ = now;
  }
  seen_ = std::move(lease);
}

Status Leader::try_to_hold(Now now) {
  if (!leads(now.steady)) {
    auto lease = api_.get(name_);
    if (!lease && lease.error().code != Code::kNotFound) {
      return lease.error();
    }
    // Time is read after the call, during which the Lease may have been written.
    observe(lease ? *std::move(lease) : kube::Lease{}, clock_.now().steady);
    const auto lasts = std::max(std::chrono::seconds{seen_.duration_seconds}, kLease);
    const bool is_free = seen_.holder_identity.empty() || seen_.holder_identity == identity_ ||
                         now.steady >= seen_at_ + lasts;
    if (!is_free) {
      return {};
    }
  }
  return write(now);
}

Status Leader::write(Now now) {
  kube::Lease wanted = seen_;
  wanted.name = name_;
  wanted.renew_time = rfc3339_micro(now.wall);
  if (wanted.holder_identity != identity_) {
    wanted.holder_identity = identity_;
    wanted.acquire_time = wanted.renew_time;
  }
  wanted.duration_seconds = static_cast<int>(kLease.count());
  auto written = seen_.resource_version.empty() ? api_.create(wanted) : api_.update(wanted);
  if (!written) {
    if (written.error().code == Code::kConflict || written.error().code == Code::kNotFound) {
      // Somebody else wrote the Lease, so it must be read again before we lead.
      leads_until_ = {};
      return {};
    }
    return written.error();
  }
  observe(*std::move(written), now.steady);
  // Counted from before the call, so that a slow renewal does not last longer.
  leads_until_ = now.steady + kRenewWithin;
  return {};
}

void Leader::resign(Now now) {
  if (!leads(now.steady)) {
    return;
  }
  leads_until_ = {};
  kube::Lease free = seen_;
  free.holder_identity.clear();
  free.duration_seconds = 1;
  (void)api_.update(free);
}

}  // namespace slurmlet::op
