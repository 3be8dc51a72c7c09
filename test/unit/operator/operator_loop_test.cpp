#include "operator/operator_loop.h"

#include <gtest/gtest.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"
#include "operator/operator_pages.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::op {
namespace operator_loop_test {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Type = kube::WatchEvent<kube::SiteNode>::Type;

class OperatorLoopTest : public ::testing::Test {
 protected:
  OperatorLoopTest() { restart(); }

  // As after SIGKILL: only Slurm and the Nodes keep their state.
  void restart() {
    loop_.reset();
    watch_ = std::make_unique<fakes::FakeWatch<kube::SiteNode>>();
    OperatorSettings settings;
    settings.dump.interval = interval_;
    settings.dump.cluster = "c";
    loop_ = std::make_unique<OperatorLoop>(
        settings,
        OperatorContext{clock_, *watch_, site_, leader_, events_, machines_, machine_api_, events_,
                        [this](SteadyTime) { return clock_.now().wall; }, leases_, node_api_},
        std::make_unique<slurm::ScontrolDump>(slurm::ClientSettings{},
                                              std::make_unique<FakeSlurmRunner>(slurm_)),
        std::make_unique<FakeSlurmRunner>(slurm_), std::make_unique<FakeSlurmRunner>(slurm_),
        [] { return 0.5; });
    watch_->list = [this] {
      std::vector<kube::SiteNode> all;
      for (const auto& [name, node] : site_.nodes) {
        all.push_back(node);
      }
      return all;
    };
  }
  void add(const std::string& name) {
    slurm_.nodes[name] = {};
    site_.nodes[name] = {
        name,
        "uid-of-" + name,
        {{node::vocabulary::kSlurmNode, name}, {node::vocabulary::kSlurmCluster, "c"}},
        false,
        false};
    feed_watch(name);
  }
  void add_nodes(int count) {
    for (int i = 0; i < count; ++i) {
      add("n" + std::to_string(i));
    }
  }
  void feed_watch(const std::string& name) {
    watch_->feed(Type::kModified, {site_.nodes.at(name)});
  }
  void cordon(const std::string& name, bool on) {
    site_.nodes.at(name).unschedulable = on;
    feed_watch(name);
  }
  void run(Duration time) {
    clock_.run(time, [this] { return loop_->step(); });
  }
  std::string drain_note(const std::string& name) {
    const auto& annotations = site_.nodes.at(name).annotations;
    const auto found = annotations.find(node::vocabulary::kDrain);
    return found == annotations.end() ? "" : found->second;
  }
  bool has_event(const std::string& node, const std::string& reason) {
    const auto events = event_api_.events();
    return std::any_of(events.begin(), events.end(), [&](const auto& event) {
      return event.about.name == node && event.reason == reason;
    });
  }
  bool drained(const std::string& name) { return slurm_.nodes.at(name).flags.contains("DRAIN"); }
  std::string record(const std::string& name) {
    const auto read =
        slurm::parse_published_record(site_.nodes.at(name).annotations[node::vocabulary::kRecord]);
    return read ? read->text : "";
  }

