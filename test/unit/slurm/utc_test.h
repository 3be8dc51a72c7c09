#pragma once

// Times in captures are local to machines in UTC.

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace slurmlet::slurm {

class UtcTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  void TearDown() override {
    unsetenv("TZ");
    tzset();
  }
};

}  // namespace slurmlet::slurm
