#pragma once

// Whether a Node's Lease is renewed, by our own clock, since its holder sets renewTime.

#include <algorithm>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kube/api.h"

namespace slurmlet::op {

// The minimum; a longer Lease is watched for three times its duration.
inline constexpr Duration kLeaseWatched = std::chrono::minutes{2};

class LeaseWatch {
 public:
  enum class Seen { kNotLongEnough, kRenewed, kNotRenewed };

  // `lease`: as it is now; an Error = there is none. kRenewed: recently.
  Seen observe(const Result<kube::Lease>& lease, SteadyTime now) {
    const std::string version = lease ? lease->resource_version : "";
    if (!version_ || *version_ != version) {
      renewed_ = version_.has_value();
      version_ = version;
      since_ = now;
    }
    watched_ = std::max<Duration>(kLeaseWatched,
                                  3 * std::chrono::seconds{lease ? lease->duration_seconds : 0});
    if (now >= known_at()) {
      return Seen::kNotRenewed;
    }
    return renewed_ ? Seen::kRenewed : Seen::kNotLongEnough;
  }
  // When observe() returns kNotRenewed, unless the Lease changes before.
  SteadyTime known_at() const { return since_ + watched_; }

 private:
  std::optional<std::string> version_;
  SteadyTime since_{};
  Duration watched_{};
  bool renewed_ = false;
};

}  // namespace slurmlet::op
