#pragma once

// What a command prints for its user, fit for a terminal.

#include <cstdio>
#include <string>

#include "base/plain_text.h"

namespace slurmlet {

inline void print(const std::string& text) {
  const std::string shown = shown_controls(text);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

// A line at once: of work that takes a while.
inline void say(const std::string& line) {
  print(line + "\n");
  std::fflush(stdout);
}

}  // namespace slurmlet