  std::optional<Duration> interval_ = seconds{15};
  fakes::FakeClock clock_;
  FakeSlurm slurm_;
  FakeSite site_;
  fakes::FakeLeaseApi leases_;
  fakes::FakeNodeApi node_api_;
  fakes::FakeEventApi event_api_;
  Leader leader_{leases_, "slurmlet-operator-c", "a", [] { return 0.5; }, clock_};
  sync::EventSink events_{
      event_api_, "head1", [] { return 0.5; }, "slurmlet-operator", {200, 2, 8192}};
  FakeMachines machine_api_;
  fakes::FakeWatch<kube::Machine> machines_;
  std::unique_ptr<fakes::FakeWatch<kube::SiteNode>> watch_;
  std::unique_ptr<OperatorLoop> loop_;
};

TEST_F(OperatorLoopTest, PublishesEachNodesRecordOnceAndEachRefresh) {
  add("n1");
  add("n2");
  run(seconds{40});
  EXPECT_TRUE(record("n1").starts_with("NodeName=n1 "));
  EXPECT_EQ(site_.calls().size(), 2U);
  run(minutes{60});
  EXPECT_GE(site_.calls().size(), 2U + 2 * 12U);
  EXPECT_LE(site_.calls().size(), 2U + 2 * 16U);
}

TEST_F(OperatorLoopTest, ReportsALeaseThatTheServerRejectsAndIsNotReady) {
  leases_.fail_always(Error{Code::kDenied, "PUT leases/slurmlet-operator-c: 403"});
  run(seconds{5});
  EXPECT_EQ(loop_->status().api_problem, "PUT leases/slurmlet-operator-c: 403");
  EXPECT_FALSE(operator_checks(loop_->status()).front().ok);
  leases_.fail_always(std::nullopt);
  run(seconds{5});
  EXPECT_EQ(loop_->status().api_problem, "");
}

TEST_F(OperatorLoopTest, WritesADrainBeforeChangesByJobs) {
  add_nodes(300);
  run(seconds{40});
  site_.clear_calls();
  for (auto& [name, node] : slurm_.nodes) {
    node.base = "ALLOCATED";
  }
  slurm_.nodes["n77"].flags = {"DRAIN"};
  slurm_.nodes["n77"].reason = "bad dimm";
  run(seconds{17});
  ASSERT_FALSE(site_.calls().empty());
  EXPECT_EQ(site_.calls().front(), "annotate n77");
}

// Since 23.11 a Reason outlasts its drain, and `scontrol reboot ASAP` drains with it.
TEST_F(OperatorLoopTest, ALaterDrainWithOurOldReasonIsNotUndone) {
  add("n1");
  cordon("n1", true);
  run(seconds{20});
  cordon("n1", false);
  run(seconds{20});
  ASSERT_FALSE(drained("n1"));
  slurm_.nodes["n1"].flags = {"DRAIN", "REBOOT_REQUESTED"};
  run(minutes{2});
  EXPECT_TRUE(drained("n1"));
}

// slurmctld rejects it while the node has fewer CPUs or less memory than in slurm.conf.
TEST_F(OperatorLoopTest, RetriesARejectedUndrain) {
  add("n1");
  cordon("n1", true);
  run(seconds{20});
  const std::string ours = slurm_.nodes["n1"].reason;
  slurm_.nodes["n1"].flags.insert("INVALID_REG");
  cordon("n1", false);
  run(minutes{2});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, ours);
  slurm_.nodes["n1"].flags.erase("INVALID_REG");
  run(minutes{2});
  EXPECT_FALSE(drained("n1"));
}

// Each dump has more changes than can be written.
TEST_F(OperatorLoopTest, NoRecordStarvesHoweverManyJobsComeAndGo) {
  add_nodes(1000);
  run(seconds{40});
  std::map<std::string, int> writes;
  for (int i = 0; i < 40; ++i) {
    for (auto& [name, node] : slurm_.nodes) {
      const bool is_quiet = name == "n999";
      node.base = is_quiet || node.base == "ALLOCATED" ? "IDLE" : "ALLOCATED";
    }
    site_.clear_calls();
    run(seconds{15});
    for (const auto& call : site_.calls()) {
      ++writes[call];
    }
  }
  EXPECT_GE(writes["annotate n998"], 15);
  EXPECT_GE(writes["annotate n999"], 1) << "a refresh";
}

TEST_F(OperatorLoopTest, ADrainShowsWithinTheIntervalHoweverLongADumpTakes) {
  add("n1");
  slurm_.answers_after = seconds{2};
  run(seconds{40});
  for (int i = 0; i < 40; ++i) {
    slurm_.nodes["n1"].reason = "drained " + std::to_string(i);
    const Now began = clock_.now();
    while (record("n1").find(slurm_.nodes["n1"].reason + " ") == std::string::npos) {
      run(milliseconds{100});
    }
    EXPECT_LE(clock_.now().steady - began.steady, seconds{16}) << i;
    run(milliseconds{700});
  }
}

