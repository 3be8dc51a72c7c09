// Conditions of Slurm's states and flags.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "node/conditions.h"
#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::AllOf;
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
      {"IDLE", {"PERFCTRS"}, {"Idle", "Perfctrs"}},
      {"IDLE", {"POWER_DOWN", "POWER_DRAIN"}, {"Idle", "PowerDown", "PowerDrain"}},
      {"IDLE", {"POWERING_DOWN"}, {"Idle", "PoweringDown"}},
      {"IDLE", {"POWER_UP", "POWERING_UP"}, {"Idle", "PowerUp", "PoweringUp"}},
      {"MIXED", {"REBOOT_REQUESTED"}, {"Mixed", "RebootRequested"}},
      {"IDLE", {"DYNAMIC_FUTURE"}, {"Idle", "DynamicFuture"}},
      {"IDLE", {"RESUME", "UNDRAIN"}, {"Idle", "Resume", "Undrain"}},
      // flips every backfill cycle, so it is in the annotation only
      {"IDLE", {"PLANNED"}, {"Idle"}},
      // what Slurm has no word for, and what is no word
      {"IDLE", {"?"}, {"Idle", "Other"}},
      {"?", {"DRAIN"}, {"Drain", "Other"}},
      {"", {"DRAIN"}, {"Drain"}},
      {"IDLE", {"", "A B", "A/B"}, {"Idle", "Other"}},
      {"IDLE", {"_", "3D", "\xc3\xa4"}, {"Idle", "Other"}},
      {"IDLE", {std::string(64, 'A')}, {"Idle", "Other"}},
      {"IDLE", {"OTHER"}, {"Idle", "Other"}},
      // two words of one type
      {"IDLE", {"A_B", "A__B"}, {"Idle", "AB", "Other"}},
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
  const struct {
    const char* base;
    std::set<std::string> flags;
    const char* reason;
  } kRows[] = {{"MIXED", {"DRAIN"}, "Draining"},
               {"ALLOCATED", {"DRAIN"}, "Draining"},
               {"IDLE", {"DRAIN", "COMPLETING"}, "Draining"},
               {"IDLE", {"DRAIN"}, "Drained"},
               {"DOWN", {"DRAIN"}, "Drained"}};
  for (const auto& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    const auto drain = [&facts] {
      return condition_of(slurm_state_conditions(facts), "SlurmNodeStateDrain");
    };
    EXPECT_EQ(drain().status, "True");
    EXPECT_EQ(drain().reason, row.reason);
    EXPECT_THAT(drain().message, Not(HasSubstr("\"")));
    facts.slurm.record->reason = "bad dimm";
    facts.slurm.record->reason_user = "root";
    facts.slurm.record->reason_time = time_of("2026-11-20T14:02:11Z");
    EXPECT_THAT(drain().message, AllOf(HasSubstr("root"), HasSubstr("2026-11-20T14:02:11Z"),
                                       HasSubstr("\"bad dimm\""), HasSubstr("jobs are")));
  }
}

LocalJobs running(std::vector<std::uint32_t> ids) {
  LocalJobs jobs;
  jobs.jobs = static_cast<int>(ids.size());
  jobs.job_ids = std::move(ids);
  return jobs;
}

TEST(SlurmStateConditionsTest, DrainingSaysWhatIsStillRunning) {
  std::vector<std::uint32_t> many(25);
  std::iota(many.begin(), many.end(), 1);
  const struct {
    const char* base;
    std::set<std::string> flags;
    std::optional<LocalJobs> jobs;
    const char* words;
    const char* ids;  // where they are published
  } kRows[] = {
      {"MIXED", {}, std::nullopt, "jobs are still running", ""},
      {"MIXED", {}, running({7}), "1 job is still running", "(7)"},
      {"ALLOCATED", {}, running({1234, 1235}), "2 jobs are still running", "(1234, 1235)"},
      {"MIXED", {}, running(many), "25 jobs are still running", "20, and 5 more)"},
      {"MIXED", {}, LocalJobs{2, 4}, "2 jobs are still running", ""},
      {"IDLE", {"COMPLETING"}, running({}), "completing", ""},
      // an salloc or a job between its steps leaves no trace here
      {"ALLOCATED", {}, running({}), "no process on this node", ""},
      {"MIXED", {}, running({}), "no process on this node", ""},
      // Slurm has given up on the node, or has not noticed yet; the machine knows better
      {"DOWN", {}, running({7}), "1 job is still running", "(7)"},
      {"IDLE", {}, running({7}), "1 job is still running", "(7)"},
  };
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.words);
    HostFacts facts = facts_in_state(row.base, row.flags);
    facts.slurm.record->state.flags.insert("DRAIN");
    facts.jobs = row.jobs;
    NodePolicy policy;
    auto drain = condition_of(slurm_state_conditions(facts, policy), "SlurmNodeStateDrain");
    EXPECT_EQ(drain.reason, "Draining");
    EXPECT_THAT(drain.message, AllOf(HasSubstr(row.words), Not(HasSubstr("("))));
    policy.publish_job_ids = true;
    drain = condition_of(slurm_state_conditions(facts, policy), "SlurmNodeStateDrain");
    EXPECT_THAT(drain.message, AllOf(HasSubstr(row.words), HasSubstr(row.ids)));
  }
}

std::string message_of(const HostFacts& facts, const char* word) {
  return condition_of(slurm_state_conditions(facts), std::string{"SlurmNodeState"} + word).message;
}

