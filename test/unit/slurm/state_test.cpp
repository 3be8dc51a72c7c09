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

TEST(State, ReadsLongAndShortWordsOfSinfo) {
  check({
      {"draining", "ALLOCATED+DRAIN"},
      {"drng", "ALLOCATED+DRAIN"},
      {"drained", "IDLE+DRAIN"},
      {"drain", "IDLE+DRAIN"},
      {"drained*", "IDLE+DRAIN+NOT_RESPONDING"},
      {"failing", "ALLOCATED+FAIL"},
      {"failg", "ALLOCATED+FAIL"},
      {"fail", "IDLE+FAIL"},
      {"alloc", "ALLOCATED"},
      {"mix", "MIXED"},
      {"unk", "UNKNOWN"},
      {"futr", "FUTURE"},
      {"completing", "IDLE+COMPLETING"},
      {"comp*", "IDLE+COMPLETING+NOT_RESPONDING"},
      {"maint", "IDLE+MAINTENANCE"},
      {"resv", "IDLE+RESERVED"},
      {"plnd", "IDLE+PLANNED"},
      {"planned", "IDLE+PLANNED"},
      {"block", "IDLE+BLOCKED"},
      {"inval", "UNKNOWN+INVALID_REG"},
      {"reboot", "IDLE+REBOOT_REQUESTED"},
      {"boot@", "IDLE+REBOOT_REQUESTED"},
      {"reboot^", "DOWN+REBOOT_ISSUED"},
  });
}

TEST(State, ReadsEverySuffix) {
  check({
      {"idle*", "IDLE+NOT_RESPONDING"},
      {"idle~", "IDLE+POWERED_DOWN"},
      {"idle#", "IDLE+POWERING_UP"},
      {"idle!", "IDLE+POWER_DOWN"},
      {"idle%", "IDLE+POWERING_DOWN"},
      {"idle$", "IDLE+MAINTENANCE"},
      {"allocated@", "ALLOCATED+REBOOT_REQUESTED"},
      {"down^", "DOWN+REBOOT_ISSUED"},
      {"mix-", "MIXED+PLANNED"},
      {"alloc+", "ALLOCATED+COMPLETING"},
  });
}

// slurm/slurm.h, NODE_STATE_*, under the names of slurm_protocol_defs.c; 22.05 … 25.11.
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

TEST(State, ReadsOlderAndRareWords) {
  check({
      {"IDLE*+DRAIN", "IDLE+DRAIN+NOT_RESPONDING"},  // scontrol before 21.08
      {"IDLE+CLOUD*", "IDLE+CLOUD+NOT_RESPONDING"},
      {"idle+no_respond", "IDLE+NOT_RESPONDING"},
      {"idle+maint", "IDLE+MAINTENANCE"},
      {"idle+res", "IDLE+RESERVED"},
      {"mixed+reboot", "MIXED+REBOOT_REQUESTED"},
      {"npc", "IDLE+PERFCTRS"},
      {"perfctrs", "IDLE+PERFCTRS"},
      {"ext", "UNKNOWN+EXTERNAL"},
      {"pow_dn", "UNKNOWN+POWER_DOWN"},
      {"powring_dn", "UNKNOWN+POWERING_DOWN"},
      {"powered_dn", "UNKNOWN+POWERED_DOWN"},
      {"pow_up", "UNKNOWN+POWER_UP"},
      {"cloud", "UNKNOWN+CLOUD"},
      {"resm", "UNKNOWN+RESUME"},
      {"canc_r", "UNKNOWN+REBOOT_CANCEL"},
      {"maint*", "IDLE+MAINTENANCE+NOT_RESPONDING"},
      {"boot*", "IDLE+NOT_RESPONDING+REBOOT_REQUESTED"},
      {"drng%", "ALLOCATED+DRAIN+POWERING_DOWN"},
      {"failing*", "ALLOCATED+FAIL+NOT_RESPONDING"},
      {"futr~", "FUTURE+POWERED_DOWN"},
      {"?", "UNKNOWN+?"},
  });
}

TEST(State, FlagsWithoutABaseStandBesideUnknown) {
  check({{"CLOUD+DRAIN", "UNKNOWN+CLOUD+DRAIN"}, {"+", ""}, {"DRAIN+", "IDLE+COMPLETING+DRAIN"}});
}

