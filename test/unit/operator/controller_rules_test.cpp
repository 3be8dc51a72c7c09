#include "operator/rules/controller_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "slurm/answers/controllers.h"

namespace slurmlet::op {
namespace controller_rules_test {

using States = std::vector<node::Controller>;

TEST(ControllerRules, Table) {
  using enum ControllerAction;
  const States both{{"ctl1", true}, {"ctl2", true}}, second{{"ctl1", false}, {"ctl2", true}},
      first{{"ctl1", true}, {"ctl2", false}}, none{{"ctl1", false}, {"ctl2", false}},
      only{{"ctl1", true}}, three{{"ctl1", false}, {"ctl2", true}, {"ctl3", true}};
  const struct {
    const char* what;
    ControllerFacts facts;
    ControllerAction action;
    const char* why;
  } kCases[] = {
      {"not known", {{"ctl1"}, std::nullopt}, kUnknown, ""},
      {"in charge, with a backup", {{"ctl1"}, both}, kTakeOver, "ctl2 is to take over from ctl1"},
      {"by a longer name", {{"10.0.0.1", "CTL1.site"}, both}, kTakeOver, "ctl2 is to take over"},
      {"in charge alone", {{"ctl1"}, first}, kNoBackup, "no backup slurmctld answers"},
      {"no other is configured", {{"ctl1"}, only}, kNoBackup, "no backup slurmctld answers"},
      {"none answers", {{"ctl1"}, none}, kNoBackup, "no backup slurmctld answers"},
      {"ended, the backup has not answered yet",
       {{"ctl1"}, second},
       kWait,
       "ctl2 has to answer first"},
      {"ended, the backup answers",
       {{"ctl1"}, second, {}, "", true},
       kHandedOver,
       "not in charge on ctl1"},
      {"a standby", {{"ctl2"}, both, {}, "", true}, kHandedOver, "not in charge on ctl2"},
      {"a standby, not confirmed", {{"ctl2"}, both}, kWait, "ctl1 has to answer first"},
      {"the backup that is in charge",
       {{"ctl2"}, second, {}, "", true},
       kNoBackup,
       "no backup slurmctld"},
      {"its backup goes too",
       {{"ctl1"}, both, {"ctl1", "ctl2"}, "", true},
       kNoBackup,
       "no backup slurmctld"},
      {"a standby, and the primary goes too",
       {{"ctl2"}, both, {"ctl1", "ctl2"}, "", true},
       kNoBackup,
       "no backup slurmctld"},
      {"who is in charge is not certain",
       {{"ctl2"}, three, {}, "", true},
       kTakeOver,
       "ctl3 is to take over"},
      {"that one took over last", {{"ctl2"}, three, {}, "ctl3", true}, kHandedOver, ""},
      {"that one has gone since",
       {{"ctl2"}, second, {}, "ctl3", true},
       kNoBackup,
       "no backup slurmctld"},
      {"it took over last itself",
       {{"ctl2"}, three, {}, "ctl2", true},
       kTakeOver,
       "ctl3 is to take over"},
      {"it does not run, whoever is in charge", {{"ctl1"}, three, {}, "", true}, kHandedOver, ""},
      {"none of its names",
       {{"10.0.0.1", "host7"}, both, {}, "", true},
       kUnknown,
       "(10.0.0.1, host7)"},
      {"no name", {{""}, both, {}, "", true}, kUnknown, "(ctl1, ctl2)"},
      {"two of its names", {{"ctl1", "ctl2"}, both, {}, "", true}, kUnknown, "or more than one"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.what);
    const auto ruling = rule_controller(test.facts);
    EXPECT_EQ(ruling.action, test.action);
    EXPECT_NE(ruling.why.find(test.why), std::string::npos) << ruling.why;
  }
  EXPECT_EQ(rule_controller({{"ctl1"}, both}).backup, 1U);
}

TEST(ControllerRules, ReadsPings) {
  CommandOutput output;
  output.exit_code = 1;  // none is up
  output.out =
      "Slurmctld(primary) at ctl1 is DOWN\nSlurmctld(backup) at ctl2.site is UP\n"
      "*****************************************\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n";
  const auto read = slurm::read_ping(output);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2U);
  EXPECT_TRUE(read->at(0).host == "ctl1" && !read->at(0).up);
  EXPECT_TRUE(read->at(1).host == "ctl2.site" && read->at(1).up);
  output.timed_out = true;
  EXPECT_FALSE(slurm::read_ping(output));
  output = {};
  output.err = "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host\n";
  EXPECT_FALSE(slurm::read_ping(output));
  output.out = "Slurmctld(primary) at ctl1 is SOMETHING\n";
  EXPECT_FALSE(slurm::read_ping(output));
}

// Three slurmctld and their Machines: they die, start, take over and are deleted. No Machine goes
// whose slurmctld is in charge, and none after which no other answers; with a backup that stays all
// goes that is to go.
TEST(ControllerRules, KeepsItsPromisesWhateverComes) {
  int handed_over = 0;
  for (unsigned seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance{seed};
    States all{{"ctl1", true}, {"ctl2", true}, {"ctl3", true}};
    std::vector<bool> deleting(3), gone(3);
    std::optional<std::size_t> in_charge = 0;
    int step = 0, vacant_since = 0, took_over_at = 0;
    const auto end = [&](std::size_t i) {
      all[i].up = false;
      if (in_charge == i) {
        in_charge.reset();
        vacant_since = step;
      }
    };
    const auto elect = [&] {  // SlurmctldTimeout
      const auto next = std::ranges::find_if(all, [](const auto& one) { return one.up; });
      if (!in_charge && next != all.end() && step - vacant_since >= 8) {
        in_charge = static_cast<std::size_t>(next - all.begin());
      }
    };
    const auto start = [&](std::size_t i) {  // a backup comes back as a standby
      all[i].up = all[i].up || !gone[i];
      in_charge = i == 0 && all[0].up ? 0 : in_charge;
    };
    const auto take_over = [&](std::size_t by) {
      if (all[by].up && in_charge != by) {
        if (in_charge) {
          all[*in_charge].up = false;
        }
        in_charge = by;
      }
    };
    std::optional<States> before, last;
    bool answered = false;
    std::string took_over;
    const auto turn = [&] {
      before = std::exchange(last, all);
      for (std::size_t i = 0; i < 3 && before; ++i) {
        const bool is_back = all[i].up && !(*before)[i].up;
        took_over = is_back || step - took_over_at > 6 ? "" : took_over;
      }
      ControllerFacts facts{{}, all, {}, took_over, answered && before == last};
      answered = false;
      for (std::size_t i = 0; i < 3; ++i) {
        if (deleting[i]) {
          facts.leaving.insert(all[i].host);
        }
      }
      for (std::size_t i = 0; i < 3; ++i) {
        if (!deleting[i] || gone[i]) {
          continue;
        }
        facts.names = {all[i].host};
        const auto ruling = rule_controller(facts);
        if (ruling.action == ControllerAction::kTakeOver) {
          take_over(ruling.backup);
          took_over = all[ruling.backup].host;
          took_over_at = step;
          break;  // the next ping shows it
        }
        if (ruling.action == ControllerAction::kHandedOver) {
          ++handed_over;
          EXPECT_NE(in_charge, std::optional{i});
          EXPECT_TRUE(in_charge && all[*in_charge].up);
          gone[i] = true;
          end(i);
          break;
        }
      }
    };
    for (; step < 60; ++step) {
      const std::size_t i = chance() % 3;
      switch (chance() % 6) {
        case 0:
          end(i);
          break;
        case 1:
          start(i);
          break;
        case 2:
          deleting[i] = deleting[i] || chance() % 4 == 0;
          break;
        case 3:
          elect();
          break;
        default:
          answered = in_charge.has_value();  // a dump
          turn();
      }
    }
    if (!deleting[2]) {
      start(2);
      for (int i = 0; i < 40; ++i, ++step) {
        elect();
        answered = in_charge.has_value();
        turn();
      }
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(gone[i], deleting[i]) << i;
      }
    }
  }
  EXPECT_GT(handed_over, 100);
}

}  // namespace controller_rules_test
}  // namespace slurmlet::op
