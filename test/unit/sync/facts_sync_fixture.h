#pragma once

// FactsSync over a temporary machine: /proc, the spool directory and the pidfile are files of the
// test, slurmd is a real process (its end is an event) that the temporary /proc calls slurmd.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "fakes/child_process.h"
#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"
#include "node/slurm_view.h"
#include "slurm/fake_proc.h"
#include "slurm/fake_runner.h"
#include "slurm/record_fixture.h"
#include "slurm/sources/scontrol_source.h"
#include "sync/facts_sync.h"

namespace slurmlet::sync {

inline constexpr int kCommandFd = 77;  // of FakeRunner

class FactsSyncFixture : public ::testing::Test {
 protected:
  FactsSyncFixture() {
    tree_.dir("run").dir("spool").dir("cgroup").dir("sys");
    tree_.file("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    set_memory_available("8000000");
    tree_.file("proc/loadavg", "0.20 0.18 0.12 1/80 11206\n");
    tree_.file("proc/sys/kernel/pid_max", "32768\n");
    tree_.file("proc/sys/kernel/threads-max", "100000\n");
    slurm::add_process(tree_, {1, "systemd", {"/sbin/init"}});
    options_.paths = {tree_.path("proc"), tree_.path("sys"), tree_.path("etc"), tree_.path("usr"),
                      tree_.path("run"),  tree_.root(),      tree_.path("dev")};
    options_.first_patience = options_.patience = std::chrono::minutes{1};  // a busy machine
    options_.tick = std::chrono::seconds{10};
    conf_.watch.patience = options_.patience;
    conf_.watch.rescan = conf_.watch.state_check = std::chrono::seconds{10};
    conf_.node_name = "nid1";
    conf_.conf.cluster_name = "alps";
    conf_.watch.places = {tree_.path("proc"), tree_.path("cgroup"), tree_.path("run/slurmd.pid")};
    conf_.watch.spool_dir = tree_.path("spool");
    conf_.watch.systemd_dir = tree_.path("run/systemd/system");  // not there: not this machine's
    conf_.jobs = {tree_.path("spool"), "", tree_.path("proc"), tree_.path("cgroup")};
    poll_.interval =
        std::chrono::hours{24};  // what is asked beyond the first question is asked on evidence
    poll_.stale_after = std::chrono::hours{48};
  }

  // Just started; nothing has been looked at but the machine and slurm.conf.
  void make() {
    // Runs on other threads, while step() waits for it.
    auto discover = [this, held = held_](const std::vector<slurm::SlurmdSeen>& slurmds) {
      if (held) {
        touches_file("/shared/slurm.conf");
        if (!std::exchange(is_read_, true)) {
          read_.set_value();
        }
        held->wait();
      }
      const std::string option = slurmds.empty() ? "" : slurmds.front().options.node_name;
      discovered_.push_back(option);
      SlurmSetup setup = conf_;
      if (slurmds.size() > 1 && !name_of_several_.empty()) {
        setup.node_name = setup.watch.identity.node_name = name_of_several_;
      } else if (slurmds.size() > 1) {
        setup.node_name.clear();
        setup.name_problem = "slurmd runs here several times";
      } else if (!option.empty()) {
        setup.node_name = option;
      }
      return setup;
    };
    SlurmSetup unread;
    unread.watch.places.proc_root = conf_.watch.places.proc_root;
    unread.watch.places.cgroup_root = conf_.watch.places.cgroup_root;
    unread.watch.systemd_dir = conf_.watch.systemd_dir;
    slurm::PollSources sources;
    if (has_operator_) {
      sources.record.emplace(true);
    } else {
      sources.query = std::make_unique<slurm::ScontrolSource>(
          slurm::ClientSettings{}, std::make_unique<slurm::FakeRunner>(dump_));
    }
    auto poll =
        std::make_unique<slurm::ControllerPoll>(poll_, std::move(sources), [] { return 0.5; });
    facts_ = std::make_unique<FactsSync>(
        FactsSync::Parts{.options = options_,
                         .metal3 = metal3_,
                         .discover = discover,
                         .unread = unread,
                         .poll = std::move(poll),
                         .version_runner = std::make_unique<slurm::FakeRunner>(version_),
                         .unit_runner = std::make_unique<slurm::FakeRunner>(unit_)});
  }
  // Has looked for slurmd, and `slurmd -V` has ended.
  void start() {
    make();
    step();
    end_version();
  }
  // Also the first question has been answered, and that was long ago.
  void start_and_answer() {
    start();
    run_until([this] { return !dump_.started.empty(); }, std::chrono::seconds{3});
    answer();
    wait_quietly(std::chrono::minutes{1});
    queries_ = dump_.started.size();
  }
  SteadyTime step() { return facts_->step(clock_.now()); }
  void end_version(const std::string& version = "slurm-wlm 22.05.8") {
    version_.end = CommandOutput{};
    version_.end->out = version + "\n";
    step();
  }
  // slurmctld answers about this node.
  void answer(const std::string& state = "IDLE") {
    if (dump_.started.empty()) {
      ADD_FAILURE() << "slurmctld has not been queried";
      return;
    }
    CommandOutput output;
    output.out = slurm::scontrol_record(facts_->setup().node_name, state);
    dump_.end = output;
    step();
  }

  // Goes from wake-up to wake-up until `done`; how long that took.
  Duration run_until(const std::function<bool()>& done, Duration limit) {
    const SteadyTime begin = clock_.now().steady;
    while (true) {
      const SteadyTime next = step();
      if (done() || next > begin + limit) {
        EXPECT_TRUE(done()) << "not within the limit";
        return clock_.now().steady - begin;
      }
      clock_.advance(std::max<Duration>(next - clock_.now().steady, std::chrono::milliseconds{1}));
    }
  }
  // Lets time pass, stepping when asked to.
  void wait_quietly(Duration time) {
    const SteadyTime end = clock_.now().steady + time;
    for (SteadyTime next = step(); next < end; next = step()) {
      clock_.advance(std::max<Duration>(next - clock_.now().steady, std::chrono::milliseconds{1}));
    }
    clock_.advance(end - clock_.now().steady);
    step();
  }
  // Whether one of the descriptors to wait for is readable.
  bool wakes() const {
    std::vector<pollfd> entries;
    for (const int fd : facts_->wake_fds()) {
      if (fd != kCommandFd) {
        entries.push_back({fd, POLLIN, 0});
      }
    }
    return ::poll(entries.data(), entries.size(), 0) > 0;
  }

  void slurmd_starts(std::vector<std::string> options = {}) {
    slurmd_ = std::make_unique<fakes::SleepingChild>();
    options.insert(options.begin(), "/usr/sbin/slurmd");
    slurm::add_process(tree_, {slurmd_->pid(), "slurmd", options});
    tree_.file("run/slurmd.pid", std::to_string(slurmd_->pid()) + "\n");
  }
  // As by kill -9: the pidfile stays.
  void slurmd_dies() {
    tree_.remove("proc/" + std::to_string(slurmd_->pid()));
    slurmd_.reset();
  }
  void job_starts(const std::string& spool, int job, int pid) {
    slurm::add_process(tree_, {pid, "slurmstepd", {fmt::format("slurmstepd: [{}.0]", job)}});
    tree_.file(fmt::format("{}/nid1_{}.0", spool, job), "");
  }
  void set_memory_available(const std::string& kib) {
    tree_.file("proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         1000000 kB\n" +
                                   ("MemAvailable:    " + kib + " kB\n"));
  }

  const node::HostFacts& facts() const { return facts_->facts(); }
  node::SlurmdFacts::Liveness liveness() const { return facts().slurmd.liveness; }
  int jobs() const { return facts().jobs ? facts().jobs->jobs : -1; }
  bool grace_over() const { return facts_->ready_context(clock_.now()).slurmd_grace_over; }
  std::size_t new_queries() const { return dump_.started.size() - queries_; }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  slurm::FakeProgram dump_;  // show node
  slurm::FakeProgram version_;
  slurm::FakeProgram unit_;  // systemctl
  FactsOptions options_;
  slurm::PollSettings poll_;
  bool has_operator_ = false;    // in the place of scontrol
  SlurmSetup conf_;              // what slurm.conf says
  std::string name_of_several_;  // as slurm.nodeName chooses where several slurmd run; "" = refused
  std::optional<node::Metal3Facts> metal3_;
  // While held, slurm.conf does not answer.
  void hold_slurm_conf() {
    released_ = {};
    held_ = std::make_shared<std::shared_future<void>>(released_.get_future());
    options_.first_patience = options_.patience = Duration{0};
  }
  // Until the thread is at slurm.conf.
  void await_reading() { read_.get_future().wait(); }
  std::promise<void> read_;
  bool is_read_ = false;
  std::promise<void> released_;
  std::shared_ptr<std::shared_future<void>> held_;
  std::vector<std::string> discovered_;  // NAME of slurmd's -N at each reading of slurm.conf
  std::size_t queries_ = 0;
  std::unique_ptr<fakes::SleepingChild> slurmd_;
  std::unique_ptr<FactsSync> facts_;
};

}  // namespace slurmlet::sync
