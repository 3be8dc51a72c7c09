// Conditions of the machine and of slurmd; Slurm's states are in state_conditions_test.cpp, Ready
// in ready_test.cpp.

#include "node/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Liveness = SlurmdFacts::Liveness;

TEST(SlurmdConditionTest, EachLiveness) {
  struct Row {
    Liveness liveness;
    const char* status;
    const char* reason;
    const char* words;
  };
  const Row kRows[] = {
      {Liveness::kRunning, "True", "SlurmdRunning",
       "slurmd 22.05.8 is running and responding to slurmctld"},
      {Liveness::kStopped, "False", "SlurmdStopped", "slurmd 22.05.8 is suspended"},
      {Liveness::kAbsent, "False", "SlurmdNotRunning", "slurmd is not running on this machine"},
      {Liveness::kUnknown, "Unknown", "SlurmdUnknown", "cannot determine"},
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state("IDLE");
    facts.slurmd.liveness = row.liveness;
    const Condition condition = slurmd_condition(facts);
    EXPECT_EQ(condition.type, "SlurmdReady");
    EXPECT_EQ(condition.status, row.status) << row.reason;
    EXPECT_EQ(condition.reason, row.reason);
    EXPECT_THAT(condition.message, HasSubstr(row.words));
  }
}

TEST(SlurmdConditionTest, Details) {
  HostFacts facts = facts_in_state("IDLE", {"NOT_RESPONDING"});
  EXPECT_THAT(slurmd_condition(facts).message, HasSubstr("does not respond to slurmctld"));
  facts.slurm = {};
  EXPECT_THAT(slurmd_condition(facts).message, HasSubstr("22.05.8"));
  facts.slurmd = {Liveness::kUnknown, 0, "", "/proc cannot be read"};
  EXPECT_EQ(slurmd_condition(facts).message, "/proc cannot be read");
  facts.slurmd.liveness = Liveness::kAbsent;
  facts.slurmd.detail = "slurmd.service: failed (exit-code 1)";
  facts.jobs = LocalJobs{1, std::nullopt};
  EXPECT_THAT(slurmd_condition(facts).message,
              AllOf(HasSubstr("job processes are still running"),
                    HasSubstr("slurmd.service: failed (exit-code 1)")));
}

TEST(SlurmdConditionTest, AnExternalNodeHasNone) {
  HostFacts facts = facts_in_state("IDLE", {"EXTERNAL"});
  facts.slurmd.liveness = Liveness::kAbsent;
  const Condition condition = slurmd_condition(facts);
  EXPECT_EQ(condition.status, "Unknown");
  EXPECT_EQ(condition.reason, "ExternalNode");
  EXPECT_EQ(condition_of(slurm_state_conditions(facts), "SlurmNodeStateExternal").status, "True");
}

TEST(MachineConditionsTest, GoodAndBadAndUnknown) {
  struct Row {
    const char* type;
    std::optional<Pressure> MachineFacts::*fact;
    const char* good;
    const char* bad;
  };
  const Row kRows[] = {
      {"MemoryPressure", &MachineFacts::memory_pressure, "KubeletHasSufficientMemory",
       "KubeletHasInsufficientMemory"},
      {"DiskPressure", &MachineFacts::disk_pressure, "KubeletHasNoDiskPressure",
       "KubeletHasDiskPressure"},
      {"PIDPressure", &MachineFacts::pid_pressure, "KubeletHasSufficientPID",
       "KubeletHasInsufficientPID"},
  };
  for (const Row& row : kRows) {
    MachineFacts machine = good_facts().machine;
    Condition condition = condition_of(machine_conditions(machine), row.type);
    EXPECT_EQ(condition.status, "False") << row.type;
    EXPECT_EQ(condition.reason, row.good);
    machine.*row.fact = Pressure{true, "there is too little"};
    condition = condition_of(machine_conditions(machine), row.type);
    EXPECT_EQ(condition, (Condition{row.type, "True", row.bad, "there is too little"}));
    machine.*row.fact = std::nullopt;
    condition = condition_of(machine_conditions(machine), row.type);
    EXPECT_EQ(condition.status, "Unknown") << row.type;
  }
}

TEST(MachineConditionsTest, AStateDirectoryThatHangsIsNamed) {
  MachineFacts machine = good_facts().machine;
  machine.disk_pressure.reset();
  machine.disk_problem = "/state did not answer for 5 s";
  const auto condition = condition_of(machine_conditions(machine), "DiskPressure");
  EXPECT_EQ(condition.status, "Unknown");
  EXPECT_EQ(condition.reason, "FileSystemNotResponding");
  EXPECT_THAT(condition.message, HasSubstr(machine.disk_problem));
  EXPECT_EQ(condition_of(machine_conditions(machine), "MemoryPressure").status, "False");
  EXPECT_EQ(condition_of(machine_conditions({}), "NetworkUnavailable").status, "False");
}

}  // namespace
}  // namespace slurmlet::node
