#include "sync/lease_sync.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "base/rfc3339.h"
#include "node/lease_holder.h"

namespace slurmlet::sync {
namespace {

using std::chrono::seconds;

constexpr int kWriteAttempts = 5;  // kubelet's

}  // namespace

LeaseSync::LeaseSync(kube::LeaseApi& api, LeaseOptions options, Random random, LeaseLink& link)
    : api_(api),
      options_(std::move(options)),
      random_(std::move(random)),
      link_(link),
      backoff_(Delay::kLeaseRetry, random_),
      used_(link.found.get()) {}

void LeaseSync::inherit(kube::Lease lease, Now now) {
  const auto renewed = parse_rfc3339(lease.renew_time);
  if (!renewed) {
    return;
  }
  last_renew_ = *renewed;
  lease_uid_ = lease.owner_node_uid;
  lease_ = std::move(lease);
  const auto known = link_.status.get();
  const bool is_reload = known && known->renewed_steady;
  const Duration age =
      std::clamp<Duration>(is_reload ? now.steady - *known->renewed_steady : now.wall - last_renew_,
                           Duration::zero(), options_.duration / 4);
  if (!is_reload) {
    link_.status.set({last_renew_, now.steady - age, "", std::nullopt, std::nullopt});
  }
  next_ = now.steady + options_.duration / 4 - age;
}

SteadyTime LeaseSync::step(Now now) {
  if (auto inherited = std::exchange(options_.inherited, std::nullopt)) {
    inherit(*std::move(inherited), now);
  }
  const auto uid = link_.node_uid.get();
  if (!uid || uid->empty()) {
    lease_.reset();
    foreign_.reset();
    next_ = {};
    return kNever;
  }
  const bool owner_changed = *uid != lease_uid_;
  if (now.steady < next_ && !owner_changed) {
    return next_;
  }
  refused_until_.reset();
  const Status renewed = renew(now, *uid);
  lease_uid_ = *uid;
  if (renewed) {
    succeeded(now);
  } else {
    failed(renewed.error(), now);
  }
  return next_;
}

void LeaseSync::failed(const Error& error, Now now) {
  if (!failing_ && error.code != Code::kCancelled) {  // cancelled: we are being stopped
    log::warning("lease of node " + options_.node_name + " not renewed: " + error.message);
  }
  failing_ = true;
  was_held_up_ = error.code == Code::kTimeout;
  const auto before = link_.status.get();
  LeaseStatus status = before ? *before : LeaseStatus{};
  status.last_error = error.reason();
  if (refused_until_) {
    status.refused_at = now.steady;
    status.refused_by = foreign_;
  }
  link_.status.set(std::move(status));
  // However long a pause the server asks for: the node must not count as dead because of it.
  const auto asked = std::min(error.retry_after, std::optional<Duration>{options_.duration / 4});
  next_ = refused_until_ ? *refused_until_ : now.steady + backoff_.next(asked);
}

void LeaseSync::succeeded(Now now) {
  const auto before = link_.status.get();
  const bool is_first = !before || !before->renewed_at;
  const bool was_held_up = std::exchange(was_held_up_, false);
  if (failing_) {
    log::info("lease of node " + options_.node_name + " is renewed again");
  }
  failing_ = false;
  backoff_.reset();
  link_.status.set({now.wall, now.steady, "", std::nullopt, std::nullopt});
  // Those whom the server let wait are answered at one moment; those whom it refused have come back
  // each at its own.
  if (!is_first && !was_held_up) {
    next_ = now.steady + node::renew_interval(options_.duration, random_);
    return;
  }
  const auto spread = is_first ? link_.start_spread.get() : nullptr;
  next_ = now.steady +
          node::renew_out_of_step(options_.duration, spread ? *spread : Duration::zero(), random_);
}

Status LeaseSync::load(Now now, bool just_written) {
  const auto found = std::exchange(used_, link_.found.get());
  auto current =
      used_ && used_ != found ? Result<kube::Lease>{*used_} : api_.get(options_.node_name);
  if (current) {
    lease_ = std::move(*current);
    TRY(refuse_foreign(now, just_written));
    if (const auto seen = parse_rfc3339(lease_->renew_time)) {
      last_renew_ = std::max(last_renew_, *seen);
    }
    return {};
  }
  lease_.reset();
  return current.error().code == Code::kNotFound ? Status{} : Status{current.error()};
}

// Never two writers: what another machine may still renew is read again when it should have been.
// Who has `just_written` it is alive, whatever the clocks say.
Status LeaseSync::refuse_foreign(Now now, bool just_written) {
  const node::LeaseHolder held = kube::holder_of(*lease_);
  const auto dead = link_.dead_holder.get();
  if (dead && *dead == held) {
    return {};
  }
  if (just_written) {
    foreign_ = node::HolderSighting{held, now.steady, true};
  }
  node::HolderRuling ruling =
      node::judge_holder(held, options_.holder_identity, foreign_, now.steady);
  foreign_ = std::move(ruling.sighting);
  if (ruling.verdict == node::HolderRuling::Verdict::kFree) {
    return {};
  }
  lease_.reset();
  refused_until_ = ruling.again;
  return Error{Code::kConflict, node::held_by_another(options_.node_name, held)};
}

Status LeaseSync::write(Now now, const std::string& uid) {
  kube::Lease wanted = lease_.value_or(kube::Lease{});
  wanted.name = options_.node_name;
  wanted.holder_identity = options_.holder_identity;
  wanted.duration_seconds = static_cast<int>(options_.duration.count());
  wanted.owner_node_name = options_.node_name;
  wanted.owner_node_uid = uid;
  const WallTime renew = node::next_renew_time(now.wall, last_renew_);
  wanted.renew_time = rfc3339_micro(renew);
  if (wanted.acquire_time.empty()) {
    wanted.acquire_time = wanted.renew_time;
  }
  lease_ = TRY(lease_ ? api_.update(wanted) : api_.create(wanted));
  last_renew_ = renew;
  return {};
}

Status LeaseSync::renew(Now now, const std::string& uid) {
  if (!lease_) {
    TRY(load(now, false));
  }
  Status last;
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    last = write(now, uid);
    if (last) {
      return last;
    }
    const Code code = last.error().code;
    // What cannot be made for want of its namespace will not be there the next moment either.
    if (code != Code::kConflict && !(code == Code::kNotFound && lease_)) {
      return last;
    }
    // Somebody else wrote or removed it: start again from what is there.
    TRY(load(now, code == Code::kConflict));
  }
  return last;
}

}  // namespace slurmlet::sync