TEST_F(OperatorLoopTest, WritesFiftyASecondAtMost) {
  add_nodes(1000);
  run(seconds{10});
  EXPECT_LE(site_.calls().size(), 10 * 50 + 25U);
  EXPECT_GE(site_.calls().size(), 9 * 50U);
  run(seconds{15});
  EXPECT_EQ(site_.calls().size(), 1000U);
}

// A wake-up costs more than a write.
TEST_F(OperatorLoopTest, WritesRecordsInBursts) {
  add_nodes(300);
  run(seconds{40});
  site_.clear_calls();
  int turns = 0;
  clock_.run(minutes{6}, [&] {
    const auto before = site_.calls().size();
    const SteadyTime next = loop_->step();
    turns += site_.calls().size() == before ? 0 : 1;
    return next;
  });
  EXPECT_GE(site_.calls().size(), 300U);
  EXPECT_LE(turns, site_.calls().size() / 6);
}

// A step with slow writes ends early.
TEST_F(OperatorLoopTest, SlowWritesDoNotDelayACordon) {
  add_nodes(300);
  run(seconds{1});
  site_.before_annotate = [this](const std::string&) { clock_.advance(milliseconds{400}); };
  run(minutes{1});
  cordon("n7", true);
  run(seconds{5});
  EXPECT_TRUE(drained("n7"));
  EXPECT_EQ(loop_->status().update_failures, 0U);
}

TEST_F(OperatorLoopTest, DrainsWhatIsCordonedWithinASecond) {
  add("n1");
  run(seconds{5});
  cordon("n1", true);
  run(seconds{1});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: cordoned");
  EXPECT_EQ(drain_note("n1"), "") << "its Reason shows whose it is";
  run(seconds{5});
  cordon("n1", false);
  run(seconds{1});
  EXPECT_FALSE(drained("n1"));
  run(minutes{10});
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: undrained");
  EXPECT_EQ(slurm_.updates.size(), 3U);
}

TEST_F(OperatorLoopTest, ACordonOfANodeThatIsDownHoldsAndItsReasonStays) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    const std::string name = fails ? "failing" : "down";
    add(name);
    FakeNode& node = slurm_.nodes[name];
    node.base = fails ? "IDLE" : "DOWN";
    node.flags = fails ? std::set<std::string>{"FAIL"} : std::set<std::string>{};
    node.reason = "bad dimm";
    cordon(name, true);
    run(seconds{10});
    EXPECT_TRUE(drained(name));
    EXPECT_EQ(node.reason, "bad dimm");
    EXPECT_NE(drain_note(name).find("bad dimm"), std::string::npos);
    restart();
    run(minutes{1});
    const std::size_t before = slurm_.updates.size();
    run(minutes{5});
    EXPECT_EQ(slurm_.updates.size(), before);
    cordon(name, false);
    run(seconds{10});
    EXPECT_FALSE(drained(name));
    EXPECT_EQ(node.base, fails ? "IDLE" : "DOWN");
    EXPECT_EQ(node.flags.contains("FAIL"), fails);
    EXPECT_EQ(node.reason, "bad dimm");
    EXPECT_EQ(drain_note(name), "");
  }
}

// The last dump is from before the drain, so it does not match the note.
TEST_F(OperatorLoopTest, AnUncordonRightAfterTheDrainOfANodeThatIsDownEndsIt) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    add("n1");
    FakeNode& node = slurm_.nodes["n1"];
    node.flags = fails ? std::set<std::string>{"FAIL"} : std::set<std::string>{};
    node.base = fails ? "IDLE" : "DOWN";
    node.reason = "bad dimm";
    run(seconds{20});
    bool was_drained = false;
    slurm_.after_update = [&](const std::string& name, const std::string& state) {
      if (state == "drain") {
        was_drained = true;
        cordon(name, false);
      }
    };
    cordon("n1", true);
    run(minutes{1});
    EXPECT_TRUE(was_drained);
    EXPECT_FALSE(drained("n1"));
    EXPECT_EQ(node.flags.contains("FAIL"), fails);
    EXPECT_EQ(node.reason, "bad dimm");
    EXPECT_EQ(drain_note("n1"), "");
  }
}

