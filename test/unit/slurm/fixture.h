#pragma once

// Captured output of Slurm releases, see test/fixtures/slurm/README.md.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fixtures.h"

namespace slurmlet::slurm {

inline const std::vector<std::string> kReleases{"22.05.8", "23.02", "24.05", "24.11", "25.11"};

inline std::filesystem::path fixture_path(const std::string& name) {
  return fixtures() / "slurm" / name;
}

inline std::string fixture(const std::string& name) {
  const std::ifstream in{fixture_path(name), std::ios::binary};
  EXPECT_TRUE(in.good()) << "no fixture " << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

}  // namespace slurmlet::slurm
