// Conditions of the machine and of Slurm's states; Ready is in ready_test.cpp.

#include "node/conditions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Liveness = SlurmdFacts::Liveness;

const std::set<std::string> kCoreWords{"Idle",          "Mixed",     "Allocated", "Completing",
                                       "Drain",         "Down",      "Fail",      "Maintenance",
                                       "NotResponding", "InvalidReg"};

// The words of all SlurmNodeState conditions with that status.
std::set<std::string> words(const std::vector<Condition>& conditions, const std::string& status) {
  std::set<std::string> out;
  for (const auto& condition : conditions) {
    EXPECT_TRUE(condition.type.starts_with("SlurmNodeState")) << condition.type;
    if (condition.status == status) {
      EXPECT_TRUE(out.insert(condition.type.substr(14)).second) << condition.type << " twice";
    }
  }
  return out;
}

struct StateRow {
  const char* base;
  std::set<std::string> flags;
  std::set<std::string> holding;
};

TEST(SlurmStateConditionsTest, EveryStateAndFlag) {
  const StateRow kRows[] = {
      {"IDLE", {}, {"Idle"}},
      {"MIXED", {}, {"Mixed"}},
      {"ALLOCATED", {}, {"Allocated"}},
      {"DOWN", {}, {"Down"}},
      {"IDLE", {"COMPLETING"}, {"Idle", "Completing"}},
      {"ALLOCATED", {"COMPLETING", "DRAIN"}, {"Allocated", "Completing", "Drain"}},
      {"IDLE", {"DRAIN"}, {"Idle", "Drain"}},
      {"DOWN", {"DRAIN", "NOT_RESPONDING"}, {"Down", "Drain", "NotResponding"}},
      {"MIXED", {"FAIL"}, {"Mixed", "Fail"}},
      {"IDLE", {"MAINTENANCE", "RESERVED"}, {"Idle", "Maintenance", "Reserved"}},
      {"UNKNOWN", {"DRAIN", "INVALID_REG"}, {"Unknown", "Drain", "InvalidReg"}},
      {"IDLE", {"DRAIN", "INVALID_REG"}, {"Idle", "Drain", "InvalidReg"}},
      {"FUTURE", {}, {"Future"}},
      {"ERROR", {}, {"Error"}},
      {"IDLE", {"POWERED_DOWN"}, {"Idle", "PoweredDown"}},
      {"DOWN", {"REBOOT_ISSUED"}, {"Down", "RebootIssued"}},
      {"IDLE", {"CLOUD", "DYNAMIC_NORM"}, {"Idle", "Cloud", "DynamicNorm"}},
      {"IDLE", {"BLOCKED"}, {"Idle", "Blocked"}},
      // flips every backfill cycle, so it is in the annotation only
      {"IDLE", {"PLANNED"}, {"Idle"}},
      // what Slurm has no word for, and what is no word
      {"IDLE", {"?"}, {"Idle"}},
      {"?", {"DRAIN"}, {"Drain"}},
      {"", {"DRAIN"}, {"Drain"}},
      {"IDLE", {"", "A B", "A/B"}, {"Idle"}},
      // of a future Slurm
      {"IDLE", {"QUANTUM_LINKED"}, {"Idle", "QuantumLinked"}},
      {"HOVERING", {}, {"Hovering"}},
      // a base word among the flags is no second condition
      {"IDLE", {"DOWN"}, {"Idle"}},
  };
  for (const StateRow& row : kRows) {
    const HostFacts facts = facts_in_state(row.base, row.flags);
    const auto conditions = slurm_state_conditions(facts);
    const std::string raw = facts.slurm.record->state.raw();
    EXPECT_EQ(words(conditions, "True"), row.holding) << raw;
    std::set<std::string> others = kCoreWords;
    for (const auto& word : row.holding) {
      others.erase(word);
    }
    EXPECT_EQ(words(conditions, "False"), others) << raw;  // the core is always complete
    EXPECT_TRUE(words(conditions, "Unknown").empty()) << raw;
  }
}

TEST(SlurmStateConditionsTest, EveryConditionHasACamelCaseReasonAndASentence) {
  for (const auto& facts : {facts_in_state("MIXED", {"DRAIN", "COMPLETING", "X_Y"}),
                            facts_in_state("DOWN", {"FAIL", "NOT_RESPONDING", "INVALID_REG"}),
                            facts_in_state("IDLE", {"MAINTENANCE"}), facts_in_state("ALLOCATED")}) {
    for (const auto& condition : slurm_state_conditions(facts)) {
      EXPECT_THAT(condition.reason, ::testing::MatchesRegex("[A-Z][A-Za-z]+")) << condition.type;
      EXPECT_FALSE(condition.message.empty()) << condition.type;
    }
  }
}

TEST(SlurmStateConditionsTest, UnknownWhileSlurmCannotBeAsked) {
  HostFacts facts = facts_in_state("IDLE", {"RESERVED"});
  facts.slurm.stale = true;
  facts.slurm.failure = SlurmFailure::kMungeUnavailable;
  const auto conditions = slurm_state_conditions(facts);
  EXPECT_EQ(words(conditions, "Unknown"), kCoreWords);
  EXPECT_EQ(conditions.size(), kCoreWords.size());
  EXPECT_EQ(condition_of(conditions, "SlurmNodeStateDrain").reason, "MungeUnavailable");
}

