#include "node/node_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/desired_node.h"
#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<Condition> conditions(const HostFacts& facts) {
  return desired_node(facts, policy_for("n1"), {}, "0.1.0").conditions;
}

std::vector<std::string> names(const std::vector<NodeEvent>& events) {
  std::vector<std::string> out;
  for (const auto& event : events) {
    out.push_back((event.warning ? "Warning " : "Normal ") + event.reason);
  }
  return out;
}

std::vector<std::string> events(const HostFacts& before, const HostFacts& after) {
  return names(condition_events(conditions(before), conditions(after)));
}

// Of all steps of a sequence, as node_sync.cpp goes from one to the next.
std::vector<std::string> events_of(const std::vector<HostFacts>& sequence,
                                   const NodePolicy& policy = policy_for("n1")) {
  std::vector<std::string> out;
  std::vector<Condition> last;
  for (const auto& facts : sequence) {
    const auto now = desired_node(facts, policy, {}, "0.1.0").conditions;
    for (const auto& name : names(condition_events(last, now))) {
      out.push_back(name);
    }
    last = now;
  }
  return out;
}

HostFacts unreachable(SlurmFailure failure = SlurmFailure::kControllerUnreachable) {
  HostFacts facts = facts_in_state("IDLE");
  facts.slurm.failure = failure;
  facts.slurm.stale = true;
  return facts;
}

HostFacts without_slurmd() {
  HostFacts facts = facts_in_state("IDLE");
  facts.slurmd = {};
  facts.slurmd.liveness = SlurmdFacts::Liveness::kAbsent;
  return facts;
}

TEST(ConditionEventsTest, NoneOnStartAndNoneWithoutAChange) {
  EXPECT_THAT(condition_events({}, conditions(facts_in_state("DOWN", {"DRAIN"}))), IsEmpty());
  for (const HostFacts& facts : {facts_in_state("DOWN", {"DRAIN"}), unreachable()}) {
    EXPECT_THAT(events(facts, facts), IsEmpty());
  }
  // Jobs come and go, and reservations.
  EXPECT_THAT(events(facts_in_state("IDLE"), facts_in_state("ALLOCATED", {"COMPLETING"})),
              IsEmpty());
  EXPECT_THAT(events(facts_in_state("IDLE"), facts_in_state("IDLE", {"RESERVED"})), IsEmpty());
}

TEST(ConditionEventsTest, EachStateBeginsAndEnds) {
  const struct {
    const char* base;
    std::set<std::string> flags;
    const char* begins;
    const char* ends;
  } kRows[] = {
      {"MIXED", {"DRAIN"}, "SlurmDraining", "SlurmUndrained"},
      {"IDLE", {"DRAIN"}, "SlurmDrained", "SlurmUndrained"},
      {"DOWN", {}, "SlurmDown", "SlurmUp"},
      {"IDLE", {"FAIL"}, "SlurmFailing", "SlurmNotFailing"},
      {"IDLE", {"NOT_RESPONDING"}, "SlurmNotResponding", "SlurmResponding"},
      {"IDLE", {"INVALID_REG"}, "SlurmInvalidRegistration", "SlurmValidRegistration"},
      {"IDLE", {"MAINTENANCE"}, "SlurmMaintenance", "SlurmMaintenanceOver"},
  };
  for (const auto& row : kRows) {
    const HostFacts good = facts_in_state("MIXED");
    const HostFacts bad = facts_in_state(row.base, row.flags);
    EXPECT_THAT(events(good, bad), ElementsAre(std::string{"Warning "} + row.begins));
    EXPECT_THAT(events(bad, good), ElementsAre(std::string{"Normal "} + row.ends));
  }
  EXPECT_THAT(events(facts_in_state("MIXED", {"DRAIN"}), facts_in_state("IDLE", {"DRAIN"})),
              ElementsAre("Warning SlurmDrained"));
}

