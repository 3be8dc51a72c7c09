// When a Machine is released, as a table.

#include "operator/rules/machine_rules.h"

#include <gtest/gtest.h>

namespace slurmlet::op {
namespace machine_rules_test {

using std::chrono::hours;
using std::chrono::minutes;

constexpr WallTime kDeleted{hours{480000}};
const std::string kOurs = "slurmlet: machine deleted [u]";

SlurmNode slurm(const std::string& base, std::set<std::string> flags, const std::string& reason) {
  return {"n1", "n1", {base, std::move(flags)}, reason, ""};
}

struct Case {
  const char* what;
  SlurmNode dumped;
  std::optional<NodeJobs> jobs;
  MachineAction action;
  DrainPolicy policy = {};
};

MachineFacts facts_of(const Case& test) {
  MachineFacts facts;
  facts.hooked = true;
  facts.deleted_at = kDeleted;
  facts.node = {"n1", "u", "n1", true, false, std::nullopt};
  facts.slurm = {&test.dumped};
  facts.jobs = test.jobs;
  facts.policy = test.policy;
  facts.now = kDeleted + hours{1};
  return facts;
}

const NodeJobs kNoJob{};
const NodeJobs kRunning{2, 0, true, kDeleted + hours{9}};
const NodeJobs kCompleting{0, 1, true, {}};
const SlurmNode kDrained = slurm("IDLE", {"DRAIN"}, kOurs);
const SlurmNode kDraining = slurm("MIXED", {"DRAIN"}, kOurs);
const DrainPolicy kNow{DrainPolicy::Kind::kNow, {}};
const DrainPolicy kIn59{DrainPolicy::Kind::kDeadline, minutes{59}};
const DrainPolicy kIn61{DrainPolicy::Kind::kDeadline, minutes{61}};

TEST(MachineRules, Table) {
  using enum MachineAction;
  const Case cases[] = {
      {"not drained yet", slurm("IDLE", {}, ""), kNoJob, kDrain},
      {"only cordoned", slurm("IDLE", {"DRAIN"}, "slurmlet: cordoned [u]"), kNoJob, kDrain},
      {"its jobs are not known", kDrained, std::nullopt, kWait},
      {"no job is left", kDrained, kNoJob, kRelease},
      {"squeue names a job on an idle node", kDrained, kRunning, kWait},
      {"suspended: neither allocated nor mixed", kDrained, kRunning, kWait},
      {"jobs run", kDraining, kRunning, kWait},
      {"allocated, but squeue names none", kDraining, kNoJob, kWait},
      {"all CPUs allocated", slurm("ALLOCATED", {"DRAIN"}, kOurs), kRunning, kWait},
      {"an epilog runs", slurm("IDLE", {"DRAIN", "COMPLETING"}, kOurs), kNoJob, kWait},
      {"a job completes", kDrained, kCompleting, kWait},
      {"an administrator's drain, jobs run", slurm("MIXED", {"DRAIN"}, "dimm"), kRunning, kWait},
      {"an administrator's drain, no job", slurm("IDLE", {"DRAIN"}, "dimm"), kNoJob, kRelease},
      {"now", kDraining, kRunning, kEndJobs, kNow},
      {"it is to be rebooted, and undrained then",
       slurm("IDLE", {"DRAIN", "REBOOT_REQUESTED"}, kOurs), kNoJob, kWait},
      {"it reboots", slurm("DOWN", {"DRAIN", "REBOOT_ISSUED"}, "reboot issued"), kNoJob, kWait},
      {"it is powered off", slurm("IDLE", {"DRAIN", "POWERING_DOWN"}, kOurs), kNoJob, kWait},
      {"now, but it is not drained", slurm("MIXED", {}, ""), kRunning, kDrain, kNow},
      {"now, its jobs are not known", kDraining, std::nullopt, kWait, kNow},
      {"now, what is left completes", slurm("IDLE", {"DRAIN", "COMPLETING"}, kOurs), kCompleting,
       kWait, kNow},
      {"the deadline has passed", kDraining, kRunning, kEndJobs, kIn59},
      {"the deadline is to come", kDraining, kRunning, kWait, kIn61},
      {"a dynamic node", slurm("IDLE", {"DRAIN", "DYNAMIC_NORM"}, kOurs), kNoJob, kRelease},
      {"a dynamic node with a job", slurm("MIXED", {"DRAIN", "DYNAMIC_NORM"}, kOurs), kRunning,
       kWait},
      {"a dynamic node that an administrator drained",
       slurm("IDLE", {"DRAIN", "DYNAMIC_NORM"}, "dimm"), kNoJob, kRelease},
      {"down and drained", slurm("DOWN", {"DRAIN", "NOT_RESPONDING"}, kOurs), kNoJob, kRelease},
      {"down and not drained", slurm("DOWN", {"NOT_RESPONDING"}, "Not responding"), kNoJob, kDrain},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(rule_machine(facts_of(test)).action, test.action) << test.what;
    auto facts = facts_of(test);
    facts.unclear = "slurmctld did not report its nodes";
    EXPECT_EQ(rule_machine(facts).action, kWait) << test.what << ", slurmctld is away";
    facts = facts_of(test);
    facts.hooked = false;
    EXPECT_EQ(rule_machine(facts).action, kNone) << test.what << ", without the hook";
    facts = facts_of(test);
    facts.deleted_at.reset();
    EXPECT_EQ(rule_machine(facts).action, kNone) << test.what << ", not deleted";
  }
}

// The Slurm node may be another cluster's, hidden, or removed from slurm.conf.
TEST(MachineRules, WithoutASlurmNodeNothingIsReleased) {
  using enum MachineAction;
  const Case test{"", kDrained, kNoJob, kRelease};
  auto facts = facts_of(test);
  facts.slurm.clear();
  EXPECT_EQ(rule_machine(facts).action, kWait);
  EXPECT_NE(rule_machine(facts).why.find("remove the hook"), std::string::npos);
  facts.never_provisioned = true;
  EXPECT_EQ(rule_machine(facts).action, kRelease);
  facts.unclear = "slurmctld did not report its nodes";
  EXPECT_EQ(rule_machine(facts).action, kWait);
}

TEST(MachineRules, AllSlurmNodesOfTheHostCount) {
  using enum MachineAction;
  const Case test{"", kDrained, kNoJob, kRelease};
  auto facts = facts_of(test);
  for (const auto& [second, action] : std::vector<std::pair<SlurmNode, MachineAction>>{
           {slurm("IDLE", {}, ""), kDrain},
           {slurm("IDLE", {"DRAIN", "COMPLETING"}, kOurs), kWait},
           {slurm("MIXED", {"DRAIN"}, "dimm"), kWait},
           {slurm("IDLE", {"DRAIN", "REBOOT_ISSUED"}, kOurs), kWait},
           {slurm("IDLE", {"DRAIN"}, "dimm"), kRelease}}) {
    facts.slurm = {&test.dumped, &second};
    EXPECT_EQ(rule_machine(facts).action, action) << second.state.raw();
  }
}

TEST(MachineRules, ARecordIsLeftBehindOnceItsSlurmdIsDead) {
  EXPECT_TRUE(is_left_behind(slurm("DOWN", {"DRAIN", "DYNAMIC_NORM", "NOT_RESPONDING"}, kOurs)));
  EXPECT_FALSE(is_left_behind(slurm("DOWN", {"DRAIN", "DYNAMIC_NORM"}, kOurs)));
  EXPECT_FALSE(is_left_behind(slurm("DOWN", {"DRAIN", "NOT_RESPONDING"}, kOurs)));
  EXPECT_FALSE(is_left_behind(slurm("IDLE", {"DRAIN", "DYNAMIC_NORM", "NOT_RESPONDING"}, kOurs)));
  EXPECT_FALSE(is_left_behind(slurm("DOWN", {"DRAIN", "DYNAMIC_NORM", "NOT_RESPONDING"}, "dimm")));
  EXPECT_FALSE(is_left_behind(
      slurm("DOWN", {"DRAIN", "DYNAMIC_NORM", "NOT_RESPONDING"}, "slurmlet: cordoned")));
}

TEST(MachineRules, WhyNamesTheNodeAndWhenItsJobsEnd) {
  Case test{"", kDraining, kRunning, MachineAction::kWait, kIn61};
  const std::string timed = rule_machine(facts_of(test)).why;
  for (const char* words : {"2 jobs", "n1", "2024-10-04T09:00:00Z", "2024-10-04T01:01:00Z"}) {
    EXPECT_NE(timed.find(words), std::string::npos) << timed;
  }
  test.jobs->limited = false;
  test.policy = {};
  EXPECT_NE(rule_machine(facts_of(test)).why.find("without a time limit"), std::string::npos);
}

TEST(MachineRules, ADeadlineNeedsTheTimeOfTheServer) {
  const Case now{"now", kDraining, kRunning, MachineAction::kEndJobs, kNow};
  MachineFacts facts = facts_of(now);
  EXPECT_EQ(rule_machine(facts).action, MachineAction::kEndJobs);
  facts.now.reset();
  EXPECT_EQ(rule_machine(facts).action, MachineAction::kWait);
}

}  // namespace machine_rules_test
}  // namespace slurmlet::op
