// Deletes Machines with the operator's whole loop, on Slurm and an API server in memory.

#include "operator/machines/machine_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"
#include "operator/operator_loop.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using NodeEvent = kube::WatchEvent<kube::SiteNode>::Type;
using MachineEvent = kube::WatchEvent<kube::Machine>::Type;

class MachineSyncTest : public ::testing::Test {
 protected:
  MachineSyncTest() {
    settings_.dump.interval = seconds{15};
    settings_.dump.cluster = "c";
    restart();
  }

  // As after SIGKILL: only Slurm, Nodes and Machines keep their state.
  void restart() {
    loop_.reset();
    nodes_ = std::make_unique<fakes::FakeWatch<kube::SiteNode>>();
    machines_ = std::make_unique<fakes::FakeWatch<kube::Machine>>();
    loop_ = std::make_unique<OperatorLoop>(
        settings_,
        OperatorContext{clock_, *nodes_, site_, leader_, events_, *machines_, api_, events_,
                        [this](SteadyTime) { return clock_.now().wall; }, leases_, node_api_},
        std::make_unique<slurm::ScontrolDump>(slurm::ClientSettings{},
                                              std::make_unique<FakeSlurmRunner>(slurm_)),
        std::make_unique<FakeSlurmRunner>(slurm_), std::make_unique<FakeSlurmRunner>(slurm_),
        [] { return 0.5; });
    nodes_->list = [this] {
      std::vector<kube::SiteNode> nodes;
      for (const auto& [name, node] : site_.nodes) {
        nodes.push_back(node);
      }
      return nodes;
    };
    machines_->list = [this] {
      std::vector<kube::Machine> machines;
      for (const auto& [name, machine] : api_.machines) {
        machines.push_back(machine);
      }
      return machines;
    };
  }
  // Adds a host with Machine, Node and Slurm node.
  void add(const std::string& name, const std::string& machine, bool dynamic = false) {
    if (!slurm_.nodes.contains(name)) {
      slurm_.nodes[name].flags =
          dynamic ? std::set<std::string>{"DYNAMIC_NORM"} : std::set<std::string>{};
    }
    slurm_.nodes[name].base = "IDLE";  // its slurmd registers
    slurm_.nodes[name].flags.erase("NOT_RESPONDING");
    site_.nodes[name] = {name,
                         "uid-of-" + machine,
                         {{names::kSlurmNode, name}, {names::kSlurmCluster, "c"}},
                         false,
                         false,
                         ""};
    kube::Machine one;
    one.api_version = "v1beta2";
    one.namespace_name = "ns";
    one.name = machine;
    one.uid = "m-" + machine;
    one.resource_version = "1";
    one.cluster = "hpc";
    one.node = name;
    one.hooked = true;
    api_.machines[machine] = one;
    feed_watch(name, machine);
  }
  void feed_watch(const std::string& name, const std::string& machine) {
    if (site_.nodes.contains(name)) {
      nodes_->feed(NodeEvent::kModified, {site_.nodes.at(name)});
    }
    if (api_.machines.contains(machine)) {
      machines_->feed(MachineEvent::kModified, {api_.machines.at(machine)});
    }
  }
  void change(const std::string& machine, const std::function<void(kube::Machine&)>& edit,
              bool announced = true) {
    kube::Machine& one = api_.machines.at(machine);
    edit(one);
    one.resource_version += "+";
    if (announced) {
      machines_->feed(MachineEvent::kModified, {one});
    }
  }
  void remove(const std::string& machine, bool announced = true) {
    change(
        machine, [this](kube::Machine& one) { one.deleted_at = clock_.now().wall; }, announced);
  }
  // Adds a host with a job and deletes its Machine.
  void remove_with_job(const std::string& number, bool never_ends) {
    add("n" + number, "m" + number);
    slurm_.submit(number, "n" + number);
    slurm_.jobs.at(number).never_ends = never_ends;
    remove("m" + number);
  }
  // Cluster API's part after the hook is removed.
  void finish(const std::string& name, const std::string& machine) {
    machines_->feed(MachineEvent::kDeleted, {api_.machines.at(machine)});
    api_.machines.erase(machine);
    lose(name);
  }
  // Deletes the Node only.
  void lose(const std::string& name) {
    nodes_->feed(NodeEvent::kDeleted, {site_.nodes.at(name)});
    site_.nodes.erase(name);
  }
  void run(Duration time) {
    const int steps = clock_.run(time, [this] { return loop_->step(); });
    EXPECT_LT(steps, 100 + time / milliseconds{100}) << "it must not spin";
  }
  bool held(const std::string& machine) { return api_.machines.at(machine).hooked; }
  bool drained(const std::string& name) { return slurm_.nodes.at(name).flags.contains("DRAIN"); }
  std::string detach(const std::string& name) {
    return site_.nodes.at(name).annotations[names::kDetach];
  }