TEST(SlurmStateConditionsTest, OddWordsAreListedInOneCondition) {
  HostFacts facts = facts_in_state("IDLE", {"?", "A/B"});
  EXPECT_EQ(condition_of(slurm_state_conditions(facts), "SlurmNodeStateOther").reason,
            "NotUnderstood");
  EXPECT_THAT(message_of(facts, "Other"), HasSubstr("\"?\", \"A/B\""));
  for (int i = 0; i < 100; ++i) {
    facts.slurm.record->state.flags.insert("?" + std::to_string(i) + std::string(1000, 'x'));
  }
  EXPECT_LT(message_of(facts, "Other").size(), 2000U);
  EXPECT_THAT(message_of(facts, "Other"), HasSubstr("more"));
}

TEST(SlurmStateConditionsTest, NoTypeComesTwice) {
  std::set<std::string> flags{"?", "A_B", "A__B", "a_b", "OTHER", "IDLE", "MIXED", "UNKNOWN"};
  for (const char* base : {"UNKNOWN", "IDLE", "A_B", "OTHER", "DRAIN"}) {
    words(slurm_state_conditions(facts_in_state(base, flags)), "True");  // expects it
  }
}

TEST(SlurmStateConditionsTest, ReservationsAreNamed) {
  HostFacts facts = facts_in_state("IDLE", {"MAINTENANCE", "RESERVED"});
  EXPECT_THAT(message_of(facts, "Reserved"), Not(HasSubstr("\"")));
  facts.slurm.record->reservation = "maint-1";
  EXPECT_THAT(message_of(facts, "Reserved"), HasSubstr("(reservation \"maint-1\")"));
  EXPECT_THAT(message_of(facts, "Maintenance"), HasSubstr("(reservation \"maint-1\")"));
}

TEST(SlurmStateConditionsTest, ARebootSaysWhatFollows) {
  const std::pair<const char*, const char*> kRows[] = {
      {"RESUME", "returns to service"},
      {"UNKNOWN+UNDRAIN+RESUME", "returns to service"},
      {"unknown,resume", "returns to service"},
      {"DOWN", "stays down"},
      {"INVALID", ""},
      {"invalid", ""},
      {"?", ""},
      {"", ""}};
  for (const auto& [next_state, words] : kRows) {
    for (const char* flag : {"REBOOT_REQUESTED", "REBOOT_ISSUED"}) {
      HostFacts facts = facts_in_state("DOWN", {flag});
      facts.slurm.record->next_state = next_state;
      const std::string message =
          message_of(facts, *(flag + 7) == 'R' ? "RebootRequested" : "RebootIssued");
      EXPECT_THAT(message, HasSubstr(words)) << next_state;
      EXPECT_EQ(message.find("afterwards") == message.npos, *words == '\0') << next_state;
    }
  }
}

TEST(SlurmStateConditionsTest, AnInvalidRegistrationShowsSlurmsOwnText) {
  HostFacts facts = facts_in_state("IDLE", {"DRAIN", "INVALID_REG"});
  facts.slurm.record->reason = "Low RealMemory (reported:23000 < 100.00% of configured:60000)";
  EXPECT_THAT(message_of(facts, "InvalidReg"), HasSubstr(facts.slurm.record->reason));
  EXPECT_THAT(slurmd_condition(facts).message, HasSubstr("rejected its registration"));
}

TEST(SlurmStateConditionsTest, ARunningSlurmdContradictsAPoweredDownNode) {
  const char* const kRows[][3] = {{"IDLE", "POWERED_DOWN", "PoweredDown"},
                                  {"IDLE", "POWERING_UP", "PoweringUp"},
                                  {"FUTURE", "CLOUD", "Future"}};
  for (const auto& [base, flag, word] : kRows) {
    SCOPED_TRACE(word);
    HostFacts facts = facts_in_state(base, {flag});
    EXPECT_THAT(message_of(facts, word), HasSubstr("slurmd is running on this machine"));
    EXPECT_THAT(slurmd_condition(facts).message, Not(HasSubstr("responding to slurmctld")));
    EXPECT_EQ(slurmd_condition(facts).status, "True");
    facts.slurmd.liveness = Liveness::kAbsent;
    EXPECT_THAT(message_of(facts, word), Not(HasSubstr("slurmd is running")));
    facts.slurmd = {Liveness::kRunning, 0, "22.05.8", ""};  // a captured answer, no process seen
    EXPECT_THAT(message_of(facts, word), Not(HasSubstr("slurmd is running")));
  }
}

TEST(SlurmStateConditionsTest, AJobThatHasStartedIsNotIdleAndPerhapsNotAll) {
  HostFacts facts = facts_in_state("IDLE");
  facts.jobs = LocalJobs{1, std::nullopt};
  const auto conditions = slurm_state_conditions(facts);
  EXPECT_EQ(words(conditions, "Unknown"), (std::set<std::string>{"Mixed", "Allocated"}));
  EXPECT_EQ(condition_of(conditions, "SlurmNodeStateMixed").reason, "JobStarted");
  EXPECT_EQ(condition_of(conditions, "SlurmNodeStateIdle").status, "False");
  EXPECT_TRUE(words(conditions, "True").empty());
  facts.slurm.record->state.base = "ALLOCATED";
  facts.slurm.record->allocated_cpus = 2;
  EXPECT_EQ(words(slurm_state_conditions(facts), "True"), (std::set<std::string>{"Mixed"}));
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

}  // namespace
}  // namespace slurmlet::node