TEST(SlurmStateConditionsTest, DrainSaysWhoWhenAndWhy) {
  struct Row {
    const char* base;
    std::set<std::string> flags;
    const char* reason;
    const char* words;
  };
  const Row kRows[] = {
      {"MIXED",
       {"DRAIN"},
       "Draining",
       "draining by root since 2026-11-20T14:02:11Z: \"bad dimm\"; jobs are still running"},
      {"ALLOCATED",
       {"DRAIN"},
       "Draining",
       "draining by root since 2026-11-20T14:02:11Z: \"bad dimm\"; jobs are still running"},
      {"IDLE",
       {"DRAIN", "COMPLETING"},
       "Draining",
       "draining by root since 2026-11-20T14:02:11Z: \"bad dimm\"; jobs are still running"},
      {"IDLE",
       {"DRAIN"},
       "Drained",
       "drained by root since 2026-11-20T14:02:11Z: \"bad dimm\"; no jobs are running"},
      {"DOWN",
       {"DRAIN"},
       "Drained",
       "drained by root since 2026-11-20T14:02:11Z: \"bad dimm\"; no jobs are running"},
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    facts.slurm.record->reason = "bad dimm";
    facts.slurm.record->reason_user = "root";
    facts.slurm.record->reason_time = time_of("2026-11-20T14:02:11Z");
    const auto drain = condition_of(slurm_state_conditions(facts), "SlurmNodeStateDrain");
    EXPECT_EQ(drain, (Condition{"SlurmNodeStateDrain", "True", row.reason, row.words}));
  }
}

TEST(SlurmStateConditionsTest, DrainWithoutDetails) {
  const auto drain = condition_of(slurm_state_conditions(facts_in_state("IDLE", {"DRAIN"})),
                                  "SlurmNodeStateDrain");
  EXPECT_EQ(drain.message, "drained; no jobs are running");
}

// A stale MIXED must not keep a drained node "draining" for ever.
TEST(SlurmStateConditionsTest, DrainedWhenTheMachineSeesNoJobs) {
  HostFacts facts = facts_in_state("MIXED", {"DRAIN"});
  facts.jobs = LocalJobs{};
  EXPECT_EQ(condition_of(slurm_state_conditions(facts), "SlurmNodeStateDrain").reason, "Drained");
}

// Slurm keeps a reason after what it explained is over.
TEST(SlurmStateConditionsTest, TheReasonIsShownWithBadStatesOnly) {
  HostFacts facts = facts_in_state("DOWN", {"FAIL", "NOT_RESPONDING", "MAINTENANCE"});
  facts.slurm.record->reason = "psu broken";
  const auto bad = slurm_state_conditions(facts);
  for (const char* type :
       {"SlurmNodeStateDown", "SlurmNodeStateFail", "SlurmNodeStateNotResponding"}) {
    EXPECT_THAT(condition_of(bad, type).message, HasSubstr("\"psu broken\"")) << type;
  }
  EXPECT_THAT(condition_of(bad, "SlurmNodeStateMaintenance").message, Not(HasSubstr("psu")));
  facts.slurm.record->state = {"IDLE", {}};
  for (const auto& condition : slurm_state_conditions(facts)) {
    EXPECT_THAT(condition.message, Not(HasSubstr("psu"))) << condition.type;
  }
}

TEST(SlurmdConditionTest, EachLiveness) {
  struct Row {
    Liveness liveness;
    const char* status;
    const char* reason;
    const char* words;
  };
  const Row kRows[] = {
      {Liveness::kRunning, "True", "SlurmdRunning",
       "slurmd 22.05.8 is running and slurmctld talks to it"},
      {Liveness::kStopped, "False", "SlurmdStopped", "slurmd 22.05.8 is stopped"},
      {Liveness::kAbsent, "False", "SlurmdNotRunning", "slurmd is not running on this machine"},
      {Liveness::kUnknown, "Unknown", "SlurmdUnknown", "cannot tell"},
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
  EXPECT_THAT(slurmd_condition(facts).message, HasSubstr("slurmctld does not hear from it"));
  facts.slurm = {};
  EXPECT_EQ(slurmd_condition(facts).message, "slurmd 22.05.8 is running");
  facts.slurmd.version = "";
  EXPECT_EQ(slurmd_condition(facts).message, "slurmd is running");
  facts.slurmd = {Liveness::kUnknown, 0, "", "/proc cannot be read"};
  EXPECT_EQ(slurmd_condition(facts).message, "/proc cannot be read");
  facts.slurmd.liveness = Liveness::kAbsent;
  facts.jobs = LocalJobs{1, std::nullopt};
  EXPECT_THAT(slurmd_condition(facts).message, HasSubstr("processes of its jobs still are"));
}

TEST(SlurmdConditionTest, AnExternalNodeHasNone) {
  HostFacts facts = facts_in_state("IDLE", {"EXTERNAL"});
  facts.slurmd.liveness = Liveness::kAbsent;
  const Condition condition = slurmd_condition(facts);
  EXPECT_EQ(condition.status, "Unknown");
  EXPECT_EQ(condition.reason, "ExternalNode");
  EXPECT_EQ(words(slurm_state_conditions(facts), "True"),
            (std::set<std::string>{"Idle", "External"}));
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

TEST(MachineConditionsTest, NetworkIsNeverUnavailable) {
  const auto condition = condition_of(machine_conditions({}), "NetworkUnavailable");
  EXPECT_EQ(condition.status, "False");
}

}  // namespace
}  // namespace slurmlet::node