  fakes::FakeClock clock_;
  FakeSlurm slurm_;
  FakeSite site_;
  FakeMachines api_;
  fakes::FakeLeaseApi leases_;
  fakes::FakeNodeApi node_api_;
  fakes::FakeEventApi event_api_;
  Leader leader_{leases_, "slurmlet-operator-c", "a", [] { return 0.5; }, clock_};
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  OperatorSettings settings_;
  std::unique_ptr<fakes::FakeWatch<kube::SiteNode>> nodes_;
  std::unique_ptr<fakes::FakeWatch<kube::Machine>> machines_;
  std::unique_ptr<OperatorLoop> loop_;
};

TEST_F(MachineSyncTest, ReleasesAMachineOnceItsJobHasEnded) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  run(seconds{20});
  EXPECT_EQ(slurm_.queues, 0) << "only while a Machine is being deleted";
  remove("m1");
  run(minutes{30});
  EXPECT_TRUE(held("m1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: machine deleted [uid-of-m1]");
  EXPECT_EQ(detach("n1"), "Draining");
  EXPECT_EQ(loop_->status().machines.waiting, 1U);
  EXPECT_EQ(loop_->status().machines.jobs, 1U);
  EXPECT_TRUE(slurm_.ended.empty());
  slurm_.jobs["7"].completing = true;
  run(minutes{1});
  EXPECT_TRUE(held("m1"));
  slurm_.jobs.clear();
  run(seconds{20});
  EXPECT_FALSE(held("m1"));
  EXPECT_EQ(detach("n1"), "Detached");
  EXPECT_EQ(loop_->status().machines.released, 1U);
  const int queries = slurm_.queues;
  run(minutes{5});
  EXPECT_EQ(slurm_.queues, queries);
  EXPECT_EQ(loop_->status().machines.waiting, 0U);
}

TEST_F(MachineSyncTest, TheNextMachinesNodeUndrainsAStaticNode) {
  add("n1", "m1");
  remove("m1");
  run(minutes{1});
  ASSERT_FALSE(held("m1"));
  run(minutes{1});
  EXPECT_TRUE(drained("n1")) << "the Node is still there";
  finish("n1", "m1");
  run(minutes{1});
  EXPECT_TRUE(drained("n1"));
  add("n1", "m2");
  run(seconds{20});
  EXPECT_FALSE(drained("n1"));
}

// The watch hangs, or its server was restored from a backup.
TEST_F(MachineSyncTest, EndsNoJobForAnOutdatedMachine) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  add("d1", "m2", true);
  slurm_.submit("7", "n1");
  run(seconds{20});
  remove("m1");
  remove("m2");
  api_.machines.at("m1").resource_version = "restored";
  api_.machines.at("m1").deleted_at.reset();
  api_.fail_calls("release m2", Error{Code::kTimeout, "it hangs"});
  run(minutes{3});
  EXPECT_TRUE(drained("n1")) << "that can be undone";
  EXPECT_TRUE(slurm_.ended.empty());
  EXPECT_TRUE(slurm_.nodes.contains("d1"));
  EXPECT_NE(loop_->status().machines.problem, "");
}

// A slurmd that still runs would register the node again, undrained.
TEST_F(MachineSyncTest, DeletesADynamicNodeOnceItsSlurmdHasEnded) {
  add("d1", "m1", true);
  add("s1", "m9");
  slurm_.submit("7", "d1");
  remove("m1");
  run(minutes{1});
  EXPECT_TRUE(held("m1"));
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  finish("d1", "m1");
  run(minutes{5});
  EXPECT_TRUE(slurm_.nodes.contains("d1") && drained("d1"));
  slurm_.nodes["d1"].base = "DOWN";
  run(minutes{1});
  EXPECT_TRUE(slurm_.nodes.contains("d1")) << "it answers";
  slurm_.nodes["d1"].flags.insert("NOT_RESPONDING");
  restart();
  run(minutes{1});
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
  EXPECT_EQ(loop_->status().records_deleted, 1U);
}

TEST_F(MachineSyncTest, ADynamicNodeOfTheNextMachineIsUndrainedAndStays) {
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  finish("d1", "m1");
  slurm_.nodes["d1"].base = "DOWN";
  add("d1", "m2", true);
  run(minutes{5});
  EXPECT_FALSE(drained("d1"));
  EXPECT_EQ(slurm_.nodes["d1"].base, "IDLE");
}

