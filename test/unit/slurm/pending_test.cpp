#include "slurm/answers/pending.h"

#include <gtest/gtest.h>

#include <map>

namespace slurmlet::slurm {
namespace pending_test {

using node::PendingJob;
using node::WaitsFor;

Result<JobQueue> read(const std::string& text) {
  CommandOutput output;
  output.out = text;
  return read_queue(output);
}

std::map<std::string, PendingJob> by_id(const JobQueue& queue) {
  std::map<std::string, PendingJob> out;
  for (const auto& job : queue.pending) {
    out[job.id] = job;
  }
  return out;
}

// squeue 22.05.8 about two nodes of two CPUs that were drained.
constexpr const char* k2205 =
    "1\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
    "partitions\t\n"
    "2\tN/A\tPENDING\tnormal\t1\tOK\tcpu=2,mem=32M,node=2,billing=2\tN/A\tN/A\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "4\tN/A\tPENDING\tnormal\t1\tNO\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "5\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tgres:gpu:2\tN/A\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "6\tN/A\tPENDING\tnormal\t1\tOK\tcpu=2,mem=32M,node=2,billing=2\tgres:gpu:a100:1\tN/A\t(null)"
    "\t\t\tReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "7\t1-50%10\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "8\t3,5,9\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "11\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "Dependency\t\n"
    "12\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "BeginTime\t\n"
    "15\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\tgpu|big\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "16\tN/A\tPENDING\tnormal\t64\tOK\tcpu=64,mem=1G,node=1,billing=64\tN/A\tN/A\t(null)\t\t\t"
    "PartitionConfig\t\n"
    "18\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tgres:gpu:3\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "23\tN/A\tPENDING\tnormal\t2\tOK\tcpu=4,mem=64M,node=2,billing=4\tN/A\tN/A\t(null)\t\t\t"
    "ReqNodeNotAvail, UnavailableNodes:n[1-2]\t\n"
    "10\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "JobHeldUser\t\n"
    "13\tN/A\tPENDING\tnormal,debug\t1\tOK\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority "
    "partitions\t\n";

TEST(Pending, JobsOfSlurm2205) {
  const auto queue = read(k2205);
  ASSERT_TRUE(queue) << queue.error().message;
  ASSERT_EQ(queue->pending.size(), 14U);
  auto jobs = by_id(*queue);
  EXPECT_EQ(jobs["2"].nodes, 2);
  EXPECT_EQ(jobs["2"].waits_for, WaitsFor::kNodes);
  EXPECT_EQ(jobs["1"].waits_for, WaitsFor::kNodes);
  EXPECT_TRUE(jobs["4"].exclusive);
  EXPECT_FALSE(jobs["2"].exclusive);
  EXPECT_EQ(jobs["5"].gpus_per_node, 2);
  EXPECT_EQ(jobs["6"].gpus, 2);
  EXPECT_EQ(jobs["8"].count, 3 + 10);  // 7 is such a job too
  EXPECT_EQ(jobs["15"].features, "gpu|big");
  EXPECT_EQ(jobs["16"].cpus_per_node, 64);
  EXPECT_EQ(jobs["16"].memory_mib, 1024);
  EXPECT_EQ(jobs["16"].waits_for, WaitsFor::kNodes);
  EXPECT_EQ(jobs["18"].gpus, 3);
  EXPECT_EQ(jobs["18"].gpus_per_node, 0);
  EXPECT_EQ(jobs["23"].cpus, 4);
  EXPECT_EQ(jobs["13"].partitions, (std::vector<std::string>{"normal", "debug"}));
  for (const char* id : {"10", "11", "12"}) {
    EXPECT_EQ(jobs[id].waits_for, WaitsFor::kOther) << id;
  }
}

// 24.11 writes gres/gpu; 26.05 also shows OverSubscribe=NO for every pending job.
TEST(Pending, JobsOfLaterReleases) {
  const auto queue = read(
      "12\tN/A\tPENDING\tnormal\t1\tNO\tcpu=1,mem=16M,node=1,billing=1\tN/A\tN/A\t(null)\t\t\t"
      "BeginTime\t\n"
      "6\tN/A\tPENDING\tnormal\t1\tNO\tcpu=2,mem=32M,node=2,billing=2\tgres/gpu:a100:1\tN/A\t"
      "(null)\t\t\tReqNodeNotAvail, May be reserved for other job\t\n");
  ASSERT_TRUE(queue) << queue.error().message;
  auto jobs = by_id(*queue);
  EXPECT_EQ(jobs["6"].gpus, 2);
  EXPECT_EQ(jobs["6"].waits_for, WaitsFor::kNodes);
  EXPECT_FALSE(jobs["6"].exclusive);
}

TEST(Pending, JobsThatDifferOnlyInTheirIdAreOne) {
  std::string text;
  for (int id = 1; id <= 1000; ++id) {
    text += std::to_string(id) + "\tN/A\tPENDING\tp" + std::to_string(id % 4) +
            "\t1\tOK\tcpu=1,node=1\tN/A\tN/A\t(null)\t\t\tPriority\t\n";
  }
  const auto queue = read(text);
  ASSERT_TRUE(queue);
  ASSERT_EQ(queue->pending.size(), 4U);
  for (const auto& job : queue->pending) {
    EXPECT_EQ(job.count, 250);
  }
}

TEST(Pending, NodesWithJobs) {
  const auto queue = read(
      "1\tN/A\tRUNNING\tnormal\t1\tOK\tcpu=1\tN/A\tN/A\t(null)\tn[1-2]\t\tNone\t\n"
      "2\tN/A\tSUSPENDED\tnormal\t1\tOK\tcpu=1\tN/A\tN/A\t(null)\tn4\t\tNone\t\n"
      "3\tN/A\tPENDING\tnormal\t1\tOK\tcpu=1\tN/A\tN/A\t(null)\tn9\t\tPriority\t\n");
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->nodes, (std::set<std::string>{"n1", "n2", "n4"}));
}

// squeue 22.05.8 of --array=1-10%2 on one machine, and of --array=1-9%2 while two run.
TEST(Pending, AnArrayWaitsForAsManyAsItMayStillRun) {
  const std::string rest = "\tnormal\t1\tNO\tcpu=1,node=1\tN/A\tN/A\t(null)\t";
  const auto queue = read("7\t2-10%2\tPENDING" + rest + "\t\tResources\t\n" +  //
                          "7\t1\tRUNNING" + rest + "n1\t\tNone\t\n" +          //
                          "9\t3-9%2\tPENDING" + rest + "\t\tPriority\t\n" +    //
                          "9\t1\tRUNNING" + rest + "n2\t\tNone\t\n" +          //
                          "9\t2\tCOMPLETING" + rest + "n3\t\tNone\t\n" +       //
                          "11\tN/A\tPENDING" + rest + "\t\tResources\t\n");
  ASSERT_TRUE(queue) << queue.error().message;
  ASSERT_EQ(queue->pending.size(), 1U);
  EXPECT_EQ(queue->pending.front().count, 1 + 0 + 1);
}

// squeue 22.05.8 of -w n1 while another job is on n1.
TEST(Pending, AJobThatNamesItsNodesNeedsTheseAndNoOthers) {
  const std::string rest = "\tnormal\t1\tOK\tcpu=1,node=1\tN/A\tN/A\t(null)\t\t";
  const auto queue = read("3\tN/A\tPENDING" + rest + "n1\tPriority\t\n" + "4\tN/A\tPENDING" + rest +
                          "n2\tJobHeldUser\t\n" +
                          "5\tN/A\tPENDING\tnormal\t1\tOK\tcpu=3,node=3\tN/A\tN/A\t(null)\t\t"
                          "n3\tReqNodeNotAvail, UnavailableNodes:n3\t\n");
  ASSERT_TRUE(queue) << queue.error().message;
  auto jobs = by_id(*queue);
  EXPECT_EQ(jobs["3"].waits_for, WaitsFor::kOther);
  EXPECT_EQ(jobs["5"].waits_for, WaitsFor::kNodes);
  EXPECT_EQ(queue->nodes, (std::set<std::string>{"n1", "n3"}));
}

TEST(Pending, WhatCannotBeReliedUponIsNoAnswer) {
  EXPECT_TRUE(read("")->pending.empty());
  EXPECT_FALSE(read("1\tN/A\tPENDING\tnormal"));
  EXPECT_FALSE(read("slurm_load_jobs: something else\n"));
  EXPECT_FALSE(read("1\tN/A\tRUNNING\tp\t1\tOK\tcpu=1\tN/A\tN/A\t(null)\tn[1-\t\tNone\t\n"));
  EXPECT_FALSE(read("1\tN/A\tPENDING\tp\t1\tOK\tcpu=1\tN/A\tN/A\t(null)\t\tn[1-\tPriority\t\n"));
  CommandOutput output;
  output.timed_out = true;
  EXPECT_FALSE(read_queue(output));
}

TEST(Pending, Arrays) {
  const std::map<std::string, std::int64_t> cases{{"7", 1},      {"1-50%10", 10}, {"[1-50%10]", 10},
                                                  {"3,5,9", 3},  {"0-10:2", 6},   {"1-4,8", 5},
                                                  {"1-3%10", 3}, {"nonsense", 1}};
  for (const auto& [text, count] : cases) {
    EXPECT_EQ(count_array(text), count) << text;
  }
}

TEST(Pending, Reasons) {
  for (const char* text : {"Resources", "Priority", "PartitionConfig", "PartitionNodeLimit"}) {
    EXPECT_EQ(waits_for(text), WaitsFor::kNodes) << text;
  }
  for (const char* text :
       {"None", "QOSMaxCpuPerUserLimit", "AssocGrpCpuLimit", "Licenses", "MaxNodePerAccount",
        "PartitionTimeLimit", "PartitionDown", "Reservation", "JobHeldAdmin"}) {
    EXPECT_EQ(waits_for(text), WaitsFor::kOther) << text;
  }
  EXPECT_EQ(waits_for("SomethingNew"), WaitsFor::kUnknown);
}

}  // namespace pending_test
}  // namespace slurmlet::slurm
