#pragma once

// Whether a Node's Lease is renewed, by this process's own clock: the renewTime in it is its
// holder's word.

#include <optional>
#include <string>

#include "base/clock.h"

namespace slurmlet::op {

inline constexpr Duration kLeaseWatched = std::chrono::minutes{2};  // three durations

class LeaseWatch {
 public:
  enum class Seen { kNotLongEnough, kRenewed, kNotRenewed };

  // `version`: the resourceVersion now, "" = there is no Lease. kRenewed: within kLeaseWatched.
  Seen look(const std::string& version, SteadyTime now) {
    if (!version_ || *version_ != version) {
      renewed_ = version_.has_value();
      version_ = version;
      since_ = now;
    }
    if (now - since_ >= kLeaseWatched) {
      return Seen::kNotRenewed;
    }
    return renewed_ ? Seen::kRenewed : Seen::kNotLongEnough;
  }
  // When a look can tell, if nothing renews it until then.
  SteadyTime tells_at() const { return since_ + kLeaseWatched; }

 private:
  std::optional<std::string> version_;
  SteadyTime since_{};
  bool renewed_ = false;
};

}  // namespace slurmlet::op
