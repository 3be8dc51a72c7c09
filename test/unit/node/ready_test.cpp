#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/conditions.h"
#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::HasSubstr;
using Liveness = SlurmdFacts::Liveness;

Condition ready(const HostFacts& facts, ReadyFollows follows, bool grace_over = true) {
  NodePolicy policy = policy_for("n1");
  policy.ready_follows = follows;
  return ready_condition(facts, policy, {grace_over, false});
}

constexpr ReadyFollows kAll[] = {ReadyFollows::kDaemon, ReadyFollows::kSlurmd,
                                 ReadyFollows::kSlurm};

TEST(ReadyTest, FollowsSlurmd) {
  struct Row {
    ReadyFollows follows;
    Liveness liveness;
    bool grace_over;
    const char* status;
    const char* reason;
  };
  const Row kRows[] = {
      {ReadyFollows::kDaemon, Liveness::kRunning, true, "True", "SlurmletRunning"},
      {ReadyFollows::kDaemon, Liveness::kStopped, true, "True", "SlurmletRunning"},
      {ReadyFollows::kDaemon, Liveness::kAbsent, true, "True", "SlurmletRunning"},
      {ReadyFollows::kDaemon, Liveness::kUnknown, true, "True", "SlurmletRunning"},
      {ReadyFollows::kSlurmd, Liveness::kRunning, true, "True", "SlurmdRunning"},
      {ReadyFollows::kSlurmd, Liveness::kRunning, false, "True", "SlurmdRunning"},
      {ReadyFollows::kSlurmd, Liveness::kStopped, true, "False", "SlurmdStopped"},
      {ReadyFollows::kSlurmd, Liveness::kStopped, false, "True", "SlurmdGracePeriod"},
      {ReadyFollows::kSlurmd, Liveness::kAbsent, true, "False", "SlurmdNotRunning"},
      {ReadyFollows::kSlurmd, Liveness::kAbsent, false, "True", "SlurmdGracePeriod"},
      {ReadyFollows::kSlurmd, Liveness::kUnknown, true, "Unknown", "SlurmdUnknown"},
      {ReadyFollows::kSlurmd, Liveness::kUnknown, false, "Unknown", "SlurmdUnknown"},
      {ReadyFollows::kSlurm, Liveness::kRunning, true, "True", "SlurmdRunning"},
      {ReadyFollows::kSlurm, Liveness::kStopped, true, "False", "SlurmdStopped"},
      {ReadyFollows::kSlurm, Liveness::kAbsent, true, "False", "SlurmdNotRunning"},
      {ReadyFollows::kSlurm, Liveness::kAbsent, false, "True", "SlurmdGracePeriod"},
      {ReadyFollows::kSlurm, Liveness::kUnknown, true, "Unknown", "SlurmdUnknown"},
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state("IDLE");
    facts.slurmd.liveness = row.liveness;
    const Condition condition = ready(facts, row.follows, row.grace_over);
    EXPECT_EQ(condition.type, "Ready");
    EXPECT_EQ(condition.status, row.status) << row.reason;
    EXPECT_EQ(condition.reason, row.reason);
    EXPECT_FALSE(condition.message.empty());
  }
}

TEST(ReadyTest, SlurmsVerdictCountsOnlyWhereReadyFollowsSlurm) {
  struct Row {
    const char* base;
    std::set<std::string> flags;
    const char* status;  // with kSlurm
    const char* reason;
  };
  const Row kRows[] = {
      {"IDLE", {}, "True", "SlurmdRunning"},
      {"MIXED", {}, "True", "SlurmdRunning"},
      {"ALLOCATED", {"COMPLETING"}, "True", "SlurmdRunning"},
      {"IDLE", {"DRAIN"}, "True", "SlurmdRunning"},
      {"MIXED", {"DRAIN"}, "True", "SlurmdRunning"},
      {"IDLE", {"MAINTENANCE"}, "True", "SlurmdRunning"},
      {"IDLE", {"PLANNED"}, "True", "SlurmdRunning"},
      {"UNKNOWN", {}, "True", "SlurmdRunning"},
      {"DOWN", {}, "False", "SlurmDown"},
      {"DOWN", {"DRAIN"}, "False", "SlurmDown"},
      {"IDLE", {"FAIL"}, "False", "SlurmFail"},
      {"IDLE", {"NOT_RESPONDING"}, "False", "SlurmNotResponding"},
      {"UNKNOWN", {"INVALID_REG", "DRAIN"}, "False", "SlurmInvalidReg"},
      {"IDLE", {"CLOUD", "POWERED_DOWN"}, "False", "SlurmPoweredDown"},
      {"IDLE", {"POWERING_DOWN"}, "False", "SlurmPoweringDown"},
      {"IDLE", {"POWERING_UP"}, "False", "SlurmPoweringUp"},
      {"IDLE", {"POWER_DOWN"}, "True", "SlurmdRunning"},
      {"DOWN", {"POWERED_DOWN"}, "False", "SlurmDown"},
      {"FUTURE", {}, "False", "SlurmFuture"},
  };
  for (const Row& row : kRows) {
    const HostFacts facts = facts_in_state(row.base, row.flags);
    const std::string raw = facts.slurm.record->state.raw();
    const Condition condition = ready(facts, ReadyFollows::kSlurm);
    EXPECT_EQ(condition.status, row.status) << raw;
    EXPECT_EQ(condition.reason, row.reason) << raw;
    EXPECT_EQ(ready(facts, ReadyFollows::kSlurmd).status, "True") << raw;
    EXPECT_EQ(ready(facts, ReadyFollows::kDaemon).status, "True") << raw;
  }
}

