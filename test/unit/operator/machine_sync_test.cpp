// Machines that are being deleted, by the operator's whole loop over a Slurm and an API server in
// memory.

#include "operator/machine_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <random>

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

  // As after SIGKILL: nothing is kept but Slurm, the Nodes and the Machines.
  void restart() {
    loop_.reset();
    nodes_ = std::make_unique<fakes::FakeWatch<kube::SiteNode>>();
    machines_ = std::make_unique<fakes::FakeWatch<kube::Machine>>();
    loop_ = std::make_unique<OperatorLoop>(
        settings_,
        OperatorContext{clock_, *nodes_, site_, leader_, events_, *machines_, api_, events_,
                        [this](SteadyTime) { return clock_.now().wall; }, leases_, node_api_},
        std::make_unique<slurm::ScontrolDump>(slurm::SinfoSettings{},
                                              std::make_unique<FakeSlurmRunner>(slurm_)),
        std::make_unique<FakeSlurmRunner>(slurm_), std::make_unique<FakeSlurmRunner>(slurm_),
        [] { return 0.5; });
    std::vector<kube::SiteNode> nodes;
    for (const auto& [name, node] : site_.nodes) {
      nodes.push_back(node);
    }
    nodes_->feed(NodeEvent::kReplaced, std::move(nodes));
    std::vector<kube::Machine> machines;
    for (const auto& [name, machine] : api_.machines) {
      machines.push_back(machine);
    }
    machines_->feed(MachineEvent::kReplaced, std::move(machines));
  }
  // A host with its Machine, Node and Slurm node.
  void add(const std::string& name, const std::string& machine, bool dynamic = false) {
    if (!slurm_.nodes.contains(name)) {
      slurm_.nodes[name].flags =
          dynamic ? std::set<std::string>{"DYNAMIC_NORM"} : std::set<std::string>{};
    }
    slurm_.nodes[name].base = "IDLE";  // its slurmd registers
    slurm_.nodes[name].flags.erase("NOT_RESPONDING");
    site_.nodes[name] = {name, "uid-of-" + machine, {{names::kSlurmNode, name}}, false, false, ""};
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
    tell(name, machine);
  }
  void tell(const std::string& name, const std::string& machine) {
    if (site_.nodes.contains(name)) {
      nodes_->feed(NodeEvent::kModified, {site_.nodes.at(name)});
    }
    if (api_.machines.contains(machine)) {
      machines_->feed(MachineEvent::kModified, {api_.machines.at(machine)});
    }
  }
  void change(const std::string& machine, const std::function<void(kube::Machine&)>& edit,
              bool told = true) {
    kube::Machine& one = api_.machines.at(machine);
    edit(one);
    one.resource_version += "+";
    if (told) {
      machines_->feed(MachineEvent::kModified, {one});
    }
  }
  void remove(const std::string& machine, bool told = true) {
    change(
        machine, [this](kube::Machine& one) { one.deleted_at = clock_.now().wall; }, told);
  }
  // A host, its Machine, which is deleted, and a job, all of that number.
  void remove_with_job(const std::string& number, bool never_ends) {
    add("n" + number, "m" + number);
    slurm_.submit(number, "n" + number);
    slurm_.jobs.at(number).never_ends = never_ends;
    remove("m" + number);
  }
  // What Cluster API does once the hook has gone.
  void finish(const std::string& name, const std::string& machine) {
    machines_->feed(MachineEvent::kDeleted, {api_.machines.at(machine)});
    api_.machines.erase(machine);
    lose(name);
  }
  // The Node, whatever becomes of the Machine.
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
  Leader leader_{leases_, "a", [] { return 0.5; }, clock_};
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  OperatorSettings settings_;
  std::unique_ptr<fakes::FakeWatch<kube::SiteNode>> nodes_;
  std::unique_ptr<fakes::FakeWatch<kube::Machine>> machines_;
  std::unique_ptr<OperatorLoop> loop_;
};

