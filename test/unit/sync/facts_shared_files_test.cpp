// FactsSync where Slurm's files lie on a file system that does not answer.

#include <atomic>
#include <thread>

#include "fakes/hanging_file.h"
#include "sync/facts_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using Liveness = node::SlurmdFacts::Liveness;
using std::chrono::seconds;
using ::testing::HasSubstr;

class FactsSharedFilesTest : public FactsSyncFixture {
 protected:
  // Releases a reading that hangs and goes on until it is there.
  void release() {
    released_.set_value();
    while (!wakes()) {
      std::this_thread::yield();
    }
    // What woke may be another thread's news.
    (void)facts_->await_site(clock_.now(), std::chrono::minutes{1});
    step();
  }
  void TearDown() override {
    if (held_ && held_->wait_for(Duration{0}) != std::future_status::ready) {
      released_.set_value();  // its thread uses this test
    }
    while (facts_ && facts_->reads_slurm_conf()) {
      step();
    }
  }
};

TEST_F(FactsSharedFilesTest, WithoutSlurmConfTheMachineIsKnownAndTheRestIsNot) {
  slurmd_starts();
  hold_slurm_conf();
  make();
  step();
  await_reading();
  EXPECT_EQ(facts().machine.memory_bytes, 16000000LL * 1024);
  EXPECT_TRUE(facts().machine.memory_pressure);
  EXPECT_EQ(facts().slurmd.liveness, Liveness::kRunning) << "in its unit, whatever its pidfile";
  EXPECT_EQ(node::slurm_view(facts()).reason, "NotQueriedYet");
  EXPECT_FALSE(facts().jobs);

  wait_quietly(seconds{5});
  EXPECT_EQ(node::slurm_view(facts()).reason, "FileSystemNotResponding");
  EXPECT_THAT(node::slurm_view(facts()).message,
              HasSubstr("/shared/slurm.conf did not answer for 5 s"));
  EXPECT_FALSE(facts_->reads_slurm_conf()) << "nobody waits for it any more";
  EXPECT_TRUE(dump_.started.empty());

  wait_quietly(std::chrono::minutes{1});
  EXPECT_EQ(discovered_.size(), 0U) << "no second reading while the first one hangs";

  release();
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  EXPECT_EQ(liveness(), Liveness::kRunning);
  run_until([this] { return !dump_.started.empty(); }, seconds{3});
  answer();
  EXPECT_EQ(node::slurm_view(facts()).knowledge, node::Knowledge::kKnown);
}

// The heartbeat does not wait for it so long, but a new Node has its labels from the beginning.
TEST_F(FactsSharedFilesTest, SlurmConfMayTakeLongerThanTheFirstLook) {
  hold_slurm_conf();
  options_.first_patience = std::chrono::minutes{1};
  make();
  EXPECT_EQ(facts_->await_site(clock_.now(), Duration{0}).nodes(), 0);
  conf_.site = SitePlace{"nid1", 77};
  std::thread server{[this] { released_.set_value(); }};
  step();
  server.join();
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  EXPECT_EQ(facts_->site().nodes(), 77);
}

// Of NVIDIA's after a fault on the bus, for example.
TEST_F(FactsSharedFilesTest, AGpuDriverThatHangsCostsTheGpusOnly) {
  std::promise<void> answers;
  std::shared_future<void> hangs = answers.get_future().share();
  std::atomic<std::shared_future<void>*> gate{&hangs};
  options_.patience = Duration{0};
  options_.read_gpus = [&gate](const host::Paths&, const std::vector<std::string>&) {
    if (const auto* const until = gate.load()) {
      until->wait();
    }
    return host::GpuReading{std::vector<node::GpuDevice>(4), {"/dev/nvidia3"}};
  };
  const auto until_read = [this] {
    while (facts().machine.gpus_hang) {
      step();
    }
  };
  start();
  EXPECT_EQ(facts().machine.memory_bytes, 16000000LL * 1024);
  EXPECT_EQ(facts().slurm_conf.cluster_name, "alps");
  EXPECT_TRUE(facts().machine.gpus_hang);
  wait_quietly(seconds{6});
  gate = nullptr;
  answers.set_value();
  until_read();
  EXPECT_EQ(facts().machine.gpus->size(), 4U);

  std::promise<void> later;
  std::shared_future<void> again = later.get_future().share();
  gate = &again;
  wait_quietly(options_.machine_interval + seconds{6});
  EXPECT_TRUE(facts().machine.gpus_hang);
  EXPECT_EQ(facts().machine.gpus->size(), 4U) << "how many there are stays known";
  gate = nullptr;
  later.set_value();
  until_read();
}

TEST_F(FactsSharedFilesTest, AStateDirectoryThatHangsCostsTheDiskPressureOnly) {
  options_.disk_usage = [](const std::filesystem::path&) {
    touches_file("/shared/state");
    return host::FileSystemUsage{1000, 50, 0, 0};
  };
  start();
  EXPECT_TRUE(facts().machine.disk_pressure->under_pressure);
  EXPECT_EQ(facts().machine.ephemeral_storage_bytes, 1000);
  fakes::HangingFile hanging{"/shared/state"};
  options_.patience = Duration{0};
  make();
  step();
  hanging.wait();
  wait_quietly(seconds{4});
  EXPECT_EQ(facts().machine.disk_problem, "") << "not late yet";
  wait_quietly(std::chrono::minutes{6});
  EXPECT_FALSE(facts().machine.disk_pressure);
  EXPECT_EQ(facts().machine.disk_problem, "/shared/state did not answer for 5 s");
  EXPECT_FALSE(facts().machine.ephemeral_storage_bytes) << "nothing is invented";
  EXPECT_TRUE(facts().machine.memory_pressure);
  EXPECT_TRUE(facts().machine.pid_pressure);
  hanging.answer();
  while (!facts().machine.disk_pressure) {
    step();
  }
  EXPECT_EQ(facts().machine.disk_problem, "");
  EXPECT_EQ(facts().machine.ephemeral_storage_bytes, 1000);
}

TEST_F(FactsSharedFilesTest, WhatWasReadBeforeStaysTrue) {
  std::promise<void> now;
  now.set_value();
  held_ = std::make_shared<std::shared_future<void>>(now.get_future().share());
  const auto gate = held_;
  options_.patience = seconds{1};  // real ones
  slurmd_starts();
  start_and_answer();
  const auto conf = facts().slurm_conf;
  *gate = released_.get_future().share();  // from now on it hangs
  slurmd_dies();
  slurmd_starts({"-N", "nid7"});
  run_until(
      [this] { return liveness() == Liveness::kRunning && facts().slurmd.pid == slurmd_->pid(); },
      seconds{20});
  wait_quietly(seconds{6});
  EXPECT_EQ(facts().slurm_conf, conf);
  EXPECT_EQ(liveness(), Liveness::kRunning);
  EXPECT_EQ(node::slurm_view(facts()).knowledge, node::Knowledge::kKnown);
  release();
  EXPECT_EQ(discovered_.back(), "nid7");
}

}  // namespace
}  // namespace slurmlet::sync
