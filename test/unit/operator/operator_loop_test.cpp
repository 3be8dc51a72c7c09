#include "operator/operator_loop.h"

#include <gtest/gtest.h>

#include "base/rfc3339.h"
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
    settings.health.drain_on = {{"GPUHealthy", "False", minutes{2}}};
    loop_ = std::make_unique<OperatorLoop>(
        settings,
        OperatorContext{clock_, *watch_, site_, leader_, events_, machines_, machine_api_, events_,
                        [this](SteadyTime) { return clock_.now().wall; }, leases_, node_api_,
                        [this] { return std::make_unique<FakeSlurmRunner>(slurm_); }},
        std::make_unique<slurm::ScontrolDump>(slurm::ClientSettings{},
                                              std::make_unique<FakeSlurmRunner>(slurm_)),
        [] { return 0.5; });
    watch_->list = [this] { return values(site_.nodes); };
  }
  void add(const std::string& name) {
    slurm_.nodes[name] = {};
    site_.nodes[name] = site_node(name, "uid-of-" + name, name);
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
  // DOWN or FAIL for an administrator's Reason.
  FakeNode& add_broken(const std::string& name, bool fails) {
    add(name);
    FakeNode& node = slurm_.nodes[name];
    node.base = fails ? "IDLE" : "DOWN";
    node.flags = fails ? std::set<std::string>{"FAIL"} : std::set<std::string>{};
    node.reason = "bad dimm";
    return node;
  }
  void expect_broken_as_before(bool fails) {
    const FakeNode& node = slurm_.nodes["n1"];
    EXPECT_FALSE(drained("n1"));
    EXPECT_EQ(node.base, fails ? "IDLE" : "DOWN");
    EXPECT_EQ(node.flags.contains("FAIL"), fails);
    EXPECT_EQ(node.reason, "bad dimm");
    EXPECT_EQ(drain_note("n1"), "");
  }
  void remove_node(const std::string& name) {
    watch_->feed(Type::kDeleted, {site_.nodes.at(name)});
    site_.nodes.erase(name);
  }
  void lose_lead() {
    leases_.fail_always(Error{Code::kUnavailable, "no route"});
    run(seconds{20});
    ASSERT_FALSE(loop_->status().leads);
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
    slurm_.nodes["n1"].reason = "drained " + std::to_string(i) + " times";
    run(*interval_ + seconds{1});
    EXPECT_NE(record("n1").find(slurm_.nodes["n1"].reason), std::string::npos) << i;
    run(milliseconds{700});
  }
}

TEST_F(OperatorLoopTest, WritesOfALargeSiteAreSpreadOverSeconds) {
  add_nodes(1000);
  run(seconds{5});
  EXPECT_LE(site_.calls().size(), 500U);
  run(seconds{20});
  EXPECT_EQ(site_.calls().size(), 1000U) << "each once";
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
  EXPECT_EQ(loop_->status().changes.failures, 0U);
}

TEST_F(OperatorLoopTest, DrainsWhatIsCordonedWithinASecond) {
  add("n1");
  run(seconds{5});
  cordon("n1", true);
  run(seconds{1});
  EXPECT_TRUE(drained("n1"));
  EXPECT_TRUE(is_own_drain(slurm_.nodes["n1"].reason));
  EXPECT_EQ(drain_note("n1"), "") << "its Reason shows whose it is";
  run(seconds{5});
  cordon("n1", false);
  run(seconds{1});
  EXPECT_FALSE(drained("n1"));
  run(seconds{30});
  EXPECT_FALSE(is_own_drain(slurm_.nodes["n1"].reason));
  const std::size_t changes = slurm_.updates.size();
  run(minutes{10});
  EXPECT_EQ(slurm_.updates.size(), changes);
}

TEST_F(OperatorLoopTest, DrainsWhatIsSickUntilItHasBeenWellForTenMinutes) {
  add("n1");
  slurm_.nodes["n1"].partitions = "gpu";
  auto& conditions = site_.nodes.at("n1").conditions;
  conditions = {{{"Ready", "True", "", ""}, rfc3339(clock_.now().wall)},
                {{"GPUHealthy", "False", "", "no GPU"}, rfc3339(clock_.now().wall)}};
  feed_watch("n1");
  run(minutes{1});
  EXPECT_FALSE(drained("n1"));
  run(minutes{2});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: GPUHealthy: no GPU [uid-of-n1]");
  EXPECT_TRUE(has_event("n1", "SlurmNodeDrained"));
  EXPECT_EQ(loop_->status().health.drained, 1U);
  restart();
  // The watch lags: what it shows as good is bad again.
  auto good = site_.nodes.at("n1");
  good.conditions[1] = {{"GPUHealthy", "True", "", ""}, rfc3339(clock_.now().wall)};
  watch_->feed(Type::kModified, {good});
  run(minutes{12});
  EXPECT_TRUE(drained("n1"));
  site_.nodes.at("n1").conditions = good.conditions;
  feed_watch("n1");
  run(minutes{1});
  EXPECT_FALSE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: undrained");
}

