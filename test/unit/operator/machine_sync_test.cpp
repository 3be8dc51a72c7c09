// Deletes Machines, on Slurm and an API server in memory. What is drained and when a Machine is
// released is in machine_rules_test.cpp, which Slurm nodes are its own in machine_place_test.cpp.

#include "operator/machines/machine_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"

namespace slurmlet::op {
namespace machine_sync_test {

namespace names = node::vocabulary;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using NodeEvent = kube::WatchEvent<kube::SiteNode>::Type;
using MachineEvent = kube::WatchEvent<kube::Machine>::Type;

class MachineSyncTest : public ::testing::Test {
 protected:
  MachineSyncTest() { restart(); }

  // As after SIGKILL: only Slurm, Nodes and Machines keep their state.
  void restart() {
    machines_ = {};
    machines_.list = [this] { return values(api_.machines); };
    watch_ = {};
    watch_.feed(NodeEvent::kReplaced, values(site_.nodes));
    nodes_.forget();
    dump_.emplace(DumpedNodes::Settings{{}, seconds{15}, "c"},
                  std::make_unique<slurm::ScontrolDump>(slurm::ClientSettings{},
                                                        std::make_unique<FakeSlurmRunner>(slurm_)),
                  [] { return 0.5; });
    sync_.emplace(
        settings_,
        MachineContext{machines_, api_, site_, events_, events_,
                       [this](SteadyTime) { return clock_.now().wall; }},
        [] { return true; }, [this] { return std::make_unique<FakeSlurmRunner>(slurm_); },
        [] { return 0.5; });
    sync_->forget();
  }
  // Adds a host with Machine, Node and Slurm node.
  void add(const std::string& name, const std::string& machine) {
    slurm_.nodes[name].base = "IDLE";
    site_.nodes[name] = site_node(name, "uid-of-" + machine, name);
    api_.machines[machine] = hooked_machine(machine, name);
    feed_watch(name, machine);
  }
  void feed_watch(const std::string& name, const std::string& machine = "") {
    watch_.feed(NodeEvent::kModified, {site_.nodes.at(name)});
    if (!machine.empty()) {
      machines_.feed(MachineEvent::kModified, {api_.machines.at(machine)});
    }
  }
  void change(const std::string& machine, const std::function<void(kube::Machine&)>& edit,
              bool announced = true) {
    kube::Machine& one = api_.machines.at(machine);
    edit(one);
    one.resource_version += "+";
    if (announced) {
      machines_.feed(MachineEvent::kModified, {one});
    }
  }
  void remove(const std::string& machine, const std::string& policy = "") {
    change(machine, [&](kube::Machine& one) {
      one.deleted_at = clock_.now().wall;
      one.drain_policy = policy;
    });
  }
  void remove_with_job(const std::string& number, bool never_ends) {
    add("n" + number, "m" + number);
    slurm_.submit(number, "n" + number);
    slurm_.jobs.at(number).never_ends = never_ends;
    remove("m" + number, "now");
  }
  // Of the slurmctld on this host, without a Node.
  void add_controller(const std::string& machine, const std::string& host) {
    api_.machines[machine] = hooked_machine(machine, "");
    api_.machines[machine].controller = true;
    api_.machines[machine].addresses = {"10.0.0.1", host + ".site"};
    machines_.feed(MachineEvent::kModified, {api_.machines.at(machine)});
  }
  // Cluster API's part after the hook is removed.
  void finish(const std::string& name, const std::string& machine) {
    machines_.feed(MachineEvent::kDeleted, {api_.machines.at(machine)});
    api_.machines.erase(machine);
    watch_.feed(NodeEvent::kDeleted, {site_.nodes.at(name)});
    site_.nodes.erase(name);
  }
  // As the operator's loop does it, but at once.
  SteadyTime step() {
    const Now now = clock_.now();
    (void)nodes_.step(watch_, now);
    SteadyTime next = dump_->step(now, true, !changes_.empty());
    changes_.clear();
    next = std::min(next, sync_->step(now, nodes_, *dump_, changes_));
    for (const auto& change : changes_) {
      apply(change);
    }
    next = changes_.empty() ? next : std::min(next, dump_->soonest());
    return std::min(next, events_.step(now));
  }
  void apply(const NodeChange& change) {
    FakeNode& node = slurm_.nodes.at(change.slurm_node);
    if (change.action == DrainAction::kDelete) {
      slurm_.nodes.erase(change.slurm_node);
    } else if (change.action == DrainAction::kDrain) {
      node.flags.insert("DRAIN");
      node.reason = change.reason;
    } else {
      node.flags.erase("DRAIN");
      node.base = "IDLE";
    }
  }
  void run(Duration time) {
    const int steps = clock_.run(time, [this] { return step(); });
    EXPECT_LT(steps, 100 + time / milliseconds{100}) << "it must not spin";
  }
  bool held(const std::string& machine) { return api_.machines.at(machine).hooked; }
  bool drained(const std::string& name) { return slurm_.nodes.at(name).flags.contains("DRAIN"); }
  std::string detach(const std::string& name) {
    return site_.nodes.at(name).annotations[names::kDetach];
  }
  // Events about Machines that contain `words`.
  std::ptrdiff_t reported(const std::string& words) const {
    const auto events = event_api_.events();
    return std::count_if(events.begin(), events.end(), [&](const auto& event) {
      return event.about.kind == "Machine" && contains(event.message, words);
    });
  }
  const MachineStatus& status() const { return sync_->status(); }