TEST(ConditionEventsTest, SlurmdGoesAndComesAndStops) {
  EXPECT_THAT(events(facts_in_state("IDLE"), without_slurmd()),
              ElementsAre("Warning SlurmdNotRunning", "Warning NodeNotReady"));
  EXPECT_THAT(events(without_slurmd(), facts_in_state("IDLE")),
              ElementsAre("Normal SlurmdRunning", "Normal NodeReady"));
  HostFacts stopped = facts_in_state("IDLE");
  stopped.slurmd.liveness = SlurmdFacts::Liveness::kStopped;
  EXPECT_THAT(events(facts_in_state("IDLE"), stopped), Contains("Warning SlurmdStopped"));
  EXPECT_THAT(events(stopped, without_slurmd()), Contains("Warning SlurmdNotRunning"));
}

TEST(ConditionEventsTest, OneEventForAllOfSlurmsStatesBecomingUnknownAndKnown) {
  EXPECT_THAT(events(facts_in_state("MIXED", {"DRAIN", "MAINTENANCE"}), unreachable()),
              ElementsAre("Warning SlurmStateUnknown"));
  EXPECT_THAT(events(unreachable(), unreachable(SlurmFailure::kMungeUnavailable)), IsEmpty());
  EXPECT_THAT(events(unreachable(), facts_in_state("MIXED")),
              ElementsAre("Normal SlurmStateKnown"));
  EXPECT_THAT(events(unreachable(), facts_in_state("DOWN")), ElementsAre("Warning SlurmDown"));
  EXPECT_THAT(events(unreachable(), facts_in_state("IDLE", {"DRAIN"})),
              ElementsAre("Warning SlurmDrained", "Normal SlurmStateKnown"));
}

// A drained node that restarts slurmlet is no news. But that the first answer does not come is,
// once: else nobody reads of a slurmctld that has been away since this daemon started.
TEST(ConditionEventsTest, NoneForTheFirstAnswerAfterStartButForOneThatIsMissing) {
  HostFacts early = good_facts();
  early.slurm = {};
  EXPECT_THAT(events(early, facts_in_state("IDLE")), IsEmpty());
  EXPECT_THAT(events(early, facts_in_state("DOWN", {"DRAIN", "NOT_RESPONDING"})), IsEmpty());
  HostFacts before = facts_in_state("IDLE");
  before.slurm = {};
  HostFacts failing = before;
  failing.slurm.failure = SlurmFailure::kTimeout;
  failing.slurm.stale = true;
  EXPECT_THAT(events_of({before, before, failing, failing, facts_in_state("IDLE")}),
              ElementsAre("Warning SlurmStateUnknown", "Normal SlurmStateKnown"));
}

TEST(ConditionEventsTest, TheMessageIsTheConditions) {
  HostFacts drained = facts_in_state("IDLE", {"DRAIN"});
  drained.slurm.record->reason = "bad dimm";
  const auto all = condition_events(conditions(facts_in_state("IDLE")), conditions(drained));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().message, condition_of(conditions(drained), "SlurmNodeStateDrain").message);
}

HostFacts with_gpu_files(std::vector<std::string> missing) {
  HostFacts facts = facts_in_state("IDLE");
  facts.slurm.record->gres = {{"gpu", "a100", 2}};
  facts.slurm_conf.gpu_files = {{"/dev/nvidia0"}, {"/dev/nvidia1"}};
  facts.machine.missing_gpu_files = std::move(missing);
  return facts;
}

TEST(ConditionEventsTest, AGpuThatGoesAndComesBack) {
  const HostFacts all = with_gpu_files({});
  const HostFacts one_missing = with_gpu_files({"/dev/nvidia1"});
  const HostFacts both_missing = with_gpu_files({"/dev/nvidia0", "/dev/nvidia1"});
  EXPECT_THAT(events(all, one_missing), ElementsAre("Warning GPUMissing"));
  EXPECT_THAT(events(one_missing, both_missing), ElementsAre("Warning GPUMissing"));
  EXPECT_THAT(events(one_missing, one_missing), IsEmpty());
  EXPECT_THAT(events(one_missing, all), ElementsAre("Normal GPUsPresent"));
}

TEST(RegisteredMessageTest, NamesClusterAndMetal3) {
  DesiredNode node;
  EXPECT_THAT(registered_message(node, ""), Not(HasSubstr("Slurm cluster")));
  node.labels["metal3.io/uuid"] = "u1";
  EXPECT_THAT(registered_message(node, "alps"), AllOf(HasSubstr("\"alps\""), HasSubstr("u1")));
}

}  // namespace
}  // namespace slurmlet::node
