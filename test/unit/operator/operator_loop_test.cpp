#include "operator/operator_loop.h"

#include <gtest/gtest.h>

#include <random>

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

  // As after SIGKILL: nothing is kept but Slurm and the Nodes.
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
        std::make_unique<slurm::ScontrolDump>(slurm::SinfoSettings{},
                                              std::make_unique<FakeSlurmRunner>(slurm_)),
        std::make_unique<FakeSlurmRunner>(slurm_), std::make_unique<FakeSlurmRunner>(slurm_),
        [] { return 0.5; });
    std::vector<kube::SiteNode> all;
    for (const auto& [name, node] : site_.nodes) {
      all.push_back(node);
    }
    watch_->feed(Type::kReplaced, std::move(all));
  }
  void add(const std::string& name) {
    slurm_.nodes[name] = {};
    site_.nodes[name] = {
        name, "uid-of-" + name, {{node::vocabulary::kSlurmNode, name}}, false, false};
    tell(name);
  }
  void add_nodes(int count) {
    for (int i = 0; i < count; ++i) {
      add("n" + std::to_string(i));
    }
  }
  void tell(const std::string& name) { watch_->feed(Type::kModified, {site_.nodes.at(name)}); }
  void cordon(const std::string& name, bool on) {
    site_.nodes.at(name).unschedulable = on;
    tell(name);
  }
  void run(Duration time) {
    clock_.run(time, [this] { return loop_->step(); });
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
  Leader leader_{leases_, "a", [] { return 0.5; }, clock_};
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  FakeMachines machine_api_;
  fakes::FakeWatch<kube::Machine> machines_;  // there are none
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
  leases_.fail_always(Error{Code::kDenied, "PUT leases/slurmlet-operator: 403"});
  run(seconds{5});
  EXPECT_EQ(loop_->status().api_problem, "PUT leases/slurmlet-operator: 403");
  EXPECT_FALSE(operator_checks(loop_->status()).front().ok);
  leases_.fail_always(std::nullopt);
  run(seconds{5});
  EXPECT_EQ(loop_->status().api_problem, "");
}

