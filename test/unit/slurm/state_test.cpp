#include "slurm/answers/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "fixture.h"

namespace slurmlet::slurm {
namespace state_test {

struct Case {
  const char* text;
  const char* raw;  // SlurmState::raw(): base, then flags in alphabetical order
};

void check(const std::vector<Case>& cases) {
  for (const auto& c : cases) {
    EXPECT_EQ(parse_state(c.text).raw(), c.raw) << c.text;
  }
}

TEST(State, ReadsCompleteForms) {
  check({
      {"idle", "IDLE"},
      {"mixed+drain", "MIXED+DRAIN"},
      {"MIXED+DRAIN+NOT_RESPONDING", "MIXED+DRAIN+NOT_RESPONDING"},
      {"idle+cloud+powered_down", "IDLE+CLOUD+POWERED_DOWN"},
      {"unknown+drain+invalid_reg", "UNKNOWN+DRAIN+INVALID_REG"},
      {"down+drain+reboot_issued", "DOWN+DRAIN+REBOOT_ISSUED"},
      {"idle+maintenance+reserved", "IDLE+MAINTENANCE+RESERVED"},
      {"idle+completing", "IDLE+COMPLETING"},
      {"idle+fail", "IDLE+FAIL"},
      {"drain+idle", "IDLE+DRAIN"},
      {"IDLE+DYNAMIC_NORM", "IDLE+DYNAMIC_NORM"},
  });
}

TEST(State, ReadsEveryBaseAndFlagOfEveryRelease) {
  for (const std::string base :
       {"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"}) {
    EXPECT_EQ(parse_state(base), (node::SlurmState{base, {}}));
    for (const std::string flag : {"EXTERNAL",         "RESERVED",
                                   "UNDRAIN",          "CLOUD",
                                   "RESUME",           "DRAIN",
                                   "COMPLETING",       "NOT_RESPONDING",
                                   "POWERED_DOWN",     "FAIL",
                                   "POWERING_UP",      "MAINTENANCE",
                                   "REBOOT_REQUESTED", "REBOOT_CANCEL",
                                   "POWERING_DOWN",    "DYNAMIC_FUTURE",
                                   "REBOOT_ISSUED",    "PLANNED",
                                   "INVALID_REG",      "POWER_DOWN",
                                   "POWER_UP",         "POWER_DRAIN",
                                   "DYNAMIC_NORM",     "BLOCKED",
                                   "PERFCTRS",         "?"}) {
      for (const auto& text : {base + "+" + flag, flag + "+" + base, to_lower(base + "+" + flag)}) {
        EXPECT_EQ(parse_state(text), (node::SlurmState{base, {flag}})) << text;
        EXPECT_TRUE(is_state(text)) << text;
      }
    }
  }
}

TEST(State, FlagsWithoutABaseStandBesideUnknown) {
  check({{"CLOUD+DRAIN", "UNKNOWN+CLOUD+DRAIN"}, {"+", ""}, {"DRAIN+", "UNKNOWN+DRAIN"}});
}

TEST(State, TellsItsWordsFromOtherText) {
  for (const char* text : {"idle", "IDLE+CLOUD", "Allocated", " down ", "DRAIN"}) {
    EXPECT_TRUE(is_state(text)) << text;
  }
  for (const char* text : {"", "+", "batch", "cpu01", "0/8/0/8", "idle+quantum_flux", "idle cpu01",
                           "*", "none", "(null)", "4096", "idle*"}) {
    EXPECT_FALSE(is_state(text)) << text;
  }
}

TEST(State, KeepsWhatItDoesNotKnow) {
  check({
      {"mixed+quantum_flux", "MIXED+QUANTUM_FLUX"},
      {"IDLE+?", "IDLE+?"},
      {"", ""},
  });
}

// Whether the node is in use, or down, is not known then.
TEST(State, AnUnknownWordIsNoBase) {
  for (const char* text : {"hibernating", "hibernating+drain", "DWN*DRAIN", "idle*"}) {
    EXPECT_EQ(parse_state(text).base, "") << text;
  }
}

}  // namespace state_test
}  // namespace slurmlet::slurm