TEST_F(MachineSyncTest, AMachineGoesWhenItsJobHasEnded) {
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
  const int asked = slurm_.queues;
  run(minutes{5});
  EXPECT_EQ(slurm_.queues, asked);
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

TEST_F(MachineSyncTest, ADynamicNodesRecordGoesFirst) {
  add("d1", "m1", true);
  slurm_.submit("7", "d1");
  remove("m1");
  run(minutes{1});
  EXPECT_TRUE(slurm_.nodes.contains("d1"));
  slurm_.jobs.clear();
  slurm_.before_delete = [this](const std::string&) { EXPECT_TRUE(held("m1")); };
  run(minutes{1});
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
  EXPECT_FALSE(held("m1"));
  EXPECT_EQ(loop_->status().machines.records_deleted, 1U);
}

// Its slurmd still ran, and then the host was switched off.
TEST_F(MachineSyncTest, ADynamicNodeThatComesBackGetsNoJobAndGoesAgain) {
  add("s1", "m9");
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  ASSERT_FALSE(slurm_.nodes.contains("d1"));
  finish("d1", "m1");
  run(minutes{5});
  slurm_.nodes["d1"].flags = {"DYNAMIC_NORM"};
  run(seconds{20});
  EXPECT_TRUE(drained("d1"));
  slurm_.nodes["d1"].base = "DOWN";
  run(minutes{1});
  EXPECT_TRUE(slurm_.nodes.contains("d1")) << "it answers";
  slurm_.nodes["d1"].flags.insert("NOT_RESPONDING");
  run(seconds{20});
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
  EXPECT_EQ(loop_->status().machines.records_deleted, 2U);
}

// The host's next Machine: its slurmd registers before anybody can tell whose it is.
TEST_F(MachineSyncTest, ADynamicNodeThatComesBackWithAnotherMachineIsUndrained) {
  add("s1", "m9");
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  ASSERT_FALSE(slurm_.nodes.contains("d1"));
  finish("d1", "m1");
  run(minutes{5});
  slurm_.nodes["d1"].flags = {"DYNAMIC_NORM"};
  run(seconds{20});
  ASSERT_TRUE(drained("d1"));
  add("d1", "m2", true);
  run(seconds{20});
  EXPECT_FALSE(drained("d1"));
  EXPECT_EQ(loop_->status().undrains, 1U);
  run(minutes{5});
  EXPECT_FALSE(drained("d1"));
}

// The watch hangs, or its server was restored from a backup, and nobody says so.
TEST_F(MachineSyncTest, NothingIsEndedOrDeletedForAMachineThatIsNotAsSeen) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  add("d1", "m2", true);
  slurm_.submit("7", "n1");
  run(seconds{20});
  remove("m1");
  remove("m2");
  api_.machines.at("m1").resource_version = "restored";
  api_.fail_calls("confirm m2", Error{Code::kTimeout, "it hangs"});
  run(minutes{3});
  EXPECT_TRUE(drained("n1")) << "that can be undone";
  EXPECT_TRUE(slurm_.ended.empty());
  EXPECT_TRUE(slurm_.nodes.contains("d1"));
  EXPECT_NE(loop_->status().machines.problem, "");
}

// It may be the node of a Machine that cannot be seen.
TEST_F(MachineSyncTest, ADynamicNodeThatComesBackWhileTheMachinesAreOutOfSightIsLeftAlone) {
  add("s1", "m9");
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  ASSERT_FALSE(slurm_.nodes.contains("d1"));
  finish("d1", "m1");
  machines_->fail(Error{Code::kUnavailable, "no route"});
  run(minutes{1});
  slurm_.nodes["d1"].flags = {"DYNAMIC_NORM"};
  run(minutes{1});
  EXPECT_FALSE(drained("d1"));
  machines_->fail(std::nullopt);
  run(minutes{1});
  EXPECT_TRUE(drained("d1"));
}

// The only node of its cluster: without it slurmctld shows none, and that is no answer.
TEST_F(MachineSyncTest, TheMachineOfTheLastNodeGoesAtOnce) {
  add("d1", "m1", true);
  remove("m1");
  api_.fail_calls("release", Error{Code::kUnavailable, "no route"});
  run(minutes{2});
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
  api_.fail_calls("release", std::nullopt);
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
}

// A MachineHealthCheck deletes it because its Node is gone; the hook is removed at the second try.
TEST_F(MachineSyncTest, ADynamicNodesMachineWithoutANodeGoesThoughItsHookWasKeptBefore) {
  add("s1", "m9");
  add("d1", "m1", true);
  lose("d1");
  remove("m1");
  api_.fail_calls("release", Error{Code::kConflict, "409"});
  run(minutes{2});
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
  api_.fail_calls("release", std::nullopt);
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
}

