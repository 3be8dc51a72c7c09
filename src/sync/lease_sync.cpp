#include "sync/lease_sync.h"

#include <utility>

#include "base/log.h"
#include "base/rfc3339.h"
#include "node/lease_policy.h"

namespace slurmlet::sync {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kWriteAttempts = 5;  // kubelet's

}  // namespace

LeaseSync::LeaseSync(kube::LeaseApi& api, LeaseOptions options, Random random,
                     const Published<std::string>& node_uid, Published<LeaseStatus>& status)
    : api_(api),
      options_(std::move(options)),
      random_(std::move(random)),
      node_uid_(node_uid),
      status_(status),
      backoff_(milliseconds{200}, seconds{7}, random_) {}

SteadyTime LeaseSync::step(Now now) {
  const auto uid = node_uid_.get();
  if (!uid || uid->empty()) {
    lease_.reset();
    next_ = {};
    return kNever;
  }
  const bool owner_changed = *uid != lease_uid_;
  if (now.steady < next_ && !owner_changed) {
    return next_;
  }
  if (const Status renewed = renew(now, *uid); !renewed) {
    if (!failing_) {
      log::warning("lease of node " + options_.node_name +
                   " not renewed: " + renewed.error().message);
    }
    failing_ = true;
    const auto before = status_.get();
    LeaseStatus status = before ? *before : LeaseStatus{};
    status.last_error = renewed.error().message;
    status_.set(std::move(status));
    lease_uid_ = *uid;
    next_ = now.steady + backoff_.next();
    return next_;
  }
  lease_uid_ = *uid;
  succeeded(now);
  return next_;
}

void LeaseSync::succeeded(Now now) {
  if (failing_) {
    log::info("lease of node " + options_.node_name + " is renewed again");
  }
  failing_ = false;
  backoff_.reset();
  status_.set({now.wall, now.steady, ""});
  next_ = now.steady + node::renew_interval(options_.duration, random_);
}

Status LeaseSync::load() {
  auto current = api_.get(options_.node_name);
  if (current) {
    lease_ = std::move(*current);
    if (const auto seen = parse_rfc3339(lease_->renew_time)) {
      last_renew_ = std::max(last_renew_, *seen);
    }
    return {};
  }
  lease_.reset();
  return current.error().code == Code::kNotFound ? Status{} : Status{current.error()};
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
  auto written = lease_ ? api_.update(wanted) : api_.create(wanted);
  if (!written) {
    return written.error();
  }
  lease_ = std::move(*written);
  last_renew_ = renew;
  return {};
}

Status LeaseSync::renew(Now now, const std::string& uid) {
  if (!lease_) {
    if (const Status loaded = load(); !loaded) {
      return loaded;
    }
  }
  Status last;
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    last = write(now, uid);
    if (last) {
      return last;
    }
    const Code code = last.error().code;
    if (code != Code::kConflict && code != Code::kNotFound) {
      return last;
    }
    // Somebody else wrote or removed it: start again from what is there.
    if (const Status loaded = load(); !loaded) {
      return loaded;
    }
  }
  return last;
}

}  // namespace slurmlet::sync
