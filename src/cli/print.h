#pragma once

// How a command ends; what it prints: base/print.h.

#include "base/log.h"
#include "base/print.h"
#include "base/result.h"

namespace slurmlet::cli {

inline constexpr int kFailed = 1;
inline constexpr int kBadConfiguration = 2;

inline int fail(const Error& error, int exit_code) {
  log::error_lines(error.message);
  return exit_code;
}

}  // namespace slurmlet::cli