TEST_F(OperatorLoopTest, WritesADrainBeforeTheTrafficOfJobs) {
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

// Since 23.11 a Reason stays when the drain ends, and `scontrol reboot ASAP` drains with it.
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

// slurmctld rejects it while the node has fewer CPUs or less memory than slurm.conf says.
TEST_F(OperatorLoopTest, AnUndrainThatSlurmRejectsIsTriedAgain) {
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

TEST_F(OperatorLoopTest, ANodeInNoPartitionIsDrained) {
  add("n1");
  slurm_.nodes["n1"].in_no_partition = true;
  cordon("n1", true);
  run(seconds{20});
  EXPECT_TRUE(drained("n1"));
}

// More changes than can be written, at each dump.
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

// Most of a write's cost is the wake-up.
TEST_F(OperatorLoopTest, RecordsAreWrittenManyInOneTurn) {
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

// Of slow ones a turn makes few: a cordon does not wait for them.
TEST_F(OperatorLoopTest, SlowWritesDoNotKeepTheRestWaiting) {
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
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: cordoned [uid-of-n1]");
  cordon("n1", false);
  run(seconds{1});
  EXPECT_FALSE(drained("n1"));
  EXPECT_EQ(slurm_.nodes["n1"].reason, "slurmlet: undrained");
  run(minutes{10});
  EXPECT_EQ(slurm_.updates.size(), 3U);
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

// Any Node can claim any node of Slurm; what was done is told the one whose name fits.
TEST_F(OperatorLoopTest, TellsTheNodeThatItIsAndNoOtherThatClaimsIt) {
  add("n1");
  site_.nodes["a1"] = {"a1", "uid-of-a1", {{node::vocabulary::kSlurmNode, "n1"}}, false, false};
  tell("a1");
  run(seconds{5});
  cordon("n1", true);
  run(seconds{5});
  ASSERT_TRUE(drained("n1"));
  std::vector<std::string> told;
  for (const auto& event : event_api_.events()) {
    told.push_back(event.about.name + " " + event.type + " " + event.reason);
  }
  EXPECT_EQ(told, std::vector<std::string>{"n1 Normal SlurmNodeDrained"});
}

// The drain comes between the dump and the change.
TEST_F(OperatorLoopTest, LooksAtTheNodeAgainBeforeItChangesIt) {
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

// One that lost the lead and has it again knows nothing of what happened meanwhile.
TEST_F(OperatorLoopTest, WhoLeadsAgainBeginsWithANewDump) {
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

// What waited to be written when the lead went is not written before there is a dump.
TEST_F(OperatorLoopTest, WhoLeadsAgainWritesNoEmptyRecords) {
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

// Not "Slurm has no such node", before its daemon has said which one it is.
TEST_F(OperatorLoopTest, OfANodeThatHasNotSaidWhichItIsNothingIsPublished) {
  add("n1");
  add("n2.site");
  slurm_.nodes.erase("n2.site");
  slurm_.nodes["n2"];
  site_.nodes["n2.site"].annotations.clear();
  tell("n2.site");
  run(seconds{40});
  EXPECT_EQ(site_.count("annotate n2.site"), 0);
  site_.nodes["n2.site"].annotations[node::vocabulary::kSlurmNode] = "n2";
  tell("n2.site");
  run(seconds{20});
  EXPECT_TRUE(record("n2.site").starts_with("NodeName=n2 "));
}

// The look takes long, or the API server does: no drain is given by an old answer, none is tried
// without a pause, and the drain comes when it can.
TEST_F(OperatorLoopTest, AnAnswerThatIsTooOldIsAFailure) {
  add("n1");
  run(seconds{40});
  slurm_.answers_after = seconds{6};
  cordon("n1", true);
  run(minutes{10});
  EXPECT_FALSE(drained("n1"));
  EXPECT_GT(loop_->status().update_failures, 3U);
  EXPECT_LT(loop_->status().update_failures, 40U);
  slurm_.answers_after = milliseconds{10};
  run(minutes{2});
  EXPECT_TRUE(drained("n1"));
}

TEST_F(OperatorLoopTest, ARecordThatIsNotUnderstoodIsNotPublishedAsNone) {
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

// An admission webhook that matches one Node and never answers.
TEST_F(OperatorLoopTest, ANodeWhoseWriteHangsHoldsUpNoOther) {
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

// The server was away: that was no fault of the Node that was tried then.
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

TEST_F(OperatorLoopTest, ANodeThatCannotBeWrittenHoldsUpNoOther) {
  add_nodes(10);
  site_.fail_calls("annotate n0", Error{Code::kDenied, "403"});
  run(seconds{20});
  EXPECT_NE(record("n9"), "");
}

TEST_F(OperatorLoopTest, ANodeThatCouldNotBeWrittenAndHasGoneIsNoProblemAnyMore) {
  add("n1");
  run(seconds{20});
  add("n2");
  site_.fail_calls("annotate n2", Error{Code::kNotFound, "nodes n2 not found"});
  run(seconds{1});
  ASSERT_NE(loop_->status().record_problem, "");
  watch_->feed(Type::kDeleted, {site_.nodes.at("n2")});
  site_.nodes.erase("n2");
  run(seconds{1});
  EXPECT_EQ(loop_->status().record_problem, "") << "not for as long as no other is written";
}

TEST_F(OperatorLoopTest, WhoLostTheLeadHasNoProblemWithRecords) {
  add("n1");
  site_.fail_calls("annotate", Error{Code::kDenied, "403"});
  run(seconds{5});
  ASSERT_NE(loop_->status().record_problem, "");
  kube::Lease held;
  held.name = kLeaderLease;
  held.holder_identity = "b";
  held.duration_seconds = 600;
  leases_.put(held);
  run(seconds{20});
  ASSERT_FALSE(loop_->status().leads);
  EXPECT_EQ(loop_->status().record_problem, "");
}

TEST_F(OperatorLoopTest, ThatRecordsCannotBeWrittenIsLoggedOnce) {
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
  held.name = kLeaderLease;
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

TEST_F(OperatorLoopTest, WhileSlurmctldIsAwayItIsTriedWithBackOff) {
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

// Whatever people do in whatever order, with crashes, a late watch and a slurmctld that comes and
// goes: no drain of an administrator is changed, and when all is quiet what is cordoned is drained.
TEST_F(OperatorLoopTest, ByChance) {
  const std::vector<std::string> names{"n1", "n2", "n3"};
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 chance{seed};
    for (const auto& name : names) {
      add(name);
    }
    slurm_.before_update = [&](const std::string& name) {
      const FakeNode& node = slurm_.nodes.at(name);
      EXPECT_FALSE(node.flags.contains("DRAIN") && !is_cordon_reason(node.reason))
          << "seed " << seed << ": a drain by an administrator of " << name << " was changed";
    };
    for (int i = 0; i < 120; ++i) {
      const std::string& name = names[chance() % names.size()];
      FakeNode& node = slurm_.nodes.at(name);
      switch (chance() % 9) {
        case 0:
          cordon(name, true);
          break;
        case 1:
          cordon(name, false);
          break;
        case 2:
          node.flags.insert("DRAIN");
          node.reason = "bad dimm";
          break;
        case 3:
          node.flags.erase("DRAIN");
          break;
        case 4:
          restart();
          break;
        case 5:
          slurm_.away = !slurm_.away;
          break;
        case 6:  // the watch tells later
          site_.nodes.at(name).unschedulable = !site_.nodes.at(name).unschedulable;
          break;
        case 7:
          node.base = node.base == "IDLE" ? "ALLOCATED" : "IDLE";
          break;
        default:
          break;
      }
      run(milliseconds{500 + chance() % 20000});
    }
    slurm_.away = false;
    for (const auto& name : names) {
      tell(name);
    }
    run(minutes{5});
    for (const auto& name : names) {
      const FakeNode& node = slurm_.nodes.at(name);
      if (site_.nodes.at(name).unschedulable) {
        EXPECT_TRUE(drained(name)) << "seed " << seed;
      } else {
        EXPECT_FALSE(drained(name) && is_cordon_reason(node.reason)) << "seed " << seed;
      }
      EXPECT_NE(record(name).find("State=" + node.state()), std::string::npos) << "seed " << seed;
    }
    restart();
  }
}

}  // namespace operator_loop_test
}  // namespace slurmlet::op