  fakes::FakeClock clock_;
  FakeSlurm slurm_;
  FakeSite site_;
  FakeMachines api_;
  fakes::FakeEventApi event_api_;
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  MachineSettings settings_;
  fakes::FakeWatch<kube::SiteNode> watch_;
  fakes::FakeWatch<kube::Machine> machines_;
  SiteNodes nodes_{"c"};
  std::optional<DumpedNodes> dump_;
  std::optional<MachineSync> sync_;
  std::vector<NodeChange> changes_;
};

TEST_F(MachineSyncTest, ReleasesAMachineOnceItsJobHasEnded) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  run(seconds{20});
  EXPECT_EQ(slurm_.queues, 0) << "only while a Machine is being deleted";
  remove("m1");
  run(minutes{30});
  EXPECT_TRUE(held("m1"));
  EXPECT_TRUE(is_machine_reason(slurm_.nodes["n1"].reason));
  EXPECT_EQ(detach("n1"), "Draining");
  EXPECT_EQ(status().waiting, 1U);
  EXPECT_EQ(status().jobs, 1U);
  EXPECT_THAT(slurm_.ended, IsEmpty());
  sync_->forget();
  EXPECT_EQ(status().waiting, 0U) << "without the lead";
  slurm_.jobs["7"].completing = true;
  run(minutes{1});
  EXPECT_TRUE(held("m1"));
  slurm_.jobs.clear();
  run(seconds{20});
  EXPECT_FALSE(held("m1"));
  EXPECT_EQ(detach("n1"), "Detached");
  EXPECT_EQ(status().released, 1U);
  const int queries = slurm_.queues;
  run(minutes{5});
  EXPECT_EQ(slurm_.queues, queries);
  EXPECT_EQ(status().waiting, 0U);
}

TEST_F(MachineSyncTest, AControllerHandsOverBeforeItsMachineGoes) {
  add("n1", "m1");
  add_controller("c1", "ctl1");
  slurm_.controllers = {{"ctl1", true}, {"ctl2", false}};
  remove("c1");
  run(minutes{10});
  EXPECT_TRUE(held("c1"));
  EXPECT_EQ(slurm_.takeovers, 0);
  EXPECT_EQ(status().without_backup.size(), 1U);
  EXPECT_EQ(reported("no backup slurmctld answers"), 1);
  slurm_.controllers[1].second = true;
  run(seconds{17});
  EXPECT_EQ(slurm_.takeovers, 1);
  EXPECT_TRUE(held("c1")) << "the backup has not answered yet";
  restart();
  run(minutes{1});
  EXPECT_FALSE(held("c1"));
  EXPECT_EQ(slurm_.takeovers, 1);
  EXPECT_EQ(status().without_backup.size(), 0U);
  EXPECT_FALSE(drained("n1"));
}

TEST_F(MachineSyncTest, AControllersMachineStaysWhileSlurmctldDoesNotAnswer) {
  add_controller("c1", "ctl1");
  slurm_.nodes["n1"] = {};
  slurm_.controllers = {{"ctl1", false}, {"ctl2", true}};
  slurm_.away = true;  // the pings as well
  remove("c1");
  run(minutes{5});
  EXPECT_TRUE(held("c1"));
  EXPECT_EQ(slurm_.takeovers, 0);
  slurm_.away = false;
  run(minutes{3});
  EXPECT_FALSE(held("c1"));
}

TEST_F(MachineSyncTest, ADryRunTakesOverNothing) {
  settings_.dry_run = true;
  restart();
  add("n1", "m1");
  add_controller("c1", "ctl1");
  slurm_.controllers = {{"ctl1", true}, {"ctl2", true}};
  remove("c1");
  run(minutes{2});
  EXPECT_EQ(slurm_.takeovers, 0);
  EXPECT_GE(reported("dry run: slurmctld on ctl2 is to take over"), 1);
}

TEST_F(MachineSyncTest, SlurmNodesOfAHostAreReleasedAndUndrainedTogether) {
  add("n1", "m1");
  slurm_.nodes["n1b"].host = "n1";
  slurm_.submit("7", "n1b");
  remove("m1");
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  EXPECT_TRUE(drained("n1") && drained("n1b"));
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_TRUE(drained("n1") && drained("n1b")) << "the Node is still there";
  finish("n1", "m1");
  run(minutes{1});
  EXPECT_TRUE(drained("n1") && drained("n1b"));
  add("n1", "m2");
  run(minutes{1});
  EXPECT_FALSE(drained("n1") || drained("n1b"));
}

// The watch hangs, or its server was restored from a backup.
TEST_F(MachineSyncTest, EndsNoJobForAnOutdatedMachine) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1", "now");
  api_.machines.at("m1").resource_version = "restored";
  api_.machines.at("m1").deleted_at.reset();
  run(minutes{3});
  EXPECT_TRUE(drained("n1")) << "that can be undone";
  EXPECT_THAT(slurm_.ended, IsEmpty());
}

