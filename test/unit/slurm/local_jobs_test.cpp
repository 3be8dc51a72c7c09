#include "slurm/local/local_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "fake_proc.h"
#include "fixture.h"

namespace slurmlet::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(StepSocket, IsReadFromItsName) {
  EXPECT_EQ(parse_step_socket("nid000001_9.4294967291"),
            (StepSocket{"nid000001", 9, "4294967291"}));
  EXPECT_EQ(parse_step_socket("a_b_12.0.1"), (StepSocket{"a_b", 12, "0.1"}));
  for (const char* name : {"", "cred_state", "job00007", "n_1", "n_1.", "n_.1", "_1.2", "n_1.2.3.4",
                           "n_x.0", "n_1.x", "hwloc_topo_7.4294967291.xml", "n_99999999999.0"}) {
    EXPECT_FALSE(parse_step_socket(name)) << name;
  }
}

TEST(StepSocket, JobEntriesAreSocketsAndJobDirectories) {
  EXPECT_TRUE(is_job_entry("n1_2.0"));
  EXPECT_TRUE(is_job_entry("job00002"));
  for (const char* name : {"", "job", "jobs1", "cred_state.new", "conf-cache"}) {
    EXPECT_FALSE(is_job_entry(name)) << name;
  }
}

TEST(StepSocket, RealSpoolDirectory) {
  std::istringstream lines{fixture("25.11/local-spool-ls.out")};
  std::string line;
  std::vector<std::string> steps;
  int entries = 0;
  while (std::getline(lines, line)) {
    const auto name = line.substr(line.rfind(' ') + 1);
    entries += is_job_entry(name) ? 1 : 0;
    if (const auto socket = parse_step_socket(name)) {
      steps.push_back(socket->step);
      EXPECT_EQ(socket->job, 2U);
      EXPECT_EQ(socket->node, "cpu02");
    }
  }
  EXPECT_THAT(steps, ElementsAre("0", "4294967291"));
  EXPECT_EQ(entries, 3);
}

TEST(StepTitle, TellsTheJob) {
  EXPECT_EQ(job_of_title("slurmstepd: [9.batch]"), 9U);
  EXPECT_EQ(job_of_title("slurmstepd: [2.0]"), 2U);
  EXPECT_EQ(job_of_title("slurmstepd: [7.extern]"), 7U);
  EXPECT_EQ(job_of_title("slurmstepd: [12+1.0]"), 12U);
  for (const char* title : {"", "/usr/sbin/slurmstepd", "slurmstepd: [", "slurmstepd: [x.0]"}) {
    EXPECT_FALSE(job_of_title(title)) << title;
  }
}

const std::string kJob4 = "/system.slice/slurmstepd.scope/job_4";

class LocalJobsTest : public testing::Test {
 protected:
  LocalJobsTest() {
    tree_.dir("spool").dir("cgroup");
    add_process(tree_, {1, "systemd", {"/sbin/init"}});
    reader_ = std::make_unique<LocalJobsReader>(places_);
  }
  // `job`: of its cgroup/v2 directory.
  void add_step(int pid, const std::string& socket, const std::string& title,
                const std::string& job = "") {
    tree_.file("spool/" + socket, "");
    FakeProcess step{pid, "slurmstepd", {"slurmstepd: [" + title + "]"}};
    step.cgroups = job.empty() ? "" : "0::" + job + "/step_0/slurm\n";
    add_process(tree_, step);
  }
  node::LocalJobs jobs() {
    const auto jobs = reader_->read(list_directory(places_.spool_dir));
    EXPECT_TRUE(jobs);
    return jobs.value_or(node::LocalJobs{-1, {}});
  }

  fakes::TempTree tree_;
  LocalJobsPlaces places_{tree_.path("spool"), "nid1", tree_.path("proc"), tree_.path("cgroup")};
  std::unique_ptr<LocalJobsReader> reader_;
};

TEST_F(LocalJobsTest, AnUnreadableSpoolTellsNothing) {
  tree_.remove("spool");
  EXPECT_FALSE(reader_->read(list_directory(places_.spool_dir)));
}

TEST_F(LocalJobsTest, AnIdleNodeHasNoJobsAndNoCpus) {
  tree_.file("spool/cred_state", "").dir("spool/job00003");
  EXPECT_EQ(jobs(), (node::LocalJobs{0, 0, 0}));
}