TEST(State, TellsItsWordsFromOtherText) {
  for (const char* text : {"idle", "IDLE+CLOUD", "mix-", "drng*", "inval", "Allocated", " down "}) {
    EXPECT_TRUE(is_state(text)) << text;
  }
  for (const char* text : {"", "+", "batch", "cpu01", "0/8/0/8", "idle+quantum_flux", "idle cpu01",
                           "*", "none", "(null)", "4096"}) {
    EXPECT_FALSE(is_state(text)) << text;
  }
}

TEST(State, KeepsWhatItDoesNotKnow) {
  check({
      {"mixed+quantum_flux", "MIXED+QUANTUM_FLUX"},
      {"IDLE+?", "IDLE+?"},
      {"hibernating", "HIBERNATING"},
      {"hibernating+drain", "HIBERNATING+DRAIN"},
      {"", ""},
  });
}

std::string field_of(const std::string& detail, const std::string& key) {
  const auto at = detail.find(" " + key + "=") + key.size() + 2;
  return detail.substr(at, detail.find_first_of(" \n", at) - at);
}

// It would be the same condition twice.
TEST(State, AnUnknownWordTwiceIsNoFlagOfItself) {
  const auto state = parse_state("FROBNICATED+FROBNICATED+DRAIN");
  EXPECT_EQ(state.base, "FROBNICATED");
  EXPECT_EQ(state.flags, (std::set<std::string>{"DRAIN"}));
}

// What sinfo's one word says must be part of what the complete form says, in every release.
TEST(State, WordsOfEveryReleaseFitTheCompleteState) {
  int compared = 0;
  for (const auto& release : kReleases) {
    for (const auto& file : std::filesystem::directory_iterator(fixture_path(release))) {
      const std::string name = file.path().filename();
      if (!name.ends_with(".detail.out")) {
        continue;
      }
      const std::string stem = release + "/" + name.substr(0, name.size() - 11);
      if (fixture(stem + ".detail.out").find(" not found") != std::string::npos) {
        continue;
      }
      const auto complete = parse_state(field_of(fixture(stem + ".detail.out"), "State"));
      const std::string row = fixture(stem + ".sinfo.out");
      const auto columns = split(row, '|');
      if (columns.size() < 3) {  // in no partition
        continue;
      }
      const auto long_word = parse_state(columns[1]);
      EXPECT_EQ(long_word, parse_state(columns[2])) << stem;
      EXPECT_TRUE(std::includes(complete.flags.begin(), complete.flags.end(),
                                long_word.flags.begin(), long_word.flags.end()))
          << stem << ": " << columns[1] << " against " << complete.raw();
      static const std::set<std::string> kBases{"IDLE",  "ALLOCATED", "MIXED",  "DOWN",
                                                "ERROR", "FUTURE",    "UNKNOWN"};
      EXPECT_TRUE(kBases.contains(complete.base)) << stem << ": " << complete.base;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60);
}

TEST(State, WhatAWordOfSinfoHidesIsNotTold) {
  using Words = std::set<std::string>;
  const std::vector<std::pair<const char*, Words>> cases{
      {"idle", {}},
      {"idle+drain", {}},
      {"mix", {}},
      {"down*", {"COMPLETING"}},
      {"completing", {"IDLE", "MIXED"}},
      {"comp*", {"IDLE", "MIXED"}},
      {"fail", {"IDLE", "MIXED", "DOWN", "COMPLETING"}},
      {"failg", {"COMPLETING"}},
      {"alloc+", {}},
      {"drained", {"IDLE", "DOWN"}},
      {"drain*", {"IDLE", "DOWN"}},
      {"draining", {"COMPLETING"}},
      {"idle~", {"NOT_RESPONDING"}},
      {"drained$", {"IDLE", "DOWN", "NOT_RESPONDING"}},
      {"boot^", {"DRAIN", "COMPLETING", "NOT_RESPONDING"}},
      {"", {}},
  };
  for (const auto& [word, hidden] : cases) {
    EXPECT_EQ(hidden_by(word), hidden) << word;
  }
  EXPECT_TRUE(hidden_by("inval").contains("DRAIN"));
}

}  // namespace state_test
}  // namespace slurmlet::slurm