// A host of slurm.conf that was provisioned and never joined.
TEST_F(MachineSyncTest, AMachineThatNeverJoinedGoes) {
  add("n9", "m9");
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
  EXPECT_TRUE(slurm_.updates.empty());
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

// scontrol did not answer, or was not there: that is no word of Slurm's.
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

TEST_F(MachineSyncTest, WhatTwoJobsFailWithIsToldOnceForEach) {
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
    const std::string words = "could not requeue job " + job;
    const auto first = log.find(words);
    ASSERT_NE(first, std::string::npos) << log;
    EXPECT_EQ(log.find(words, first + 1), std::string::npos) << log;
  }
}

// A job is cancelled only where slurmctld says that it cannot be requeued.
TEST_F(MachineSyncTest, WhatSlurmctldSaysOfARequeueDecides) {
  const struct {
    const char* says;
    bool cancelled, told;
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
              row.told);
    slurm_.jobs.clear();
    run(minutes{3});
    EXPECT_FALSE(held(machine));
    api_.machines.erase(machine);
  }
}

// Its slurmd registered again before the hook could be removed.
TEST_F(MachineSyncTest, ADynamicNodeThatIsBackBeforeItsMachineHasGoneIsDrainedAgain) {
  add("s1", "m9");
  add("d1", "m1", true);
  remove("m1");
  api_.fail_calls("release", Error{Code::kUnavailable, "no route"});
  slurm_.before_delete = [this](const std::string&) { slurm_.away = true; };
  run(minutes{1});
  slurm_.before_delete = [](const std::string&) {};
  slurm_.nodes["d1"] = {"IDLE", {"DYNAMIC_NORM"}, ""};
  slurm_.submit("7", "d1");
  api_.fail_calls("release", std::nullopt);
  run(minutes{5});
  EXPECT_TRUE(held("m1"));
  slurm_.away = false;
  run(minutes{5});
  EXPECT_TRUE(held("m1")) << "a job runs";
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
}