// With ReturnToService=2 slurmctld returns it and may clear its Reason.
TEST_F(OperatorLoopTest, ANodeThatComesBackUnderACordonIsUndrainedWithIt) {
  for (const char* reason : {"bad dimm", ""}) {
    SCOPED_TRACE(reason);
    add("n1");
    FakeNode& node = slurm_.nodes["n1"];
    node.base = "DOWN";
    node.reason = "bad dimm";
    cordon("n1", true);
    run(seconds{10});
    node.base = "IDLE";
    node.reason = reason;
    run(minutes{1});
    EXPECT_TRUE(drained("n1"));
    cordon("n1", false);
    run(minutes{1});
    EXPECT_FALSE(drained("n1"));
    EXPECT_EQ(drain_note("n1"), "");
  }
}

TEST_F(OperatorLoopTest, ANodeWhoseHostWasOffUnderACordonComesBackIntoService) {
  for (const char* added : {"", " : Not responding", " : gres/gpu count reported lower"}) {
    SCOPED_TRACE(added);
    add("n1");
    FakeNode& node = slurm_.nodes["n1"];
    cordon("n1", true);
    run(seconds{10});
    node.base = "DOWN";
    node.flags.insert("NOT_RESPONDING");
    node.reason += added;
    cordon("n1", false);
    run(minutes{3});
    EXPECT_TRUE(drained("n1")) << "its slurmd does not respond";
    node.flags.erase("NOT_RESPONDING");
    run(seconds{20});
    EXPECT_FALSE(drained("n1"));
    EXPECT_EQ(node.base, "IDLE");
  }
}

// An administrator drains it with another Reason than the one noted.
TEST_F(OperatorLoopTest, ADrainThatAnAdministratorTookOverIsHis) {
  add("n1");
  FakeNode& node = slurm_.nodes["n1"];
  node.base = "DOWN";
  node.reason = "bad dimm";
  cordon("n1", true);
  run(seconds{10});
  node.reason = "keep out";
  cordon("n1", false);
  run(minutes{5});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(node.reason, "keep out");
  EXPECT_EQ(drain_note("n1"), "");
}

TEST_F(OperatorLoopTest, DrainsOfAnEarlierVersionAreUnderstood) {
  add("n1");
  slurm_.nodes["n1"] = {"IDLE", {"DRAIN"}, "slurmlet: cordoned [uid-of-n1], was: old story"};
  cordon("n1", true);
  run(seconds{20});
  EXPECT_TRUE(slurm_.updates.empty());
  cordon("n1", false);
  run(seconds{20});
  EXPECT_FALSE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "old story");
}

TEST_F(OperatorLoopTest, AThousandCordonsAreDrainedWithinTenSecondsInFewCommands) {
  add_nodes(1000);
  run(minutes{2});
  for (int i = 0; i < 1000; ++i) {
    cordon("n" + std::to_string(i), true);
  }
  run(seconds{10});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(drained("n" + std::to_string(i)));
  }
  EXPECT_LE(slurm_.commands, 4);
  for (int i = 0; i < 1000; ++i) {
    cordon("n" + std::to_string(i), false);
  }
  run(minutes{1});
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(drained("n" + std::to_string(i)));
  }
}