TEST(ReadyTest, SlurmsVerdictQuotesSlurmsReason) {
  HostFacts facts = facts_in_state("DOWN");
  facts.slurm.record->reason = "psu broken";
  facts.slurm.record->reason_user = "root";
  EXPECT_THAT(ready(facts, ReadyFollows::kSlurm).message, HasSubstr("by root: \"psu broken\""));
}

// Ten thousand nodes must not become NotReady because of one slurmctld.
TEST(ReadyTest, ASlurmctldThatCannotBeAskedNeverMakesANodeUnready) {
  for (const SlurmFailure failure :
       {SlurmFailure::kControllerUnreachable, SlurmFailure::kTimeout,
        SlurmFailure::kMungeUnavailable, SlurmFailure::kPermissionDenied, SlurmFailure::kNotInSlurm,
        SlurmFailure::kBadConfiguration, SlurmFailure::kCommandMissing,
        SlurmFailure::kInvalidResponse, SlurmFailure::kRateLimited}) {
    for (const ReadyFollows follows : kAll) {
      HostFacts stale = facts_in_state("DOWN");  // even if the last answer was bad
      stale.slurm.failure = failure;
      stale.slurm.stale = true;
      EXPECT_EQ(ready(stale, follows).status, "True");
      HostFacts never = good_facts();
      never.slurm = {};
      never.slurm.failure = failure;
      EXPECT_EQ(ready(never, follows).status, "True");
    }
  }
  HostFacts not_asked = good_facts();
  not_asked.slurm = {};
  EXPECT_EQ(ready(not_asked, ReadyFollows::kSlurm).status, "True");
}

TEST(ReadyTest, AnExternalNodeNeedsNoSlurmd) {
  HostFacts facts = facts_in_state("IDLE", {"EXTERNAL"});
  facts.slurmd = {};
  facts.slurmd.liveness = Liveness::kAbsent;
  const Condition condition = ready(facts, ReadyFollows::kSlurmd);
  EXPECT_EQ(condition.status, "True");
  EXPECT_EQ(condition.reason, "ExternalNode");
  EXPECT_EQ(ready(facts, ReadyFollows::kSlurm).status, "True");
  facts.slurm.record->state.base = "DOWN";
  EXPECT_EQ(ready(facts, ReadyFollows::kSlurm).status, "False");
}

TEST(ReadyTest, AHostThatGoesDownIsNotReady) {
  for (const ReadyFollows follows : kAll) {
    NodePolicy policy = policy_for("n1");
    policy.ready_follows = follows;
    const Condition condition = ready_condition(good_facts(), policy, {true, true});
    EXPECT_EQ(condition,
              (Condition{"Ready", "False", "NodeShuttingDown", "node is shutting down"}));
  }
}

// Each change of a message is a write to the API server.
TEST(ConditionMessagesTest, HoldNothingThatChangesByTheMinute) {
  HostFacts before = facts_in_state("MIXED", {"RESERVED"});
  before.jobs = LocalJobs{3, 17};
  HostFacts after = before;
  after.jobs = LocalJobs{4, 23};
  after.slurmd.pid = 99;
  after.slurm.answered_at = time_of("2026-11-20T14:33:11Z");
  after.slurm.record->gres_used = {{"gpu", "a100", 3}};
  EXPECT_EQ(slurm_state_conditions(before), slurm_state_conditions(after));
  EXPECT_EQ(slurmd_condition(before), slurmd_condition(after));
  for (const ReadyFollows follows : kAll) {
    EXPECT_EQ(ready(before, follows), ready(after, follows));
  }
}

}  // namespace
}  // namespace slurmlet::node