// A slurmd that still runs would register the node again, undrained.
TEST_F(MachineSyncTest, DeletesADynamicNodeOnceItsSlurmdHasEnded) {
  for (const bool is_reused : {true, false}) {
    SCOPED_TRACE(is_reused);
    add("d1", "m1");
    add("s1", "m9");
    slurm_.nodes["d1"].flags = {"DYNAMIC_NORM"};
    remove("m1");
    run(minutes{1});
    EXPECT_FALSE(held("m1"));
    finish("d1", "m1");
    run(minutes{1});
    slurm_.nodes["d1"].base = "DOWN";
    run(minutes{1});
    EXPECT_TRUE(slurm_.nodes.contains("d1") && drained("d1")) << "it answers";
    if (is_reused) {
      add("d1", "m2");
      run(minutes{1});
      EXPECT_FALSE(drained("d1"));
      finish("d1", "m2");
      continue;
    }
    slurm_.nodes["d1"].flags.insert("NOT_RESPONDING");
    restart();
    run(minutes{1});
    EXPECT_FALSE(slurm_.nodes.contains("d1"));
  }
}

// Two Slurm clusters may have a host of this name or address, and only a Node shows which it is.
TEST_F(MachineSyncTest, HoldsAMachineWithoutANodeUnlessItsClusterIsConfigured) {
  add("n9", "m9");
  add("n1", "m1");
  site_.nodes.erase("n1");
  restart();
  change("m1", [](kube::Machine& one) { one.addresses = {"n1.site"}; });
  for (const char* node : {"", "n1"}) {  // none yet, or deleted
    change("m1", [node](kube::Machine& one) { one.node = node; });
    remove("m1");
    run(minutes{5});
    EXPECT_TRUE(held("m1")) << node;
    EXPECT_FALSE(drained("n1")) << node;
  }
  EXPECT_GE(reported("machineCluster"), 1);
  settings_.all_clusters = false;
  restart();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_TRUE(drained("n1"));
}

TEST_F(MachineSyncTest, MachinesOfTwoClustersAreLeftAloneUntilOneIsConfigured) {
  add("n1", "m1");
  add("n2", "m2");
  change("m2", [](kube::Machine& one) { one.cluster = "another"; });
  remove("m1");
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_NE(status().problem, "");
  EXPECT_FALSE(drained("n1"));
  settings_.all_clusters = false;
  restart();
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
}