// slurmctld rejects one node, and another's Reason is too long for a command.
TEST_F(OperatorLoopTest, ARejectedNodeDelaysNoOther) {
  add_nodes(100);
  run(minutes{1});
  slurm_.rejects = {"n17"};
  slurm_.nodes["n18"].base = "DOWN";
  slurm_.nodes["n18"].reason = std::string(200000, 'x');
  for (int i = 0; i < 100; ++i) {
    cordon("n" + std::to_string(i), true);
  }
  run(seconds{30});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(drained("n" + std::to_string(i)), i != 17 && i != 18) << i;
  }
  EXPECT_TRUE(has_event("n17", "SlurmNodeNotChanged"));
  EXPECT_TRUE(has_event("n18", "SlurmNodeNotChanged"));
  EXPECT_FALSE(has_event("n19", "SlurmNodeNotChanged"));
  const int before = slurm_.commands;
  run(minutes{10});
  EXPECT_LT(slurm_.commands - before, 30) << "with back-off";
  slurm_.rejects.clear();
  run(minutes{2});
  EXPECT_TRUE(drained("n17"));
}

TEST_F(OperatorLoopTest, WithASlowSlurmctldCordonsAreDrainedTogetherAndReported) {
  add_nodes(100);
  run(minutes{1});
  slurm_.answers_after = seconds{2};
  for (int i = 0; i < 100; ++i) {
    cordon("n" + std::to_string(i), true);
  }
  run(milliseconds{5500});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(drained("n" + std::to_string(i)) ||
                has_event("n" + std::to_string(i), "SlurmNodeNotChanged"));
  }
  run(seconds{25});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(drained("n" + std::to_string(i)));
  }
}

TEST_F(OperatorLoopTest, ReportsAWaitingNodeWhileACommandRuns) {
  add("n1");
  run(minutes{1});
  slurm_.answers_after = milliseconds{4500};
  cordon("n1", true);
  run(milliseconds{2500});
  EXPECT_FALSE(has_event("n1", "SlurmNodeNotChanged"));
  run(seconds{1});
  EXPECT_TRUE(has_event("n1", "SlurmNodeNotChanged"));
}

// No dump shows the drain yet.
TEST_F(OperatorLoopTest, DoesNotReportADrainedNodeAsWaiting) {
  add("n1");
  run(minutes{1});
  slurm_.answers_after = milliseconds{900};
  cordon("n1", true);
  run(seconds{10});
  EXPECT_TRUE(has_event("n1", "SlurmNodeDrained"));
  EXPECT_FALSE(has_event("n1", "SlurmNodeNotChanged"));
}

TEST_F(OperatorLoopTest, StopsReportingAWaitingNodeOnceItIsDrained) {
  add("n1");
  run(minutes{1});
  slurm_.answers_after = seconds{2};
  cordon("n1", true);
  run(minutes{3});
  const auto events = event_api_.events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const auto& event) {
                            return event.reason == "SlurmNodeNotChanged" && event.count == 1;
                          }),
            1);
  EXPECT_EQ(events.back().reason, "SlurmNodeDrained");
}

TEST_F(OperatorLoopTest, ChangesNothingByAStaleDump) {
  add("n1");
  run(seconds{40});
  slurm_.answers_after = seconds{6};
  cordon("n1", true);
  const int before = slurm_.dumps;
  run(minutes{10});
  EXPECT_FALSE(drained("n1"));
  EXPECT_TRUE(has_event("n1", "SlurmNodeNotChanged"));
  EXPECT_LT(slurm_.dumps - before, 50) << "with back-off";
  slurm_.answers_after = milliseconds{10};
  run(minutes{2});
  EXPECT_TRUE(drained("n1"));
}

// Open connections hang, new ones work.
TEST_F(OperatorLoopTest, ALaggingWatchUndrainsNothing) {
  add("n1");
  cordon("n1", true);
  run(seconds{20});
  site_.nodes.at("n1").unschedulable = false;
  feed_watch("n1");
  site_.nodes.at("n1").unschedulable = true;  // not reported by the watch
  run(minutes{1});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(slurm_.updates.size(), 1U);
}