TEST_F(LocalJobsTest, CountsJobsNotSteps) {
  add_step(100, "nid1_2.4294967291", "2.batch");
  add_step(101, "nid1_2.0", "2.0");
  add_step(102, "nid1_7.4294967292", "7.extern");
  add_step(103, "nid2_8.0", "8.0");
  EXPECT_EQ(jobs().jobs, 2) << "nid2 is another slurmd's";
  EXPECT_THAT(jobs().job_ids, ElementsAre(2, 7));
}

TEST_F(LocalJobsTest, AStaleSocketIsNoJob) {
  add_step(100, "nid1_2.0", "2.0");
  tree_.file("spool/nid1_3.0", "");
  EXPECT_EQ(jobs().jobs, 1);
  EXPECT_THAT(jobs().job_ids, ElementsAre(2));
  // The process dies, its socket stays.
  tree_.remove("proc/100");
  EXPECT_EQ(jobs().jobs, 0);
  EXPECT_THAT(jobs().job_ids, IsEmpty());
  EXPECT_EQ(jobs().allocated_cpus, 0);
}

TEST_F(LocalJobsTest, AProcessOfAJobUserIsNoStepWhateverItsTitle) {
  tree_.file("spool/nid1_2.0", "");  // of a slurmstepd that crashed
  FakeProcess forged{100, "slurmstepd", {"slurmstepd: [2.0]"}};
  forged.uids = "1000\t0\t0\t0";
  add_process(tree_, forged);
  EXPECT_EQ(jobs().jobs, 0);
}

TEST_F(LocalJobsTest, ADefunctStepIsNoJob) {
  tree_.file("spool/nid1_2.0", "");
  add_process(tree_, {100, "slurmstepd", {}, 'Z'});
  EXPECT_EQ(jobs().jobs, 0);
}

TEST_F(LocalJobsTest, AStepThatHasNoTitleYetCounts) {
  tree_.file("spool/nid1_2.0", "");
  add_process(tree_, {100, "slurmstepd", {"/usr/sbin/slurmstepd"}});
  EXPECT_EQ(jobs().jobs, 1);
  EXPECT_FALSE(jobs().allocated_cpus);
  add_process(tree_, {100, "slurmstepd", {"slurmstepd: [2.0]"}});
  EXPECT_EQ(jobs().jobs, 1);
}

TEST_F(LocalJobsTest, JobsEnd) {
  add_step(100, "nid1_2.0", "2.0");
  EXPECT_EQ(jobs().jobs, 1);
  tree_.remove("spool/nid1_2.0").remove("proc/100");
  EXPECT_EQ(jobs(), (node::LocalJobs{0, 0, 0}));
}

TEST_F(LocalJobsTest, AReusedPidIsNotTheStep) {
  add_step(100, "nid1_2.0", "2.0");
  EXPECT_EQ(jobs().jobs, 1);
  add_process(tree_, {100, "bash", {"bash"}});
  EXPECT_EQ(jobs().jobs, 0);
}

TEST_F(LocalJobsTest, WithHiddenProcessesSocketsAreBelieved) {
  tree_.remove("proc/1").dir("proc").file("spool/nid1_2.0", "");
  EXPECT_EQ(jobs().jobs, 1);
  EXPECT_THAT(jobs().job_ids, ElementsAre(2));
  EXPECT_FALSE(jobs().allocated_cpus);
}

TEST_F(LocalJobsTest, CpusOfCgroupV2) {
  // Several slurmd on a machine, Slurm 26.05 with a CgroupSlice, and the usual.
  const std::vector<std::pair<std::string, const char*>> jobs_cpus = {
      {"/system.slice/nid1_slurmstepd.scope/job_2", "0-3\n"},
      {"/slurm.slice/nid1_slurmstepd.scope/sCCDM8FWXPC7J00", "2-5\n"},
      {kJob4, "9\n"},
  };
  int job = 2;
  for (const auto& [directory, cpus] : jobs_cpus) {
    const std::string step = std::to_string(job++) + ".0";
    add_step(100 + job, "nid1_" + step, step, directory);
    tree_.file("cgroup" + directory + "/cpuset.cpus", cpus);
  }
  EXPECT_EQ(jobs().allocated_cpus, 7) << "the union";
}

