#include "slurm/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/text.h"
#include "fixture.h"

namespace slurmlet::slurm {
namespace {

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
      const auto complete = parse_state(field_of(fixture(stem + ".detail.out"), "State"));
      const std::string row = fixture(stem + ".sinfo.out");
      const auto columns = split(row, '|');
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

}  // namespace
}  // namespace slurmlet::slurm
