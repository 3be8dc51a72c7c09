#include "slurm/answers/squeue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::slurm {
namespace squeue_test {

const std::set<std::string> kNodes{"n1", "n2", "n30"};

Result<JobsByNode> read(const std::string& text) {
  CommandOutput output;
  output.out = text;
  return read_squeue(output, kNodes);
}

// As squeue 22.05 and 24.11 print it.
TEST(Squeue, JobsOfTheNodesThatAreLookedFor) {
  const auto jobs = read(
      "1|1|N/A|RUNNING|0|1|1|1795439394|n1|\n"
      "2|2|N/A|COMPLETING|0|1|0|1795439395|n[1-2,30]|\n"
      "3|3|N/A|SUSPENDED|0|0|1|NONE|n2,other7|\n"
      "4|4|N/A|PENDING|0|1|1|N/A||\n"
      "5|5|N/A|RUNNING|0|1|1|1795439394|other[1-4000]|\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  const WallTime first{std::chrono::seconds{1795439394}};
  const WallTime second{std::chrono::seconds{1795439395}};
  const QueuedJob completing{"2", true, false, second};
  EXPECT_EQ(*jobs, (JobsByNode{{"n1", {{"1", false, true, first}, completing}},
                               {"n2", {completing, {"3", false, false, std::nullopt}}},
                               {"n30", {completing}}}));
  EXPECT_TRUE(read("")->empty());
}

// The last task to be split off has the number of its array as its own: scancel takes that number
// for all tasks, here and on other nodes.
TEST(Squeue, ATaskOfAnArrayIsNamedAlone) {
  const auto jobs = read(
      "36|36|[2-8]|PENDING|0|1|1|N/A||\n"
      "36|36|9|RUNNING|0|1|1|1795439394|n1|\n"
      "37|36|1|RUNNING|0|1|1|1795439394|n2|\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->at("n1").at(0).id, "36_9");
  EXPECT_EQ(jobs->at("n2").at(0).id, "36_1");
  EXPECT_FALSE(read("36||9|RUNNING|0|1|1|1795439394|n1|\n"));
}

// slurmctld counts in BatchFlag how often it requeued a job.
TEST(Squeue, AJobThatWasRequeuedCanBeRequeuedAgain) {
  const auto jobs = read("7|7|N/A|RUNNING|0|2|1|1795439394|n1|\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_TRUE(jobs->at("n1").at(0).can_requeue);
}

TEST(Squeue, AComponentOfAHeterogeneousJobHasTheNumberOfItsLeader) {
  const auto jobs = read(
      "40|40|N/A|RUNNING|40|1|1|1795439394|n1|\n"
      "41|41|N/A|RUNNING|40|1|1|1795439394|n2|\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->at("n1").at(0).id, "40");
  EXPECT_EQ(jobs->at("n2").at(0).id, "40");
}

TEST(Squeue, WhatCannotBeReliedUponIsNoAnswer) {
  EXPECT_FALSE(read("1|1|N/A|RUNNING|0|1|1|1795439394|n1|\n2|2|N/A|RUNN")) << "cut off";
  EXPECT_FALSE(read("1|1|N/A|RUNNING|0|1|1|1795439394|n[1-|\n"));
  EXPECT_FALSE(read("slurm_load_jobs: something else\n"));
  EXPECT_FALSE(read("1_[2-3]|1|2|RUNNING|0|1|1|1795439394|n1|\n"));
  CommandOutput output;
  output.exit_code = 1;
  output.err = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n";
  const auto away = read_squeue(output, kNodes);
  ASSERT_FALSE(away);
  EXPECT_NE(away.error().message.find("Unable to contact slurm controller"), std::string::npos);
  output = {};
  output.timed_out = true;
  EXPECT_FALSE(read_squeue(output, kNodes));
}

TEST(Squeue, OfThisClusterAndAllPartitions) {
  const CommandSpec spec = squeue_query({"/etc/slurm/slurm.conf", "/opt/slurm/bin"});
  EXPECT_EQ(spec.argv.at(0), "/opt/slurm/bin/squeue");
  EXPECT_THAT(spec.argv, testing::IsSupersetOf({"--local", "-a"}));
}

}  // namespace squeue_test
}  // namespace slurmlet::slurm
