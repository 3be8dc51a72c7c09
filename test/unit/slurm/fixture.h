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

// A capture query-CASE.out, which is older than the columns of active features, reservation and
// comment, as the query of today prints it.
inline std::string query_answer(const std::string& name) {
  std::istringstream lines{fixture(name)};
  std::string out;
  for (std::string line; std::getline(lines, line); out += line + "\n") {
    if (!line.starts_with("nid000001|")) {
      continue;  // a Reason goes on
    }
    std::size_t at = 0;
    std::size_t features = 0;
    for (int bar = 1; bar <= 15; ++bar) {
      const auto next = line.find('|', at);
      EXPECT_NE(next, std::string::npos) << line;
      if (bar == 12) {
        features = at;
      }
      at = next + 1;
      if (bar == 12) {
        const std::string active = line.substr(features, at - features);
        line.insert(at, active);
        at += active.size();
      } else if (bar == 13) {
        line.insert(at, "|");
        ++at;
      }
    }
    line.insert(at, "(null)\x1f");
  }
  return out;
}

}  // namespace slurmlet::slurm