// squeue then omits other users' jobs without an error.
TEST_F(MachineSyncTest, ReleasesNothingWhileSlurmHidesJobs) {
  settings_.self = {"operator", 1000};
  restart();
  add("n1", "m1");
  slurm_.private_data = "accounts,jobs";
  slurm_.submit("7", "n1");
  slurm_.nodes["n1"].flags.insert("DRAIN");
  remove("m1");
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  slurm_.jobs.clear();
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  slurm_.admin_level = "Operator";
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, ANodeOfTwoMachinesIsNotMarked) {
  add("n1", "m1");
  add("n1", "m2");
  remove("m1");
  run(minutes{3});
  EXPECT_TRUE(held("m1"));
  EXPECT_EQ(detach("n1"), "");
}

// Only slurmctld's own words about the job are a reason to cancel it.
TEST_F(MachineSyncTest, CancelsOnlyWhatSlurmctldCannotRequeue) {
  const struct {
    int fails;  // exit code, or negative signal
    const char* says;
    bool cancelled, reported;
  } rows[] = {
      {1, "Requested operation is presently disabled for job 7", true, false},
      {1, "Only batch jobs are accepted or processed for job 7", true, false},
      {1, "Job/step already completing or completed for job 7", false, false},
      {1, "Invalid job id specified for job 7", false, false},
      {1, "a text that no release had so far", false, true},
      {1, "Access/permission denied for job 7", false, true},
      {1, "", false, true},
      {127, "", false, true},
      {-SIGALRM, "", false, true},
      {-SIGKILL, "", false, true},
  };
  int number = 0;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.says);
    const std::string machine = "m" + std::to_string(++number);
    event_api_.expire_all();
    slurm_ = {};
    restart();
    add("n1", machine);
    slurm_.submit("7", "n1");
    slurm_.requeue_fails = row.fails;
    slurm_.requeue_says = row.says;
    remove(machine, "now");
    run(minutes{10});
    EXPECT_EQ(slurm_.ended,
              row.cancelled ? std::vector<std::string>{"cancel 7"} : std::vector<std::string>{});
    EXPECT_EQ(reported("could not requeue job 7: "), row.reported ? 1 : 0) << "once";
    slurm_.requeue_fails = 0;
    run(minutes{1});
    EXPECT_EQ(slurm_.ended.size(), 1U);
    slurm_.jobs.clear();
    run(minutes{3});
    EXPECT_FALSE(held(machine));
    api_.machines.erase(machine);
  }
}

TEST_F(MachineSyncTest, TheAnnotationOverridesTheConfiguration) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1", "deadline=10m");
  run(minutes{9});
  EXPECT_THAT(slurm_.ended, IsEmpty());
  run(minutes{2});
  EXPECT_EQ(slurm_.ended.size(), 1U);
  add("n2", "m2");
  slurm_.submit("9", "n2");
  run(seconds{20});
  remove("m2", "soon");
  run(minutes{20});
  EXPECT_EQ(slurm_.ended.size(), 1U) << "an invalid policy ends no job";
  EXPECT_EQ(reported("must be wait, now or deadline=DURATION"), 1);
}

// A job may run for a week, but an API server keeps an Event for an hour.
TEST_F(MachineSyncTest, RepeatsWhyAMachineWaitsEveryHalfHour) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{10});
  event_api_.expire_all();
  run(minutes{35});
  const auto events = event_api_.events();
  const auto waits = std::find_if(events.begin(), events.end(), [](const auto& event) {
    return event.reason == "MachineWaits" && event.about.kind == "Machine";
  });
  ASSERT_NE(waits, events.end());
  EXPECT_EQ(waits->about.api_version, "cluster.x-k8s.io/v1beta2");
}

// The node itself removes it.
TEST_F(MachineSyncTest, RestoresARemovedAnnotation) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{1});
  ASSERT_EQ(detach("n1"), "Draining");
  feed_watch("n1");
  run(minutes{1});
  site_.nodes["n1"].annotations.erase(names::kDetach);
  feed_watch("n1");
  run(minutes{1});
  EXPECT_EQ(detach("n1"), "Draining");
}