TEST_F(OperatorLoopTest, ANewLeaderListsTheNodes) {
  add("n1");
  cordon("n1", true);
  run(seconds{20});
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(seconds{30});
  ASSERT_FALSE(loop_->status().leads);
  site_.nodes.erase("n1");
  add("n2");
  leases_.fail_always(std::nullopt);
  run(seconds{20});
  EXPECT_EQ(loop_->status().nodes, 1U);
}

TEST_F(OperatorLoopTest, ANodeOfAnotherSlurmClusterIsLeftAlone) {
  add("n1");
  add("n2");
  site_.nodes["n1"].annotations[node::vocabulary::kSlurmCluster] = "another";
  site_.nodes["n2"].annotations.erase(node::vocabulary::kSlurmCluster);
  slurm_.nodes["n1"] = {"IDLE", {"DRAIN"}, "slurmlet: cordoned"};
  feed_watch("n1");
  cordon("n2", true);
  run(minutes{10});
  EXPECT_EQ(site_.count("annotate n1") + site_.count("annotate n2"), 0);
  EXPECT_TRUE(slurm_.updates.empty());
  EXPECT_FALSE(has_event("n1", "CordonNotDrained"));
  EXPECT_TRUE(has_event("n2", "CordonNotDrained"));
  // 0.1 wrote ClusterName in the form of a label.
  site_.nodes["n2"].annotations[node::vocabulary::kSlurmCluster] = "C";
  feed_watch("n2");
  run(seconds{20});
  EXPECT_TRUE(drained("n2"));
}

// The Node is deleted and registered again without its cordon.
TEST_F(OperatorLoopTest, ADrainOutlivesItsNodeAndEndsWithTheNextOne) {
  add("n1");
  cordon("n1", true);
  run(seconds{20});
  watch_->feed(Type::kDeleted, {site_.nodes.at("n1")});
  site_.nodes.erase("n1");
  run(minutes{1});
  EXPECT_TRUE(drained("n1"));
  const FakeNode slurm = slurm_.nodes["n1"];
  add("n1");
  slurm_.nodes["n1"] = slurm;
  run(seconds{20});
  EXPECT_FALSE(drained("n1"));
}

TEST_F(OperatorLoopTest, ALargeSiteIsDumpedMoreSeldomUnlessAnIntervalWasSet) {
  interval_.reset();
  restart();
  for (int i = 0; i < 6000; ++i) {
    slurm_.nodes["n" + std::to_string(i)] = {};
  }
  add("n1");
  run(seconds{70});
  EXPECT_EQ(loop_->status().dumps, 4U);  // at 0, 18, 36 and 54 s
  const auto published =
      slurm::parse_published_record(site_.nodes.at("n1").annotations[node::vocabulary::kRecord]);
  ASSERT_TRUE(published);
  EXPECT_EQ(published->interval, seconds{18});
  EXPECT_EQ(published->refresh, minutes{6});
  interval_ = seconds{15};
  restart();
  run(seconds{50});
  EXPECT_EQ(loop_->status().dumps, 4U);
}

// Any Node can claim any Slurm node.
TEST_F(OperatorLoopTest, ReportsOnTheMatchingNodeOnly) {
  add("n1");
  site_.nodes["a1"] = {
      "a1",
      "uid-of-a1",
      {{node::vocabulary::kSlurmNode, "n1"}, {node::vocabulary::kSlurmCluster, "c"}},
      false,
      false};
  feed_watch("a1");
  run(seconds{5});
  cordon("n1", true);
  run(seconds{5});
  ASSERT_TRUE(drained("n1"));
  std::vector<std::string> reported;
  for (const auto& event : event_api_.events()) {
    reported.push_back(event.about.name + " " + event.type + " " + event.reason);
  }
  EXPECT_EQ(reported, std::vector<std::string>{"n1 Normal SlurmNodeDrained"});
}

