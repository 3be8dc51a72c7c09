#pragma once

// Whether a Node's Lease is renewed, by this process's own clock: the renewTime in it is its
// holder's word.

#include <algorithm>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api.h"

namespace slurmlet::op {

// The least, and of a Lease that lasts longer three times its duration.
inline constexpr Duration kLeaseWatched = std::chrono::minutes{2};

class LeaseWatch {
 public:
  enum class Seen { kNotLongEnough, kRenewed, kNotRenewed };

  // The Lease as it is now; an Error = there is none. kRenewed: not long ago.
  Seen look(const Result<kube::Lease>& lease, SteadyTime now) {
    const std::string version = lease ? lease->resource_version : "";
    if (!version_ || *version_ != version) {
      renewed_ = version_.has_value();
      version_ = version;
      since_ = now;
    }
    watched_ = std::max<Duration>(kLeaseWatched,
                                  3 * std::chrono::seconds{lease ? lease->duration_seconds : 0});
    if (now >= tells_at()) {
      return Seen::kNotRenewed;
    }
    return renewed_ ? Seen::kRenewed : Seen::kNotLongEnough;
  }
  // When a look can tell, if nothing renews it until then.
  SteadyTime tells_at() const { return since_ + watched_; }

 private:
  std::optional<std::string> version_;
  SteadyTime since_{};
  Duration watched_{};
  bool renewed_ = false;
};

}  // namespace slurmlet::op