// It may be another cluster's, removed from slurm.conf, or hidden from us.
TEST_F(MachineSyncTest, HoldsAMachineWithoutASlurmNode) {
  add("n1", "m1");
  slurm_.nodes.clear();
  slurm_.nodes["n2"];
  remove("m1");
  run(minutes{10});
  EXPECT_TRUE(held("m1"));
  restart();
  run(minutes{10});
  EXPECT_TRUE(held("m1"));
  const auto events = event_api_.events();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.about.kind == "Machine" && contains(event.message, "remove the hook");
  }));
}

TEST_F(MachineSyncTest, AMachineOfAnotherSlurmClusterIsLeftAlone) {
  add("n1", "m1");
  slurm_.nodes["n1"].flags.insert("DRAIN");
  slurm_.nodes["n1"].reason = "slurmlet: machine deleted [uid-of-m1]";
  site_.nodes["n1"].annotations[names::kSlurmCluster] = "another";
  feed_watch("n1", "m1");
  remove("m1");
  run(minutes{10});
  EXPECT_TRUE(held("m1"));
  EXPECT_TRUE(slurm_.updates.empty());
  EXPECT_TRUE(site_.calls().empty());
  EXPECT_TRUE(event_api_.events().empty());
  // Nor one whose daemon has not reported its cluster.
  site_.nodes["n1"].annotations.erase(names::kSlurmCluster);
  feed_watch("n1", "m1");
  run(minutes{10});
  EXPECT_TRUE(held("m1"));
}

TEST_F(MachineSyncTest, ReleasesAMachineThatWasNeverProvisioned) {
  add("n9", "m9");
  add("n1", "m1");
  lose("n1");
  slurm_.nodes.erase("n1");
  change("m1", [](kube::Machine& one) { one.node = ""; });
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_TRUE(slurm_.updates.empty());
}

// Two Slurm clusters may have a host of this name or address, and only a Node shows which it is.
TEST_F(MachineSyncTest, HoldsAMachineWithoutANodeUnlessItsClusterIsConfigured) {
  add("n9", "m9");
  add("n1", "m1");
  slurm_.nodes["n1"].address = "10.0.0.1";
  lose("n1");
  change("m1", [](kube::Machine& one) { one.addresses = {"n1.site", "10.0.0.1"}; });
  for (const char* node : {"", "n1"}) {  // none yet, or deleted
    change("m1", [node](kube::Machine& one) { one.node = node; });
    if (!api_.machines.at("m1").deleted_at) {
      remove("m1");
    }
    run(minutes{5});
    EXPECT_TRUE(held("m1")) << node;
    EXPECT_FALSE(drained("n1")) << node;
  }
  const auto events = event_api_.events();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.about.kind == "Machine" && contains(event.message, "machineCluster");
  }));
  settings_.all_machines = false;
  restart();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

// A slurmd may run there under an unknown name.
TEST_F(MachineSyncTest, AMachineThatMayHaveAHostWaitsForAPerson) {
  add("n9", "m9");
  for (const auto& edit : std::vector<std::function<void(kube::Machine&)>>{
           [](kube::Machine& one) { one.provider_id = "metal3://ns/host/other-form"; },
           [](kube::Machine& one) { one.addresses = {"10.0.0.7"}; },
           [](kube::Machine& one) { one.provisioned = true; }}) {
    add("n1", "m1");
    lose("n1");
    slurm_.nodes.erase("n1");
    change("m1", [&](kube::Machine& one) {
      one.node = "";
      edit(one);
    });
    remove("m1");
    run(minutes{10});
    EXPECT_TRUE(held("m1"));
  }
}

// The host is in slurm.conf and was provisioned, but has no Node.
TEST_F(MachineSyncTest, ReleasesAMachineThatNeverJoinedOnceItsSlurmNodeIsDrained) {
  settings_.all_machines = false;
  restart();
  add("n1", "m1");
  lose("n1");
  slurm_.nodes["n1"] = {"DOWN", {"NOT_RESPONDING"}, "Not responding"};
  change("m1", [](kube::Machine& one) {
    one.node = "";
    one.addresses = {"n1.site", "10.0.0.1"};
  });
  remove("m1");
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
  EXPECT_TRUE(drained("n1"));
}

TEST_F(MachineSyncTest, TwoSlurmNodesOfAHostAreReleasedAndUndrainedTogether) {
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
  finish("n1", "m1");
  add("n1", "m2");
  run(minutes{1});
  EXPECT_FALSE(drained("n1") || drained("n1b"));
}

