#pragma once

// Chance that always says the same.

#include "base/delay.h"

namespace slurmlet::fakes {

inline Random fixed_random(double value) {
  return [value] { return value; };
}

}  // namespace slurmlet::fakes
