#pragma once

// Captures of slurmrestd as `curl -i` prints them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "fixture.h"

namespace slurmlet::slurm {

struct RestCapture {
  int status = 0;
  std::string body;
};

inline RestCapture rest_capture(const std::string& name) {
  const std::string text = fixture(name);
  const auto end = text.find("\r\n\r\n");
  EXPECT_TRUE(text.starts_with("HTTP/1.1 ") && end != std::string::npos) << name;
  return {std::atoi(text.substr(9, 3).c_str()), text.substr(end + 4)};
}

}  // namespace slurmlet::slurm