// Without NodeHostName, only NodeAddr shows that they are one host.
TEST_F(MachineSyncTest, SlurmNodesOfOneAddressAreReleasedAndUndrainedTogether) {
  add("n1", "m1");
  slurm_.nodes["n1b"];
  for (const char* name : {"n1", "n1b"}) {
    slurm_.nodes[name].address = "10.0.0.1";
  }
  change("m1", [](kube::Machine& one) { one.addresses = {"10.0.0.1"}; });
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_TRUE(drained("n1") && drained("n1b"));
  finish("n1", "m1");
  add("n1", "m2");
  change("m2", [](kube::Machine& one) { one.addresses = {"10.0.0.1"}; });
  run(minutes{1});
  EXPECT_FALSE(drained("n1") || drained("n1b"));
}

// Its Node has another providerID, so only the addresses match.
TEST_F(MachineSyncTest, AMachineIsFoundByItsAddresses) {
  settings_.all_machines = false;
  restart();
  add("n1", "m1");
  slurm_.nodes["n1"].address = "10.0.0.1";
  slurm_.submit("7", "n1");
  site_.nodes["n1"].provider_id = "metal3://uid";
  feed_watch("n1", "m1");
  lose("n1");
  change("m1", [](kube::Machine& one) {
    one.node = "";
    one.provider_id = "metal3://ns/host/m1";
    one.addresses = {"10.0.0.1"};
  });
  remove("m1");
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  EXPECT_TRUE(drained("n1"));
}

// squeue then omits other users' jobs without an error.
TEST_F(MachineSyncTest, ReleasesNothingWhileSlurmHidesJobs) {
  add("n1", "m1");
  slurm_.private_data = "accounts,jobs";
  slurm_.submit("7", "n1");
  slurm_.nodes["n1"].flags.insert("DRAIN");
  slurm_.nodes["n1"].reason = "dimm";
  remove("m1");
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  settings_.self = {"operator", 1000};
  restart();
  slurm_.jobs.clear();
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  slurm_.admin_level = "Operator";
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

// squeue shows it with the nodes of its last run.
TEST_F(MachineSyncTest, IgnoresARequeuedJob) {
  add("n1", "m1");
  slurm_.requeued_from = "n1";
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, AConflictIsNoFailure) {
  add("n1", "m1");
  remove("m1");
  change(
      "m1", [](kube::Machine&) {}, false);  // another client's write
  const auto began = clock_.now().steady;
  while (held("m1") && clock_.now().steady - began < minutes{2}) {
    run(milliseconds{100});
  }
  EXPECT_LE(clock_.now().steady - began, seconds{10});
  EXPECT_EQ(loop_->status().machines.failures, 0U);
}

TEST_F(MachineSyncTest, ReleasesAnIdleMachineWithinSecondsOfItsDrain) {
  for (int i = 1; i <= 20; ++i) {
    add("n" + std::to_string(i), "m" + std::to_string(i));
  }
  run(seconds{40});
  for (int i = 1; i <= 20; ++i) {
    const std::string machine = "m" + std::to_string(i);
    run(milliseconds{700 * i});
    remove(machine);
    const auto began = clock_.now().steady;
    while (held(machine) && clock_.now().steady - began < minutes{1}) {
      run(milliseconds{100});
    }
    EXPECT_LE(clock_.now().steady - began, seconds{5}) << i;
  }
}

// As a MachineHealthCheck deletes it.
TEST_F(MachineSyncTest, ReleasesADownNodeAndKeepsItsReason) {
  add("n2", "m2");
  slurm_.nodes["n2"].base = "DOWN";
  slurm_.nodes["n2"].reason = "bad dimm";
  remove("m2");
  run(minutes{2});
  EXPECT_FALSE(held("m2"));
  EXPECT_TRUE(drained("n2"));
  EXPECT_EQ(slurm_.nodes["n2"].reason, "bad dimm");
}

// The host is off for longer than SlurmdTimeout while it is reprovisioned.
TEST_F(MachineSyncTest, ANodeThatWentDownWhileItsHostWasProvisionedComesBackIntoService) {
  add("n1", "m1");
  remove("m1");
  run(minutes{1});
  finish("n1", "m1");
  slurm_.nodes["n1"].base = "DOWN";
  slurm_.nodes["n1"].flags.insert("NOT_RESPONDING");
  slurm_.nodes["n1"].reason += " : Not responding";
  site_.nodes["n1"] = {"n1",  "uid-of-m2", {{names::kSlurmNode, "n1"}, {names::kSlurmCluster, "c"}},
                       false, false,       ""};
  api_.machines["m2"] = api_.machines["m1"];
  add("n1", "m2");
  slurm_.nodes["n1"].base = "DOWN";
  slurm_.nodes["n1"].flags.insert("NOT_RESPONDING");
  run(minutes{2});
  EXPECT_TRUE(drained("n1")) << "its slurmd does not respond";
  slurm_.nodes["n1"].flags.erase("NOT_RESPONDING");
  run(seconds{20});
  EXPECT_FALSE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].base, "IDLE");
}