// An administrator drains between the dump and the change.
TEST_F(OperatorLoopTest, ReadsTheNodeAgainBeforeChangingIt) {
  add("n1");
  run(seconds{5});
  slurm_.nodes["n1"].flags = {"DRAIN"};
  slurm_.nodes["n1"].reason = "bad dimm";
  cordon("n1", true);
  run(seconds{30});
  cordon("n1", false);
  run(seconds{30});
  EXPECT_TRUE(slurm_.updates.empty());
}

TEST_F(OperatorLoopTest, ARegainedLeadStartsWithANewDump) {
  add("n1");
  run(seconds{5});
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(seconds{20});
  site_.clear_calls();
  slurm_.nodes["n1"].base = "DOWN";
  leases_.fail_always(std::nullopt);
  run(seconds{5});
  EXPECT_EQ(site_.calls().size(), 1U);
  EXPECT_NE(record("n1").find("State=DOWN"), std::string::npos);
}

// Records that waited when the lead was lost are not written before a new dump.
TEST_F(OperatorLoopTest, ARegainedLeadWritesNoEmptyRecords) {
  add_nodes(1000);
  run(seconds{5});
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(seconds{20});
  ASSERT_FALSE(loop_->status().leads);
  slurm_.away = true;
  leases_.fail_always(std::nullopt);
  run(minutes{1});
  ASSERT_TRUE(loop_->status().leads);
  for (const auto& [name, node] : site_.nodes) {
    if (node.annotations.contains(node::vocabulary::kRecord)) {
      EXPECT_NE(record(name), "") << name;
    }
  }
}

TEST_F(OperatorLoopTest, PublishesNothingBeforeTheDaemonReportsItsSlurmNode) {
  add("n1");
  add("n2.site");
  slurm_.nodes.erase("n2.site");
  slurm_.nodes["n2"];
  site_.nodes["n2.site"].annotations.erase(node::vocabulary::kSlurmNode);
  feed_watch("n2.site");
  run(seconds{40});
  EXPECT_EQ(site_.count("annotate n2.site"), 0);
  site_.nodes["n2.site"].annotations[node::vocabulary::kSlurmNode] = "n2";
  feed_watch("n2.site");
  run(seconds{20});
  EXPECT_TRUE(record("n2.site").starts_with("NodeName=n2 "));
}

TEST_F(OperatorLoopTest, AnUnreadableRecordIsNotPublishedAsAMissingNode) {
  add("n1");
  add("n2");
  run(seconds{20});
  slurm_.nodes["n1"].reason = "x\nNodeName=n2 Arch=x";
  run(seconds{40});
  EXPECT_TRUE(record("n2").starts_with("NodeName=n2 ")) << "the last one stays";
  cordon("n2", true);
  ::testing::internal::CaptureStderr();
  run(seconds{40});
  EXPECT_NE(
      ::testing::internal::GetCapturedStderr().find("node n2: Slurm node n2 is left as it is"),
      std::string::npos);
  const auto events = event_api_.events();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.type == "Warning" && event.reason == "CordonNotDrained";
  }));
  slurm_.nodes["n1"].reason = "";
  run(seconds{40});
  EXPECT_TRUE(drained("n2"));
}

// An admission webhook for one Node never answers.
TEST_F(OperatorLoopTest, AHangingWriteDelaysNoOtherNode) {
  add_nodes(40);
  site_.fail_calls("annotate n0", Error{Code::kTimeout, "it hangs"});
  int tries = 0;
  site_.before_annotate = [&](const std::string& node) {
    if (node == "n0") {
      ++tries;
      clock_.advance(seconds{5});
    }
  };
  run(seconds{15});
  EXPECT_NE(record("n9"), "");
  cordon("n7", true);
  run(seconds{8});
  EXPECT_TRUE(drained("n7"));
  run(minutes{20});
  EXPECT_LE(tries, 30) << "less and less often";
  site_.fail_calls("", std::nullopt);
  run(minutes{6});
  EXPECT_NE(record("n0"), "");
}

