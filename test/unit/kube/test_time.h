#pragma once

#include <chrono>

#include "base/clock.h"

namespace slurmlet::kube {

inline const WallTime kNow{std::chrono::seconds{1795183200}};

}  // namespace slurmlet::kube