// slurm.conf has short names; its daemon has not said which of them this is.
TEST_F(MachineSyncTest, ANodeWithALongerNameThanInSlurmIsDrainedAndGoes) {
  add("n1", "m1");
  const kube::SiteNode node{"n1.site", "uid-of-m1", {}};
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

// A job may run for a week, and an API server keeps an Event for an hour.
TEST_F(MachineSyncTest, WhyAMachineWaitsIsToldAgainEachHalfHour) {
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

TEST_F(MachineSyncTest, ADrainPolicyThatIsNotUnderstoodIsToldOnce) {
  add("n1", "m1");
  change("m1", [](kube::Machine& one) { one.drain_policy = "soon"; });
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{30});
  EXPECT_TRUE(held("m1"));
  std::size_t told = 0;
  for (const auto& event : event_api_.events()) {
    told += event.message.find("must be wait, now or deadline=DURATION") != std::string::npos &&
            event.about.kind == "Machine";
  }
  EXPECT_EQ(told, 1U);
}

TEST_F(MachineSyncTest, WhoLeadsNoMoreShowsNoneThatWait) {
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

TEST_F(MachineSyncTest, ADynamicNodeThatIsSomebodysAgainIsLeftAlone) {
  const FakeNode dead{"DOWN", {"DYNAMIC_NORM", "NOT_RESPONDING"}, ""};
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  finish("d1", "m1");
  kube::Machine next;
  next.namespace_name = "ns";
  next.name = "m2";
  next.addresses = {"D1.site"};  // not yet a Node
  machines_->feed(MachineEvent::kAdded, {next});
  slurm_.nodes["d1"] = dead;
  run(minutes{5});
  EXPECT_TRUE(slurm_.nodes.contains("d1"));
  add("d2", "m3", true);
  remove("m3");
  run(minutes{1});
  finish("d2", "m3");
  run(kMayComeBack);
  slurm_.nodes["d2"] = dead;
  run(minutes{5});
  EXPECT_TRUE(slurm_.nodes.contains("d2")) << "after so long it is another's";
}

TEST_F(MachineSyncTest, WhatAnAdministratorDrainedKeepsItsReasonAndItsRecord) {
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

TEST_F(MachineSyncTest, TheAnnotationGoesBeforeTheConfiguration) {
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
  EXPECT_EQ(slurm_.ended.size(), 1U) << "a word that is not understood ends nothing";
}

TEST_F(MachineSyncTest, AMachineWithoutANodeGoes) {
  add("n1", "m1");
  slurm_.nodes.clear();
  site_.nodes.clear();
  slurm_.nodes["n2"];
  change("m1", [](kube::Machine& one) { one.node = ""; });
  restart();
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
  EXPECT_TRUE(slurm_.updates.empty());
}

// Its Node was deleted by hand, or never found by Cluster API: Slurm has it nevertheless.
TEST_F(MachineSyncTest, WithoutANodeItIsFoundInSlurmByItsName) {
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
  tell("n9", "m9");
  remove("m9");
  run(minutes{2});
  EXPECT_TRUE(held("m9"));
  EXPECT_FALSE(drained("n1"));
  add("n2", "m2");
  add("n2", "m3");
  remove("m2");
  run(minutes{2});
  EXPECT_TRUE(held("m2")) << "m3 lives, and has that Node too";
  EXPECT_FALSE(drained("n2"));
}

// A node that says it is another's stops nothing of that other.
TEST_F(MachineSyncTest, AForgedClaimHoldsUpNobodyElse) {
  add("n1", "m1");
  add("n9", "m9");
  site_.nodes["n9"].annotations[names::kSlurmNode] = "n1";
  tell("n9", "m9");
  remove("m1");
  run(minutes{1});
  EXPECT_FALSE(held("m1"));
}

// What a node says of itself is no proof that Slurm has no such node.
TEST_F(MachineSyncTest, ANodeThatHidesBehindAnotherNameIsHeld) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  site_.nodes["n1"].annotations[names::kSlurmNode] = "no-such";
  tell("n1", "m1");
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

// Whoever may make Machines chooses their names, and what they say of themselves.
TEST_F(MachineSyncTest, AMachineThatOnlyHasTheNameOfANodeTouchesNothing) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("n1", "m1");
  site_.nodes["n1"].provider_id = "metal3://a/b/1";
  tell("n1", "m1");
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

TEST_F(MachineSyncTest, AMarkOnTheNodeOfAMachineThatLivesIsRemoved) {
  add("n1", "m1");
  site_.nodes["n1"].annotations[names::kDetach] = "Detached";
  tell("n1", "m1");
  run(minutes{1});
  EXPECT_EQ(detach("n1"), "");
}

// By the node itself, after its release.
TEST_F(MachineSyncTest, AMarkThatWasTakenAwayIsWrittenAgain) {
  add("n1", "m1");
  slurm_.submit("7", "n1");
  remove("m1");
  run(minutes{1});
  ASSERT_EQ(detach("n1"), "Draining");
  tell("n1", "m1");
  run(minutes{1});
  site_.nodes["n1"].annotations.erase(names::kDetach);
  tell("n1", "m1");
  run(minutes{1});
  EXPECT_EQ(detach("n1"), "Draining");
}

// Its daemon would let slurmd start again. The jobs are not known after each dump, nor after a
// restart.
TEST_F(MachineSyncTest, WhatIsDetachedStaysSoWhileTheHookCannotBeRemoved) {
  add("n1", "m1");
  api_.fail_calls("release", Error{Code::kDenied, "403"});
  remove("m1");
  run(minutes{1});
  ASSERT_EQ(detach("n1"), "Detached");
  tell("n1", "m1");
  const int written = site_.count("annotate n1");
  run(seconds{50});
  restart();
  run(seconds{50});
  EXPECT_EQ(site_.count("annotate n1"), written);
  EXPECT_EQ(detach("n1"), "Detached");
}

// Another server's, perhaps, for hours: by then the Machine may be gone and the Node be that of the
// next.
TEST_F(MachineSyncTest, WhileTheMachinesAreOutOfSightNothingFollowsFromWhatWasSeen) {
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
  // Cordons are of Nodes, which are in sight.
  site_.nodes["n1"].unschedulable = true;
  tell("n1", "");
  run(seconds{20});
  EXPECT_TRUE(drained("n1"));
  site_.nodes["n1"].unschedulable = false;
  tell("n1", "");
  run(seconds{20});
  EXPECT_FALSE(drained("n1"));
  machines_->fail(std::nullopt);
  run(minutes{1});
  EXPECT_EQ(slurm_.ended, (std::vector<std::string>{"requeue 7"}));
  slurm_.jobs.clear();
  run(minutes{1});
  EXPECT_FALSE(held("m1") || held("m2"));
}

TEST_F(MachineSyncTest, WhileSlurmctldIsAwayNothingGoes) {
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

TEST_F(MachineSyncTest, MachinesOfTwoClustersAreLeftAloneUntilOneIsNamed) {
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

TEST_F(MachineSyncTest, AHookThatCannotBeRemovedIsTriedWithBackOff) {
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
  EXPECT_FALSE(held("m2")) << "it is not held up by another";
  EXPECT_TRUE(held("m1"));
  api_.fail_calls("release m1", std::nullopt);
  run(minutes{2});
  EXPECT_FALSE(held("m1"));
  EXPECT_EQ(loop_->status().machines.problem, "");
}

// As a MachineHealthCheck deletes it.
TEST_F(MachineSyncTest, ANodeThatIsDownWithAReasonGoesAndComesBackLikeAnyOther) {
  add("d1", "m1", true);
  add("n2", "m2");
  add("s1", "m9");
  for (const char* name : {"d1", "n2"}) {
    slurm_.nodes[name].base = "DOWN";
    slurm_.nodes[name].reason = "Kill task failed";
  }
  remove("m1");
  remove("m2");
  run(minutes{2});
  EXPECT_FALSE(held("m1") || held("m2"));
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
  EXPECT_TRUE(drained("n2"));
  finish("n2", "m2");
  run(minutes{1});
  add("n2", "m3");
  run(minutes{1});
  EXPECT_FALSE(drained("n2"));
  EXPECT_EQ(slurm_.nodes["n2"].reason, "Kill task failed");
}

// The drain takes the place of FAIL.
TEST_F(MachineSyncTest, ANodeThatFailsStaysDrained) {
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

// Commands that change something come one after the other, and what squeue said counts for seconds.
TEST_F(MachineSyncTest, WhereSlurmIsSlowJobsThatNeverEndHoldUpNoOtherMachine) {
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

// Nor one that came back without its Machine.
TEST_F(MachineSyncTest, WhereSlurmIsSlowJobsThatNeverEndKeepNoRecordThatCameBack) {
  settings_.policy.kind = DrainPolicy::Kind::kNow;
  restart();
  add("s1", "m9");
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  ASSERT_FALSE(slurm_.nodes.contains("d1"));
  finish("d1", "m1");
  slurm_.nodes["d1"].flags = {"DYNAMIC_NORM"};
  run(minutes{1});
  ASSERT_TRUE(drained("d1"));
  slurm_.submit("7", "s1");
  slurm_.jobs.at("7").never_ends = true;
  remove("m9");
  run(minutes{1});
  slurm_.nodes["d1"].base = "DOWN";
  slurm_.nodes["d1"].flags.insert("NOT_RESPONDING");
  slurm_.answers_after = milliseconds{3500};
  run(minutes{5});
  EXPECT_FALSE(slurm_.nodes.contains("d1"));
}

// A webhook matches some Nodes and never answers.
TEST_F(MachineSyncTest, NodesThatCannotBeUnmarkedHoldUpNoOther) {
  for (const char* name : {"11", "12", "13", "14", "15", "2", "3"}) {
    add(std::string{"n"} + name, std::string{"m"} + name);
  }
  site_.fail_calls("annotate n1", Error{Code::kTimeout, "it hangs"});
  site_.before_annotate = [this](const std::string& node) {
    clock_.advance(node.starts_with("n1") ? seconds{5} : seconds{0});
  };
  for (const char* name : {"n11", "n12", "n13", "n14", "n15", "n2"}) {
    site_.nodes[name].annotations[names::kDetach] = "Detached";
    tell(name, "");
  }
  run(minutes{10});
  EXPECT_EQ(detach("n2"), "");
  remove("m3");
  run(minutes{10});
  EXPECT_FALSE(held("m3"));
}

TEST_F(MachineSyncTest, AForgedClaimDoesNotKeepANodeThatComesBackInService) {
  add("s1", "m9");
  add("d1", "m1", true);
  remove("m1");
  run(minutes{1});
  finish("d1", "m1");
  site_.nodes["s1"].annotations[names::kSlurmNode] = "d1";
  tell("s1", "");
  slurm_.nodes["d1"].flags = {"DYNAMIC_NORM"};
  run(seconds{40});
  EXPECT_TRUE(drained("d1"));
}

// Cluster API sets no nodeRef then.
TEST_F(MachineSyncTest, AProviderIdOfTwoNodesIsHeld) {
  add("n1", "m1");
  add("n2", "m2");
  for (const char* name : {"n1", "n2"}) {
    site_.nodes[name].provider_id = "metal3://x";
    tell(name, "");
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

// Its calls are few at a time: each has its turn.
TEST_F(MachineSyncTest, JobsThatNeverEndHoldUpNoOtherMachine) {
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

// An admission webhook that matches one Machine and never answers.
TEST_F(MachineSyncTest, AMachineWhoseWriteHangsHoldsUpNoOther) {
  api_.fail_calls("release m1", Error{Code::kTimeout, "it hangs"});
  for (const char* name : {"1", "2", "3"}) {
    add(std::string{"n"} + name, std::string{"m"} + name);
    remove(std::string{"m"} + name);
  }
  run(minutes{2});
  EXPECT_TRUE(held("m1"));
  EXPECT_FALSE(held("m2") || held("m3"));
}

// Three hosts, two static and one dynamic, whose Machines come and go while people and jobs do as
// they like, the operator is killed, watches are late and servers come and go.
class ByChance : public MachineSyncTest {
 protected:
  struct Host {
    std::string name;
    bool dynamic = false;
    int generation = 0;
    std::string machine() const { return name + "-m" + std::to_string(generation); }
  };

  void next_machine(Host& host) {
    ++host.generation;
    add(host.name, host.machine(), host.dynamic);
  }
  const Host& host_of(const std::string& node) const {
    return *std::find_if(hosts_.begin(), hosts_.end(),
                         [&](const Host& host) { return host.name == node; });
  }
  void watch_over(unsigned seed) {
    slurm_.before_update = [this, seed](const std::string& name) {
      const FakeNode& node = slurm_.nodes.at(name);
      EXPECT_FALSE(node.flags.contains("DRAIN") && !is_drain_of_ours(node.reason))
          << "seed " << seed << ": an administrator's drain of " << name << " was changed";
    };
    slurm_.before_delete = [this, seed](const std::string& name) {
      const auto machine = api_.machines.find(host_of(name).machine());
      EXPECT_TRUE(machine != api_.machines.end() && machine->second.deleted_at)
          << "seed " << seed << ": the record of a Machine that lives was deleted";
    };
    slurm_.before_end = [this, seed](const std::string& id) {
      const auto& machine = api_.machines.at(host_of(slurm_.jobs.at(id).node).machine());
      EXPECT_TRUE(machine.deleted_at && machine.drain_policy == "now")
          << "seed " << seed << ": a job was ended that should not be";
    };
    api_.before_release = [this, seed](const kube::Machine& machine) {
      EXPECT_TRUE(machine.deleted_at) << "seed " << seed;
      EXPECT_FALSE(slurm_.busy(machine.node)) << "seed " << seed << ": a job holds the node";
      EXPECT_TRUE(!slurm_.nodes.contains(machine.node) || drained(machine.node))
          << "seed " << seed << ": a job may still come on " << machine.node << ", undrained "
          << (clock_.now().steady - undrained_at_).count() / 1000000 << " ms ago";
      ++released_;
    };
  }
  void random_event(Host& host, std::mt19937& chance) {
    const auto machine = api_.machines.find(host.machine());
    const auto slurm = slurm_.nodes.find(host.name);
    const bool told = chance() % 3 != 0;
    switch (chance() % 15) {
      case 0:
      case 1:
        slurm_.submit(std::to_string(++jobs_), host.name, chance() % 2 == 0);
        break;
      case 2:
      case 3:
        end_a_job(host.name);
        break;
      case 4:
        if (machine != api_.machines.end() && !machine->second.deleted_at) {
          const char* const policies[] = {"wait", "now", "", "deadline=100h"};
          machine->second.drain_policy = policies[chance() % 4];
          remove(host.machine(), told);
        }
        break;
      case 5:  // Cluster API, or a person
        if (site_.nodes.contains(host.name)) {
          bool& cordoned = site_.nodes.at(host.name).unschedulable;
          cordoned = !cordoned;
        }
        break;
      case 6:
        if (slurm != slurm_.nodes.end()) {
          slurm->second.flags.insert("DRAIN");
          slurm->second.reason = "dimm";
        }
        break;
      case 7:
        if (slurm != slurm_.nodes.end()) {
          slurm->second.flags.erase("DRAIN");
          undrained_at_ = clock_.now().steady;
        }
        break;
      case 8:
        restart();
        break;
      case 9:
        slurm_.away = !slurm_.away;
        break;
      case 10:
        api_.fail_always(chance() % 2 == 0 ? std::optional{Error{Code::kUnavailable, "no route"}}
                                           : std::nullopt);
        break;
      case 11:
        site_.fail_always(chance() % 2 == 0 ? std::optional{Error{Code::kTimeout, "slow"}}
                                            : std::nullopt);
        break;
      case 12:
        if (machine != api_.machines.end() && !machine->second.hooked) {
          finish(host.name, host.machine());
          next_machine(host);
        }
        break;
      case 13:
        if (host.dynamic && slurm == slurm_.nodes.end()) {  // its slurmd still runs, or ran
          slurm_.nodes[host.name] = chance() % 2 == 0
                                        ? FakeNode{"IDLE", {"DYNAMIC_NORM"}, ""}
                                        : FakeNode{"DOWN", {"DYNAMIC_NORM", "NOT_RESPONDING"}, ""};
        }
        break;
      default:
        break;
    }
    if (told) {
      tell(host.name, host.machine());
    }
  }
  // One step: it completes, or it has gone.
  void end_a_job(const std::string& node) {
    const auto job = std::find_if(slurm_.jobs.begin(), slurm_.jobs.end(),
                                  [&](const auto& entry) { return entry.second.node == node; });
    if (job == slurm_.jobs.end()) {
      return;
    }
    if (job->second.completing) {
      slurm_.jobs.erase(job);
    } else {
      job->second.completing = true;
    }
  }
  // What the world allows comes about.
  void quiet(unsigned seed) {
    slurm_.away = false;
    api_.fail_always(std::nullopt);
    site_.fail_always(std::nullopt);
    for (Host& host : hosts_) {
      tell(host.name, host.machine());
    }
    run(minutes{5});
    slurm_.jobs.clear();
    run(minutes{10});
    for (Host& host : hosts_) {
      const kube::Machine machine = api_.machines.at(host.machine());
      EXPECT_EQ(machine.deleted_at.has_value(), !machine.hooked) << "seed " << seed;
      if (machine.deleted_at) {
        finish(host.name, host.machine());
        next_machine(host);
      }
      site_.nodes.at(host.name).unschedulable = false;
      tell(host.name, host.machine());
    }
    run(minutes{2});
    for (const Host& host : hosts_) {
      const FakeNode& node = slurm_.nodes.at(host.name);
      EXPECT_FALSE(drained(host.name) && is_drain_of_ours(node.reason))
          << "seed " << seed << ": " << host.name << " is not in service again: " << node.reason;
    }
  }

  std::vector<Host> hosts_{{"s1"}, {"s2"}, {"d1", true}};
  int jobs_ = 0;
  SteadyTime undrained_at_{};  // by an administrator
  std::size_t released_ = 0;
};

TEST_F(ByChance, NoJobIsLostAndEveryMachineGoes) {
  for (Host& host : hosts_) {
    next_machine(host);
  }
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 chance{seed};
    watch_over(seed);
    for (int i = 0; i < 150; ++i) {
      random_event(hosts_[chance() % hosts_.size()], chance);
      run(milliseconds{500 + chance() % 20000});
    }
    quiet(seed);
    restart();
  }
  EXPECT_GT(released_, 100U);
  EXPECT_GT(slurm_.ended.size(), 10U);
}

}  // namespace
}  // namespace slurmlet::op