// A failure of the server must not make the Node that was tried then back off.
TEST_F(OperatorLoopTest, AfterAnOutageEachNodeIsWrittenSoon) {
  add_nodes(3);
  site_.fail_calls("annotate", Error{Code::kTimeout, "it hangs"});
  run(minutes{3});
  site_.fail_calls("", std::nullopt);
  run(seconds{40});
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(record("n" + std::to_string(i)), "") << i;
  }
}

TEST_F(OperatorLoopTest, ARejectedWriteDelaysNoOtherNode) {
  add_nodes(10);
  site_.fail_calls("annotate n0", Error{Code::kDenied, "403"});
  run(seconds{20});
  EXPECT_NE(record("n9"), "");
}

TEST_F(OperatorLoopTest, AFailedWriteIsNoProblemOnceItsNodeIsDeleted) {
  add("n1");
  run(seconds{20});
  add("n2");
  site_.fail_calls("annotate n2", Error{Code::kNotFound, "nodes n2 not found"});
  run(seconds{1});
  ASSERT_NE(loop_->status().record_problem, "");
  watch_->feed(Type::kDeleted, {site_.nodes.at("n2")});
  site_.nodes.erase("n2");
  run(seconds{1});
  EXPECT_EQ(loop_->status().record_problem, "") << "cleared by the deletion";
}

TEST_F(OperatorLoopTest, LosingTheLeadClearsRecordProblems) {
  add("n1");
  site_.fail_calls("annotate", Error{Code::kDenied, "403"});
  run(seconds{5});
  ASSERT_NE(loop_->status().record_problem, "");
  kube::Lease held;
  held.name = "slurmlet-operator-c";
  held.holder_identity = "b";
  held.duration_seconds = 600;
  leases_.put(held);
  run(seconds{20});
  ASSERT_FALSE(loop_->status().leads);
  EXPECT_EQ(loop_->status().record_problem, "");
}

TEST_F(OperatorLoopTest, LogsFailingRecordWritesOnce) {
  add_nodes(10);
  site_.fail_calls("annotate n0", Error{Code::kDenied, "nodes is forbidden"});
  const auto logged = [this](Duration time) {
    ::testing::internal::CaptureStderr();
    run(time);
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string first = logged(minutes{10});
  const auto at = first.find("nodes is forbidden");
  ASSERT_NE(at, std::string::npos) << first;
  EXPECT_EQ(first.find("nodes is forbidden", at + 1), std::string::npos) << first;
  EXPECT_EQ(first.find("written to all Nodes again"), std::string::npos) << first;
  site_.fail_calls("", std::nullopt);
  EXPECT_NE(logged(minutes{1}).find("written to all Nodes again"), std::string::npos);
}

TEST_F(OperatorLoopTest, WithoutTheLeadNothingIsDone) {
  kube::Lease held;
  held.name = "slurmlet-operator-c";
  held.holder_identity = "b";
  held.duration_seconds = 15;
  add("n1");
  cordon("n1", true);
  for (int i = 0; i < 60; ++i) {
    held.renew_time = std::to_string(i);
    leases_.put(held);
    run(seconds{1});
  }
  EXPECT_TRUE(slurm_.updates.empty());
  EXPECT_TRUE(site_.calls().empty());
  EXPECT_EQ(slurm_.dumps, 0);
  run(seconds{25});
  EXPECT_TRUE(drained("n1")) << "the other has gone";
}

TEST_F(OperatorLoopTest, QueriesAnAbsentSlurmctldWithBackOff) {
  add("n1");
  run(seconds{5});
  slurm_.away = true;
  cordon("n1", true);
  run(minutes{10});
  EXPECT_LT(loop_->status().update_failures, 60U);
  EXPECT_NE(loop_->status().dump_problem, "");
  slurm_.away = false;
  run(minutes{3});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(loop_->status().dump_problem, "");
}

}  // namespace operator_loop_test
}  // namespace slurmlet::op
