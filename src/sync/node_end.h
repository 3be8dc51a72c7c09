#pragma once

// What is known of our Node's end, or would be should it be deleted now. Plain values; daemon/
// keeps them over a restart of slurmlet within one boot.

#include <optional>
#include <string>

#include "base/clock.h"
#include "node/machine_end.h"

namespace slurmlet::sync {

struct NodeEnd {
  node::LastSight last;  // cordoned
  // Since when the Node is known to be gone with its Machine; nothing = it was there when last
  // seen. CLOCK_MONOTONIC, so good for one boot.
  std::optional<SteadyTime> gone_at;
  std::string deleted_at;  // the same for people, RFC 3339
  bool operator==(const NodeEnd&) const = default;
};

}  // namespace slurmlet::sync