TEST_F(MachineSyncTest, ANodeOfTwoMachinesIsNotMarked) {
  add("n1", "m1");
  add("n1", "m2");
  remove("m1");
  run(minutes{3});
  EXPECT_TRUE(held("m1"));
  EXPECT_EQ(detach("n1"), "");
  EXPECT_EQ(site_.count("annotate n1"), 1) << "its record";
}

// scontrol timed out or is missing, which says nothing about the job.
TEST_F(MachineSyncTest, ARequeueThatFailedOtherwiseCancelsNothing) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  slurm_.submit("7", "n1");
  for (const int how : {127, -SIGALRM, -SIGKILL}) {
    slurm_.requeue_fails = how;
    if (how == 127) {
      remove("m1");
    }
    run(minutes{2});
    EXPECT_TRUE(slurm_.ended.empty());
  }
  const auto events = event_api_.events();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.message == "could not requeue job 7: Slurm's command cannot be run" &&
           event.type == "Warning";
  }));
  slurm_.requeue_fails = 0;
  run(minutes{1});
  EXPECT_EQ(slurm_.ended, (std::vector<std::string>{"requeue 7"}));
}

TEST_F(MachineSyncTest, ReportsAFailureOncePerJob) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  slurm_.submit("7", "n1");
  slurm_.submit("8", "n1");
  slurm_.requeue_fails = 1;
  slurm_.requeue_says = "Access/permission denied for job";
  remove("m1");
  testing::internal::CaptureStderr();
  run(minutes{10});
  const std::string log = testing::internal::GetCapturedStderr();
  for (const std::string job : {"7", "8"}) {
    const std::string text = "could not requeue job " + job;
    const auto first = log.find(text);
    ASSERT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find(text, first + 1), std::string::npos) << log;
  }
}

TEST_F(MachineSyncTest, CancelsOnlyWhatSlurmctldCannotRequeue) {
  const struct {
    const char* says;
    bool cancelled, reported;
  } rows[] = {
      {"Requested operation is presently disabled for job 7", true, false},
      {"Only batch jobs are accepted or processed for job 7", true, false},
      {"Job/step already completing or completed for job 7", false, false},
      {"Invalid job id specified for job 7", false, false},
      {"a text that no release had so far", false, true},
      {"", false, true},
  };
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.says);
    const std::string machine = "m" + std::to_string(&row - rows);
    const auto before = event_api_.events().size();
    restart();
    add("n1", machine);
    slurm_.nodes["n1"].flags.clear();
    slurm_.jobs.clear();
    slurm_.ended.clear();
    slurm_.submit("7", "n1");
    slurm_.requeue_fails = 1;
    slurm_.requeue_says = row.says;
    remove(machine);
    run(minutes{3});
    EXPECT_EQ(slurm_.ended,
              row.cancelled ? std::vector<std::string>{"cancel 7"} : std::vector<std::string>{});
    const auto events = event_api_.events();
    EXPECT_EQ(std::any_of(events.begin() + static_cast<std::ptrdiff_t>(before), events.end(),
                          [](const auto& event) {
                            return contains(event.message, "could not requeue job 7: ");
                          }),
              row.reported);
    slurm_.jobs.clear();
    run(minutes{3});
    EXPECT_FALSE(held(machine));
    api_.machines.erase(machine);
  }
}

// slurm.conf has short names, and the daemon has not reported its Slurm node.
TEST_F(MachineSyncTest, ANodeWithALongerNameThanInSlurmIsDrainedAndReleased) {
  add("n1", "m1");
  const kube::SiteNode node{"n1.site", "uid-of-m1", {{names::kSlurmCluster, "c"}}};
  nodes_->feed(NodeEvent::kDeleted, {site_.nodes.at("n1")});
  site_.nodes = {{"n1.site", node}};
  nodes_->feed(NodeEvent::kAdded, {node});
  change("m1", [](kube::Machine& one) { one.node = "n1.site"; });
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{2});
  EXPECT_TRUE(drained("n1"));
  EXPECT_TRUE(held("m1"));
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

