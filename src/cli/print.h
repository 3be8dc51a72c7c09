#pragma once

// What a command prints for its user, fit for a terminal.

#include <cstdio>
#include <string>

#include "base/plain_text.h"

namespace slurmlet::cli {

inline void print(const std::string& text) {
  const std::string shown = shown_controls(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

}  // namespace slurmlet::cli