// Otherwise its daemon would start slurmd again. Jobs are unknown after each dump and restart.
TEST_F(MachineSyncTest, StaysDetachedWhileTheHookCannotBeRemoved) {
  add("n1", "m1");
  api_.fail_calls("release", Error{Code::kDenied, "403"});
  remove("m1");
  run(minutes{1});
  ASSERT_EQ(detach("n1"), "Detached");
  feed_watch("n1");
  site_.clear_calls();
  run(seconds{50});
  restart();
  run(seconds{50});
  EXPECT_THAT(site_.calls(), IsEmpty());
}

// By then the Machine may be deleted, and the Node may be the next Machine's.
TEST_F(MachineSyncTest, ActsOnNoMachineWhileTheWatchFails) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  run(seconds{20});
  machines_.fail(Error{Code::kUnavailable, "no route"});
  remove("m1", "now");
  run(minutes{5});
  EXPECT_FALSE(drained("n1"));
  EXPECT_THAT(slurm_.ended, IsEmpty());
  EXPECT_TRUE(held("m1"));
  EXPECT_EQ(detach("n1"), "");
  EXPECT_EQ(status().problem, "no route");
  machines_.fail(std::nullopt);
  run(minutes{1});
  EXPECT_THAT(slurm_.ended, ElementsAre("requeue 7"));
}

// A right is missing, or an admission webhook for one Machine never answers.
TEST_F(MachineSyncTest, RetriesRemovingAHookWithBackOffAndDelaysNoOther) {
  for (const Code code : {Code::kDenied, Code::kTimeout}) {
    SCOPED_TRACE(static_cast<int>(code));
    api_.fail_calls("release m1", Error{code, "it fails"});
    api_.clear_calls();
    for (const std::string number : {"1", "2", "3"}) {
      add("n" + number, "m" + number);
      remove("m" + number);
    }
    run(minutes{10});
    EXPECT_TRUE(held("m1"));
    EXPECT_FALSE(held("m2") || held("m3"));
    EXPECT_LT(api_.calls().size(), 60U);
    EXPECT_LE(slurm_.queues, slurm_.dumps);
    EXPECT_NE(status().problem, "");
    api_.fail_calls("", std::nullopt);
    run(minutes{2});
    EXPECT_FALSE(held("m1"));
    EXPECT_EQ(status().problem, "");
  }
}

// Commands run one at a time, and the answer of squeue is valid for seconds.
TEST_F(MachineSyncTest, EndlessJobsDelayNoOtherMachine) {
  const auto step_loop = [this] { return step(); };
  for (int i = 100; i < 200; ++i) {
    remove_with_job(std::to_string(i), true);
  }
  remove_with_job("900", false);
  add("n901", "m901");
  remove("m901");
  clock_.run(minutes{3}, step_loop);
  EXPECT_FALSE(held("m901"));
  EXPECT_THAT(slurm_.ended, Contains("requeue 900"));
  slurm_.ended.clear();
  std::erase_if(slurm_.jobs, [](const auto& job) { return job.first < "193"; });
  slurm_.jobs.at("900").completing = false;
  slurm_.answers_after = milliseconds{3500};
  clock_.run(minutes{8}, step_loop);
  EXPECT_THAT(slurm_.ended, Contains("requeue 900"));
}

// An admission webhook for some Nodes never answers.
TEST_F(MachineSyncTest, NodesThatCannotBeUnmarkedDelayNoOther) {
  site_.fail_calls("annotate n1", Error{Code::kTimeout, "it hangs"});
  site_.before_annotate = [this](const std::string& node) {
    clock_.advance(node.starts_with("n1") ? seconds{5} : seconds{0});
  };
  for (const std::string number : {"11", "12", "13", "14", "15", "2", "3"}) {
    add("n" + number, "m" + number);
    site_.nodes["n" + number].annotations[names::kDetach] = "Detached";
    feed_watch("n" + number);
  }
  run(minutes{10});
  EXPECT_EQ(detach("n2"), "");
  remove("m3");
  run(minutes{10});
  EXPECT_FALSE(held("m3"));
}

}  // namespace machine_sync_test
}  // namespace slurmlet::op