// A job may run for a week, but an API server keeps an Event for an hour.
TEST_F(MachineSyncTest, RepeatsWhyAMachineWaitsEveryHalfHour) {
  add("n1", "m1");
  change("m1", [](kube::Machine& one) { one.api_version = "v1beta1"; });
  slurm_.submit("7", "n1");
  slurm_.jobs.at("7").never_ends = true;
  remove("m1");
  run(minutes{10});
  event_api_.expire_all();
  run(minutes{35});
  const auto events = event_api_.events();
  const auto waits = std::find_if(events.begin(), events.end(), [](const auto& event) {
    return event.reason == "MachineWaits" && event.about.kind == "Machine";
  });
  ASSERT_NE(waits, events.end());
  EXPECT_EQ(waits->about.api_version, "cluster.x-k8s.io/v1beta1");
}

TEST_F(MachineSyncTest, ReportsAnInvalidDrainPolicyOnce) {
  add("n1", "m1");
  change("m1", [](kube::Machine& one) { one.drain_policy = "soon"; });
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{30});
  EXPECT_TRUE(held("m1"));
  std::size_t reports = 0;
  for (const auto& event : event_api_.events()) {
    reports += event.message.find("must be wait, now or deadline=DURATION") != std::string::npos &&
               event.about.kind == "Machine";
  }
  EXPECT_EQ(reports, 1U);
}

TEST_F(MachineSyncTest, ShowsNoWaitingMachinesWithoutTheLead) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{1});
  EXPECT_EQ(loop_->status().machines.waiting, 1U);
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(minutes{1});
  EXPECT_FALSE(loop_->status().leads);
  EXPECT_EQ(loop_->status().machines.waiting, 0U);
}

TEST_F(MachineSyncTest, AnAdministratorsDrainKeepsItsReasonAndRecord) {
  add("d1", "m1", true);
  slurm_.nodes["d1"].flags.insert("DRAIN");
  slurm_.nodes["d1"].reason = "dimm";
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_EQ(slurm_.nodes.at("d1").reason, "dimm");
  EXPECT_TRUE(slurm_.updates.empty());
}

TEST_F(MachineSyncTest, NowRequeuesWhatCanBeAndCancelsTheRest) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  slurm_.submit("7", "n1");
  slurm_.submit("8", "n1", false);
  remove("m1");
  run(minutes{1});
  EXPECT_EQ(slurm_.ended, (std::vector<std::string>{"requeue 7", "cancel 8"}));
  EXPECT_TRUE(held("m1")) << "they complete";
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, TheAnnotationOverridesTheConfiguration) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  change("m1", [](kube::Machine& one) { one.drain_policy = "deadline=10m"; });
  remove("m1");
  run(minutes{9});
  EXPECT_TRUE(slurm_.ended.empty());
  run(minutes{2});
  EXPECT_EQ(slurm_.ended.size(), 1U);
  add("n2", "m2");
  slurm_.submit("9", "n2");
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  change("m2", [](kube::Machine& one) { one.drain_policy = "soon"; });
  remove("m2");
  run(minutes{2});
  EXPECT_EQ(slurm_.ended.size(), 1U) << "an invalid policy ends no job";
}

// Its Node was deleted by hand, or never found by Cluster API.
TEST_F(MachineSyncTest, WithoutANodeItIsFoundInSlurmByItsName) {
  settings_.all_machines = false;
  add("n1", "m1");
  site_.nodes.clear();
  slurm_.submit("7", "n1");
  restart();
  remove("m1");
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: machine deleted [m-m1]");
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, AMachineThatClaimsAnothersNodeTakesNothing) {
  add("n1", "m1");
  add("n9", "m9");
  site_.nodes["n9"].annotations[names::kSlurmNode] = "n1";
  feed_watch("n9", "m9");
  remove("m9");
  run(minutes{2});
  EXPECT_TRUE(held("m9"));
  EXPECT_FALSE(drained("n1"));
  add("n2", "m2");
  add("n2", "m3");
  remove("m2");
  run(minutes{2});
  EXPECT_TRUE(held("m2")) << "m3 is live and has that Node too";
  EXPECT_FALSE(drained("n2"));
}

TEST_F(MachineSyncTest, AForgedClaimDelaysNoOtherNode) {
  add("n1", "m1");
  add("n9", "m9");
  site_.nodes["n9"].annotations[names::kSlurmNode] = "n1";
  feed_watch("n9", "m9");
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, HoldsANodeThatClaimsAnotherName) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  site_.nodes["n1"].annotations[names::kSlurmNode] = "no-such";
  feed_watch("n1", "m1");
  remove("m1");
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
}