// CPUs=64 CoresPerSocket=32 Sockets=2 ThreadsPerCore=2: Slurm counts cores, cpusets hold threads.
TEST_F(LocalJobsTest, CpusAreCountedAsSlurmCountsThem) {
  add_step(100, "nid1_4.0", "4.0", kJob4);
  tree_.file("cgroup" + kJob4 + "/cpuset.cpus", "0-31,64-95\n");
  EXPECT_EQ(jobs().allocated_cpus, 64);
  places_.threads_per_cpu = 2;
  EXPECT_EQ(LocalJobsReader{places_}.read(list_directory(places_.spool_dir))->allocated_cpus, 32);
  places_.threads_per_cpu = std::nullopt;
  EXPECT_EQ(LocalJobsReader{places_}.read(list_directory(places_.spool_dir))->allocated_cpus,
            std::nullopt);
  tree_.remove("spool/nid1_4.0").remove("proc/100");
  EXPECT_EQ(LocalJobsReader{places_}.read(list_directory(places_.spool_dir))->allocated_cpus, 0)
      << "however they are counted";
}

TEST_F(LocalJobsTest, CpusOfCgroupV1) {
  add_step(100, "nid1_2.0", "2.0");
  tree_.file("cgroup/cpuset/slurm/uid_1000/job_2/cpuset.cpus", "0-1\n");
  EXPECT_EQ(jobs().allocated_cpus, 2);
  tree_.file("cgroup/cpuset/slurm_nid1/uid_0/job_2/cpuset.cpus", "0-2\n");
  EXPECT_EQ(jobs().allocated_cpus, 3);
}

TEST_F(LocalJobsTest, MemoryOfCgroupV2) {
  const std::string scope = "/system.slice/slurmstepd.scope/";
  add_step(100, "nid1_2.0", "2.0", scope + "job_2");
  add_step(101, "nid1_3.0", "3.0", scope + "job_3");
  tree_.file("cgroup" + scope + "job_2/memory.max", "1073741824\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::nullopt) << "job 3 has no cgroup";
  tree_.file("cgroup" + scope + "job_3/memory.max", "536870912\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::int64_t{1610612736});
  tree_.file("cgroup" + scope + "job_3/memory.max", "max\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::nullopt) << "job 3 has no limit";
}

// AllowedRAMSpace=120
TEST_F(LocalJobsTest, TheSoftLimitIsWhatTheJobWasGiven) {
  add_step(100, "nid1_4.0", "4.0", kJob4);
  const std::string job = "cgroup" + kJob4 + "/";
  tree_.file(job + "memory.max", "1288490188\n").file(job + "memory.high", "1073741824\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::int64_t{1073741824});
  tree_.file(job + "memory.high", "max\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::int64_t{1288490188});
}

TEST_F(LocalJobsTest, MemoryOfCgroupV1) {
  add_step(100, "nid1_2.0", "2.0");
  tree_.dir("cgroup/cpuset/slurm/uid_1000/job_2")
      .file("cgroup/memory/slurm/uid_1000/job_2/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::int64_t{1} << 30);
  tree_.file("cgroup/memory/slurm/uid_1000/job_2/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(jobs().allocated_memory_bytes, std::nullopt);
}

// Cores that are not constrained may be used by, and were given to, other tasks too.
TEST_F(LocalJobsTest, TheAffinityOfATaskIsNoAllocation) {
  tree_.file("spool/nid1_2.0", "");
  add_process(tree_, {100, "slurmstepd", {"slurmstepd: [2.0]"}, 'S', 1, "", "0-7", {200, 201}});
  add_process(tree_, {200, "a.out", {"a.out"}, 'R', 1, "", "0-1"});
  add_process(tree_, {201, "a.out", {"a.out"}, 'R', 1, "", "4"});
  EXPECT_EQ(jobs().jobs, 1);
  EXPECT_FALSE(jobs().allocated_cpus);
  // One job that tells and one that does not make no sum.
  add_step(101, "nid1_4.0", "4.0", kJob4);
  tree_.file("cgroup" + kJob4 + "/cpuset.cpus", "0-3\n");
  EXPECT_FALSE(jobs().allocated_cpus);
}

}  // namespace
}  // namespace slurmlet::slurm