TEST_F(OperatorLoopTest, ACordonOfANodeThatIsDownHoldsAndItsReasonStays) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    const FakeNode& node = add_broken("n1", fails);
    cordon("n1", true);
    run(seconds{10});
    EXPECT_TRUE(drained("n1"));
    EXPECT_EQ(node.reason, "bad dimm");
    EXPECT_NE(drain_note("n1").find("bad dimm"), std::string::npos);
    restart();
    run(minutes{1});
    const std::size_t before = slurm_.updates.size();
    run(minutes{5});
    EXPECT_EQ(slurm_.updates.size(), before);
    cordon("n1", false);
    run(seconds{10});
    expect_broken_as_before(fails);
  }
}

// The last dump is from before the drain, so it does not match the note.
TEST_F(OperatorLoopTest, AnUncordonRightAfterTheDrainOfANodeThatIsDownEndsIt) {
  for (const bool fails : {false, true}) {
    SCOPED_TRACE(fails);
    add_broken("n1", fails);
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
    expect_broken_as_before(fails);
  }
}

TEST_F(OperatorLoopTest, AThousandCordonsAreDrainedWithinTenSecondsInFewCommands) {
  add_nodes(1000);
  run(minutes{2});
  for (const bool on : {true, false}) {
    for (const auto& [name, node] : slurm_.nodes) {
      cordon(name, on);
    }
    const int before = slurm_.commands;
    run(seconds{10});
    EXPECT_TRUE(std::ranges::all_of(slurm_.nodes, [&](const auto& entry) {
      return entry.second.flags.contains("DRAIN") == on;
    })) << on;
    EXPECT_LE(slurm_.commands - before, 50);
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

// Reported only while a node waits, not once its drain is made and no dump shows it yet.
TEST_F(OperatorLoopTest, CordonsThatWaitForASlowSlurmctldAreReportedOnceAndDrainedTogether) {
  const struct {
    milliseconds answers_after;
    bool waits;
  } rows[] = {{milliseconds{900}, false}, {seconds{2}, true}, {milliseconds{4500}, true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.answers_after / milliseconds{1});
    std::vector<std::string> names;
    for (int i = 0; i < 20; ++i) {
      names.push_back("r" + std::to_string(&row - rows) + "-" + std::to_string(i));
      add(names.back());
    }
    run(minutes{1});
    slurm_.answers_after = row.answers_after;
    for (const auto& name : names) {
      cordon(name, true);
    }
    run(milliseconds{5500});
    for (const auto& name : names) {
      EXPECT_TRUE(drained(name) || has_event(name, "SlurmNodeNotChanged"));
    }
    run(minutes{3});
    for (const auto& name : names) {
      EXPECT_TRUE(drained(name) && has_event(name, "SlurmNodeDrained"));
      EXPECT_EQ(has_event(name, "SlurmNodeNotChanged"), row.waits);
    }
    for (const auto& event : event_api_.events()) {
      EXPECT_EQ(event.count, 1) << event.reason;
    }
    slurm_.answers_after = milliseconds{10};
  }
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
  cordon("n1", false);
  site_.nodes.at("n1").unschedulable = true;  // not reported by the watch
  run(minutes{1});
  EXPECT_TRUE(drained("n1"));
}

// It lists Nodes and dumps Slurm; records that waited when the lead was lost are not written
// before.
TEST_F(OperatorLoopTest, ARegainedLeadStartsAnew) {
  add_nodes(1000);
  run(seconds{5});
  lose_lead();
  for (int i = 2; i < 1000; ++i) {
    site_.nodes.erase("n" + std::to_string(i));
  }
  add("another");
  slurm_.nodes["n1"].base = "DOWN";
  slurm_.away = true;
  leases_.fail_always(std::nullopt);
  run(minutes{1});
  ASSERT_TRUE(loop_->status().leads);
  EXPECT_EQ(loop_->status().nodes, 3U);
  for (const auto& [name, node] : site_.nodes) {
    EXPECT_TRUE(!node.annotations.contains(node::vocabulary::kRecord) || !record(name).empty());
  }
  slurm_.away = false;
  run(minutes{4});
  EXPECT_NE(record("n1").find("State=DOWN"), std::string::npos);
  EXPECT_NE(record("another"), "");
}

TEST_F(OperatorLoopTest, ANodeOfAnotherSlurmClusterIsLeftAlone) {
  const struct {
    const char* reports;  // nullptr: nothing yet
    bool is_ours, is_told;
  } rows[] = {{"another", false, false},
              {nullptr, false, true},
              {"C", true, false}};  // 0.1 wrote ClusterName in the form of a label
  for (const auto& row : rows) {
    const std::string name = "n" + std::to_string(&row - rows);
    slurm_.nodes[name] = {};
    site_.nodes[name] = site_node(name, "uid", name);
    auto& annotations = site_.nodes[name].annotations;
    annotations.erase(node::vocabulary::kSlurmCluster);
    if (row.reports != nullptr) {
      annotations[node::vocabulary::kSlurmCluster] = row.reports;
    }
    run(seconds{20});
    cordon(name, true);
    run(minutes{2});
    EXPECT_EQ(record(name) != "", row.is_ours);
    EXPECT_EQ(drained(name), row.is_ours);
    EXPECT_EQ(has_event(name, "CordonNotDrained"), row.is_told);
  }
}

TEST_F(OperatorLoopTest, ALargeSiteIsDumpedMoreSeldomUnlessAnIntervalWasSet) {
  add("n1");
  for (int i = 0; i < 6000; ++i) {
    slurm_.nodes["s" + std::to_string(i)] = {};
  }
  const auto dumps = [this](std::optional<Duration> interval) {
    interval_ = interval;
    restart();
    run(minutes{2});
    return loop_->status().dumps;
  };
  const auto seldom = dumps(std::nullopt);
  const auto published =
      slurm::parse_published_record(site_.nodes.at("n1").annotations[node::vocabulary::kRecord]);
  ASSERT_TRUE(published);
  EXPECT_GT(published->interval, seconds{15});
  EXPECT_GT(published->refresh, minutes{5});
  EXPECT_GT(dumps(seconds{15}), seldom);
}

// Any Node can claim any Slurm node.
TEST_F(OperatorLoopTest, ReportsOnTheMatchingNodeOnly) {
  add("n1");
  site_.nodes["a1"] = site_node("a1", "uid-of-a1", "n1");
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
  run(seconds{40});
  EXPECT_TRUE(has_event("n2", "CordonNotDrained"));
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

TEST_F(OperatorLoopTest, AFailedWriteIsNoProblemOnceItsNodeOrTheLeadIsGone) {
  for (const bool loses_lead : {false, true}) {
    SCOPED_TRACE(loses_lead);
    add("n1");
    site_.fail_calls("annotate n1", Error{Code::kDenied, "403"});
    run(seconds{20});
    ASSERT_NE(loop_->status().record_problem, "");
    if (loses_lead) {
      lose_lead();
    } else {
      remove_node("n1");
      run(seconds{1});
    }
    EXPECT_EQ(loop_->status().record_problem, "");
  }
}

TEST_F(OperatorLoopTest, LogsFailingRecordWritesOnceWhichDelayNoOtherNode) {
  add_nodes(10);
  site_.fail_calls("annotate n0", Error{Code::kDenied, "nodes is forbidden"});
  ::testing::internal::CaptureStderr();
  run(minutes{10});
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto at = log.find("nodes is forbidden");
  ASSERT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find("nodes is forbidden", at + 1), std::string::npos) << log;
  EXPECT_NE(record("n9"), "");
  site_.fail_calls("", std::nullopt);
  run(minutes{1});
  EXPECT_EQ(loop_->status().record_problem, "");
}

TEST_F(OperatorLoopTest, QueriesAnAbsentSlurmctldWithBackOff) {
  add("n1");
  run(seconds{5});
  slurm_.away = true;
  cordon("n1", true);
  run(minutes{10});
  EXPECT_LT(loop_->status().changes.failures, 60U);
  EXPECT_NE(loop_->status().dump_problem, "");
  slurm_.away = false;
  run(minutes{3});
  EXPECT_TRUE(drained("n1"));
  EXPECT_EQ(loop_->status().dump_problem, "");
}

}  // namespace operator_loop_test
}  // namespace slurmlet::op