TEST_F(MachineSyncTest, ANodeThatWasDeletedByHandAndIsNamedUnlikeItsSlurmNodeIsHeld) {
  add("n1", "m1");
  slurm_.nodes["mc001"];
  slurm_.submit("7", "mc001");
  slurm_.nodes.erase("n1");
  nodes_->feed(NodeEvent::kDeleted, {site_.nodes.at("n1")});
  site_.nodes.clear();
  remove("m1");
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
}

// Whoever creates a Machine chooses its name and status.
TEST_F(MachineSyncTest, AMachineNamedLikeANodeChangesNothing) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  site_.nodes["n1"].provider_id = "metal3://a/b/1";
  feed_watch("n1", "m1");
  slurm_.submit("7", "n1");
  for (const bool by_address : {false, true}) {
    const std::string name = by_address ? "x" : "n1";
    add("n2", name);
    change(name, [&](kube::Machine& one) {
      one.node = "";
      one.provider_id = by_address ? "" : "metal3://a/b/2";
      one.addresses = {"N1.site"};
    });
    remove(name);
    run(minutes{5});
    EXPECT_TRUE(held(name));
  }
  EXPECT_FALSE(drained("n1"));
  EXPECT_TRUE(slurm_.ended.empty());
}

TEST_F(MachineSyncTest, RemovesTheAnnotationFromALiveMachinesNode) {
  add("n1", "m1");
  site_.nodes["n1"].annotations[names::kDetach] = "Detached";
  feed_watch("n1", "m1");
  run(minutes{1});
  EXPECT_EQ(detach("n1"), "");
}

// The node itself removes it.
TEST_F(MachineSyncTest, RestoresARemovedAnnotation) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{1});
  ASSERT_EQ(detach("n1"), "Draining");
  feed_watch("n1", "m1");
  run(minutes{1});
  site_.nodes["n1"].annotations.erase(names::kDetach);
  feed_watch("n1", "m1");
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
  feed_watch("n1", "m1");
  const int written = site_.count("annotate n1");
  run(seconds{50});
  restart();
  run(seconds{50});
  EXPECT_EQ(site_.count("annotate n1"), written);
  EXPECT_EQ(detach("n1"), "Detached");
}

// By then the Machine may be deleted, and the Node may be the next Machine's.
TEST_F(MachineSyncTest, ActsOnNoMachineWhileTheWatchFails) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  add("d1", "m2", true);
  slurm_.submit("7", "n1");
  run(seconds{20});
  machines_->fail(Error{Code::kUnavailable, "no route"});
  remove("m1");
  remove("m2");
  run(minutes{5});
  EXPECT_TRUE(slurm_.updates.empty());
  EXPECT_TRUE(slurm_.ended.empty());
  EXPECT_TRUE(slurm_.nodes.contains("d1"));
  EXPECT_TRUE(held("m1") && held("m2"));
  EXPECT_EQ(detach("n1") + detach("d1"), "");
  EXPECT_EQ(loop_->status().machines.problem, "no route");
  // Cordons depend on Nodes only.
  site_.nodes["n1"].unschedulable = true;
  feed_watch("n1", "");
  run(seconds{20});
  EXPECT_TRUE(drained("n1"));
  site_.nodes["n1"].unschedulable = false;
  feed_watch("n1", "");
  run(seconds{20});
  EXPECT_FALSE(drained("n1"));
  machines_->fail(std::nullopt);
  run(minutes{1});
  EXPECT_EQ(slurm_.ended, (std::vector<std::string>{"requeue 7"}));
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1") || held("m2"));
}

TEST_F(MachineSyncTest, ReleasesNothingWhileSlurmctldIsDown) {
  add("n1", "m1");
  run(seconds{20});
  slurm_.away = true;
  remove("m1");
  run(minutes{20});
  EXPECT_TRUE(held("m1"));
  slurm_.away = false;
  run(minutes{4});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, MachinesOfTwoClustersAreLeftAloneUntilOneIsConfigured) {
  add("n1", "m1");
  add("n2", "m2");
  change("m2", [](kube::Machine& one) { one.cluster = "another"; });
  remove("m1");
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_NE(loop_->status().machines.problem, "");
  EXPECT_FALSE(drained("n1"));
  settings_.all_machines = false;
  restart();
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
}

TEST_F(MachineSyncTest, ADryRunDoesNothing) {
  settings_.dry_run = true;
  restart();
  add("n1", "m1");
  slurm_.nodes["n1"].flags = {"DRAIN"};
  slurm_.nodes["n1"].reason = "dimm";
  remove("m1");
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_TRUE(site_.calls().empty());
  EXPECT_TRUE(api_.calls().empty());
}

