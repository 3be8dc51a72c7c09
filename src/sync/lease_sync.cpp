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
      backoff_(Delay::kLeaseRetry, random_) {}

// The holder with our identity was slurmlet before its restart. Without the machine's UUID,
// identity is just the name, which another machine may have: then NodeSync's lookup decides, unless
// a large site spreads it over longer than the Lease lasts.
SteadyTime LeaseSync::renew_held(Now now) {
  const auto start = link_.start.get();
  if (!start || holds_none_) {
    return kNever;
  }
  if (!node::names_machine(options_.holder_identity) && start->spread == Duration::zero()) {
    return kNever;
  }
  if (const SteadyTime due = std::max(start->at, next_); now.steady < due) {
    return due;
  }
  const SteadyTime sent = options_.clock();
  auto renewed =
      api_.renew_held(options_.node_name, options_.holder_identity, rfc3339_micro(now.wall));
  if (!renewed && renewed.error().unanswered()) {
    failed(renewed.error(), now);
    return next_;
  }
  if (!renewed || renewed->owner_node_uid.empty()) {
    holds_none_ = true;
    next_ = {};
    return kNever;
  }
  lease_ = *std::move(renewed);
  lease_uid_ = lease_->owner_node_uid;
  last_renew_ = now.wall;
  succeeded(now, options_.clock() - sent);
  // The last renewTime, if our clock is behind it: only a later one counts.
  if (const auto before = parse_rfc3339(lease_->acquire_time); before && *before >= now.wall) {
    last_renew_ = *before;
    next_ = now.steady;
  }
  return next_;
}

SteadyTime LeaseSync::step(Now now) {
  const auto published = link_.node_uid.get();
  if (!published && !lease_) {
    return renew_held(now);
  }
  const std::string uid = published ? *published : lease_uid_;
  if (uid.empty()) {
    lease_.reset();
    foreign_.reset();
    next_ = {};
    return kNever;
  }
  const bool owner_changed = uid != lease_uid_;
  if (now.steady < next_ && !owner_changed) {
    return next_;
  }
  const SteadyTime sent = options_.clock();
  const Status renewed = renew(now, uid);
  lease_uid_ = uid;
  if (renewed) {
    succeeded(now, options_.clock() - sent);
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
  const bool timed_out_again = timed_out_ && error.code == Code::kTimeout;
  timed_out_ = error.code == Code::kTimeout;
  const auto before = link_.status.get();
  LeaseStatus status = before ? *before : LeaseStatus{};
  status.last_error = error.reason();
  if (foreign_until_) {
    status.foreign_at = now.steady;
    status.foreign_holder = foreign_;
  }
  link_.status.set(std::move(status));
  // Caps the pause that a server requests: the node must not become NotReady by it.
  const auto requested =
      std::min(error.retry_after, std::optional<Duration>{options_.duration / 4});
  next_ = foreign_until_ ? *foreign_until_ : now.steady + backoff_.next(requested);
  // The Lease is late already. Each attempt costs the server another TLS handshake, and in its
  // queue of connections those that have been given up stand before the next ones.
  if (timed_out_again) {
    next_ = std::max(next_,
                     now.steady + options_.duration / 2 + part_of(options_.duration / 2, random_));
  }
}

void LeaseSync::succeeded(Now now, Duration latency) {
  const auto before = link_.status.get();
  const bool is_first = !before || !before->renewed_at;
  if (failing_) {
    log::info("lease of node " + options_.node_name + " is renewed again");
  }
  failing_ = timed_out_ = false;
  backoff_.reset();
  link_.status.set({now.wall, now.steady, "", std::nullopt, std::nullopt});
  const auto start = is_first ? link_.start.get() : nullptr;
  next_ = now.steady +
          (is_first ? node::renew_out_of_step(options_.duration,
                                              start ? start->spread : Duration::zero(), random_)
                    : node::renew_interval(options_.duration, latency, random_));
}

Status LeaseSync::load(Now now, bool just_written) {
  auto current = api_.get(options_.node_name);
  if (current) {
    lease_ = std::move(*current);
    TRY(check_holder(now, just_written));
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
Status LeaseSync::check_holder(Now now, bool just_written) {
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
  foreign_until_ = ruling.again;
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
  // A write that timed out may have been made, so our resourceVersion may be stale.
  if (lease_ && timed_out_ && lease_->owner_node_uid == uid &&
      lease_->holder_identity == wanted.holder_identity) {
    auto renewed = api_.renew_held(wanted.name, wanted.holder_identity, wanted.renew_time);
    if (!renewed && renewed.error().code == Code::kInvalid) {
      timed_out_ = false;
      return Error{Code::kConflict, renewed.error().message};
    }
    lease_ = TRY(std::move(renewed));
  } else {
    lease_ = TRY(lease_ ? api_.update(wanted) : api_.create(wanted));
  }
  last_renew_ = renew;
  return {};
}

Status LeaseSync::renew(Now now, const std::string& uid) {
  if (std::exchange(foreign_until_, std::nullopt)) {
    TRY(load(now, false));
  }
  Status last;
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    const bool had_lease = lease_.has_value();
    last = write(now, uid);
    if (last) {
      return last;
    }
    const Code code = last.error().code;
    // A create that failed for lack of its namespace will fail again at once.
    if (code != Code::kConflict && !(code == Code::kNotFound && lease_)) {
      return last;
    }
    // Somebody else wrote or removed it: start again from what is there.
    TRY(load(now, had_lease && code == Code::kConflict));
  }
  return last;
}

}  // namespace slurmlet::sync