TEST_F(MachineSyncTest, RetriesRemovingTheHookWithBackOff) {
  add("n1", "m1");
  api_.fail_always(Error{Code::kDenied, "403"});
  remove("m1");
  add("n2", "m2");
  slurm_.submit("7", "n2");
  remove("m2");
  run(minutes{10});
  EXPECT_LT(api_.calls().size(), 45U);
  EXPECT_LE(slurm_.queues, 41) << "one after each dump";
  EXPECT_NE(loop_->status().machines.problem, "");
  slurm_.jobs.clear();
  api_.fail_always(std::nullopt);
  api_.fail_calls("release m1", Error{Code::kDenied, "403"});
  run(minutes{2});
  EXPECT_FALSE(held("m2")) << "not delayed by m1";
  EXPECT_TRUE(held("m1"));
  api_.fail_calls("release m1", std::nullopt);
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
  EXPECT_EQ(loop_->status().machines.problem, "");
}

// In Slurm, DRAIN replaces FAIL.
TEST_F(MachineSyncTest, ANodeInStateFailStaysDrained) {
  add("n1", "m1");
  slurm_.nodes["n1"].flags = {"FAIL"};
  slurm_.nodes["n1"].reason = "bad fan";
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  finish("n1", "m1");
  run(minutes{1});
  add("n1", "m2");
  run(minutes{1});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "bad fan");
}

// Commands run one at a time, and the answer of squeue is valid for seconds.
TEST_F(MachineSyncTest, EndlessJobsOfASlowSlurmDelayNoOtherMachine) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  for (int i = 1; i < 9; ++i) {
    remove_with_job(std::to_string(i), i < 8);
  }
  run(minutes{2});
  slurm_.ended.clear();
  slurm_.jobs.at("8").completing = false;
  slurm_.answers_after = milliseconds{3500};
  run(minutes{8});
  EXPECT_THAT(slurm_.ended, Contains("requeue 8"));
}

// An admission webhook for some Nodes never answers.
TEST_F(MachineSyncTest, NodesThatCannotBeUnmarkedDelayNoOther) {
  for (const char* name : {"11", "12", "13", "14", "15", "2", "3"}) {
    add(std::string{"n"} + name, std::string{"m"} + name);
  }
  site_.fail_calls("annotate n1", Error{Code::kTimeout, "it hangs"});
  site_.before_annotate = [this](const std::string& node) {
    clock_.advance(node.starts_with("n1") ? seconds{5} : seconds{0});
  };
  for (const char* name : {"n11", "n12", "n13", "n14", "n15", "n2"}) {
    site_.nodes[name].annotations[names::kDetach] = "Detached";
    feed_watch(name, "");
  }
  run(minutes{10});
  EXPECT_EQ(detach("n2"), "");
  remove("m3");
  run(minutes{10});
  EXPECT_FALSE(held("m3"));
}

// Cluster API sets no nodeRef then.
TEST_F(MachineSyncTest, AProviderIdOfTwoNodesIsHeld) {
  add("n1", "m1");
  add("n2", "m2");
  for (const char* name : {"n1", "n2"}) {
    site_.nodes[name].provider_id = "metal3://x";
    feed_watch(name, "");
  }
  change("m1", [](kube::Machine& one) {
    one.node = "";
    one.provider_id = "metal3://x";
  });
  change("m2", [](kube::Machine& one) { one.node = "n2"; });
  slurm_.submit("7", "n2");
  remove("m1");
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_FALSE(drained("n1"));
}

TEST_F(MachineSyncTest, EndlessJobsDelayNoOtherMachine) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  for (int i = 0; i < 200; ++i) {
    remove_with_job(std::to_string(100 + i), true);
  }
  add("n900", "m900");
  slurm_.submit("900", "n900");
  add("n901", "m901");
  remove("m900");
  remove("m901");
  clock_.run(minutes{3}, [this] { return loop_->step(); });
  EXPECT_FALSE(held("m901"));
  EXPECT_THAT(slurm_.ended, Contains("requeue 900"));
}

// An admission webhook for one Machine never answers.
TEST_F(MachineSyncTest, AHangingWriteDelaysNoOtherMachine) {
  api_.fail_calls("release m1", Error{Code::kTimeout, "it hangs"});
  for (const char* name : {"1", "2", "3"}) {
    add(std::string{"n"} + name, std::string{"m"} + name);
    remove(std::string{"m"} + name);
  }
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_FALSE(held("m2") || held("m3"));
}

}  // namespace
}  // namespace slurmlet::op
