// The operator's rules as tables.

#include <gtest/gtest.h>

#include <array>

#include "operator/rules/drain_rules.h"
#include "operator/rules/matching.h"
#include "operator/rules/record_rules.h"

namespace slurmlet::op {
namespace rules_test {

using std::chrono::minutes;
using std::chrono::seconds;

const std::string kUid = "11f4c1c0-0000-4000-8000-000000000001";
const std::string kCordoned = "slurmlet: cordoned";
const std::string kMine = "slurmlet: machine deleted [" + kUid + "]";
const std::string kBefore =
    "slurmlet: machine deleted [22f4c1c0-0000-4000-8000-000000000002]";  // another Node's

SlurmNode slurm(const std::string& base, std::set<std::string> flags, const std::string& reason) {
  return {"n1", "n1", {base, std::move(flags)}, reason, "NodeName=n1 …\n"};
}

KubeNode kube(bool cordoned, const std::string& note = "") {
  KubeNode node{"n1", kUid, "n1", cordoned, false, std::nullopt};
  node.drain = note;
  return node;
}

const std::string kDownNote = to_annotation({"n1", "DOWN", "fire"});
const std::string kFailNote = to_annotation({"n1", "FAIL", "fan"});

struct DrainCase {
  const char* what;
  bool cordoned;
  SlurmNode node;
  DrainAction action;
  std::string text = {};
  std::string note = {};
  bool waits = false;
};

void expect_rulings(MachineOf machine, const std::vector<DrainCase>& cases) {
  for (const auto& test : cases) {
    SCOPED_TRACE(test.what);
    const auto ruling = rule_drain(kube(test.cordoned, test.note), test.node, machine);
    EXPECT_EQ(ruling.action, test.action);
    EXPECT_EQ(ruling.text, test.text);
    EXPECT_EQ(!ruling.waits_for.empty(), test.waits);
  }
}

TEST(DrainRules, OfANodeWithoutAMachine) {
  using enum DrainAction;
  expect_rulings(
      MachineOf::kNone,
      {{"idle", false, slurm("IDLE", {}, ""), kNone},
       {"cordoned", true, slurm("IDLE", {}, ""), kDrain, kCordoned},
       {"cordoned while jobs run", true, slurm("ALLOCATED", {}, ""), kDrain, kCordoned},
       {"drained by us already", true, slurm("IDLE", {"DRAIN"}, kCordoned), kNone},
       {"uncordoned", false, slurm("IDLE", {"DRAIN"}, kCordoned), kUndrain},
       {"uncordoned while jobs run", false, slurm("MIXED", {"DRAIN"}, kCordoned), kUndrain},
       {"uncordoned, drained by 0.1", false, slurm("IDLE", {"DRAIN"}, kCordoned + " [u-1]"),
        kUndrain},
       {"cordoned, drained by 0.1", true, slurm("IDLE", {"DRAIN"}, kCordoned + " [u-1], was: x"),
        kNone},
       {"an administrator's", false, slurm("IDLE", {"DRAIN"}, "bad dimm"), kNone},
       {"cordoned, an administrator's", true, slurm("IDLE", {"DRAIN"}, "bad dimm"), kNone},
       {"drained without a reason", false, slurm("IDLE", {"DRAIN"}, ""), kNone},
       {"a reason that only begins like ours", false,
        slurm("IDLE", {"DRAIN"}, kCordoned + "; bad dimm, keep [rt 7]"), kNone},
       {"one of 0.1 to which somebody wrote", false,
        slurm("IDLE", {"DRAIN"}, kCordoned + " [u]; keep"), kNone},
       {"slurmctld added to it", false,
        slurm("IDLE", {"DRAIN"}, kCordoned + " : gres/gpu count reported lower"), kUndrain},
       {"rebooting", false, slurm("IDLE", {"DRAIN", "REBOOT_REQUESTED"}, kCordoned), kNone},
       {"rebooted", false, slurm("IDLE", {"DRAIN"}, kCordoned + " : reboot complete"), kUndrain},
       {"powering up for a job", true, slurm("MIXED", {"POWERING_UP"}, ""), kNone, "", "", true},
       {"powered down with a job on its way", true, slurm("ALLOCATED", {"POWERED_DOWN"}, ""), kNone,
        "", "", true},
       {"powering up without one", true, slurm("IDLE", {"POWERING_UP"}, ""), kDrain, kCordoned},
       // The host was off while cordoned.
       {"silent", false, slurm("DOWN", {"DRAIN", "NOT_RESPONDING"}, kCordoned), kNone, "", "",
        true},
       {"back", false, slurm("DOWN", {"DRAIN"}, kCordoned), kResume},
       {"back, since 23.02", false, slurm("DOWN", {"DRAIN"}, kCordoned + " : Not responding"),
        kResume},
       {"idle and not asked yet", false, slurm("IDLE", {"DRAIN", "NOT_RESPONDING"}, kCordoned),
        kUndrain},
       // DOWN and FAIL.
       {"down, not responding", true, slurm("DOWN", {"NOT_RESPONDING"}, "Not responding"), kDrain,
        kCordoned},
       {"down without a reason", true, slurm("DOWN", {}, ""), kDrain, kCordoned},
       {"down, with a Reason of ours that is left", true, slurm("DOWN", {}, "slurmlet: undrained"),
        kDrain, kCordoned},
       {"down for somebody's reason", true, slurm("DOWN", {}, "fire"), kNote, kDownNote},
       {"noted", true, slurm("DOWN", {}, "fire"), kDrain, "fire", kDownNote},
       {"drained", true, slurm("DOWN", {"DRAIN"}, "fire"), kNone, "", kDownNote},
       {"uncordoned", false, slurm("DOWN", {"DRAIN"}, "fire"), kUndrain, "", kDownNote},
       {"with an addition", false, slurm("DOWN", {"DRAIN"}, "fire : Not responding"), kUndrain, "",
        kDownNote},
       {"returned, its Reason cleared", false, slurm("IDLE", {"DRAIN"}, ""), kUndrain, "",
        kDownNote},
       {"the drain has ended", false, slurm("DOWN", {}, "fire"), kNote, "", kDownNote},
       {"an administrator's by now", false, slurm("DOWN", {"DRAIN"}, "disk"), kNote, "", kDownNote},
       {"an administrator wrote more", false, slurm("DOWN", {"DRAIN"}, "fire, ticket 7"), kNote, "",
        kDownNote},
       {"another node's note", false, slurm("DOWN", {"DRAIN"}, "fire"), kNote, "",
        to_annotation({"n2", "DOWN", "fire"})},
       {"no note", false, slurm("DOWN", {"DRAIN"}, "fire"), kNone},
       {"another Reason by now", true, slurm("DOWN", {}, "disk"), kNote,
        to_annotation({"n1", "DOWN", "disk"}), kDownNote},
       {"failing", true, slurm("IDLE", {"FAIL"}, "fan"), kNote, kFailNote},
       {"failing, noted", true, slurm("IDLE", {"FAIL"}, "fan"), kDrain, "fan", kFailNote},
       {"failing again", false, slurm("IDLE", {"DRAIN"}, "fan"), kFail, "fan", kFailNote},
       // Slurm keeps the Reason of an ended drain since 23.11.
       {"an old reason of somebody's", true, slurm("IDLE", {}, "bad dimm"), kDrain, kCordoned},
       {"a Reason that is left", false, slurm("IDLE", {}, kCordoned), kSetReason,
        "slurmlet: undrained"},
       {"of 0.1", false, slurm("IDLE", {}, kCordoned + " [u], was: disk, bay 3"), kSetReason,
        "disk, bay 3"},
       {"done", false, slurm("IDLE", {}, "slurmlet: undrained"), kNone},
       // `scontrol reboot ASAP` drains and keeps an existing Reason.
       {"drained with the Reason that is left", false,
        slurm("IDLE", {"DRAIN"}, "slurmlet: undrained"), kNone},
       // Of a Machine that is gone.
       {"the Machine has gone, the Node not yet", false, slurm("IDLE", {"DRAIN"}, kMine), kNone},
       {"a Node that came back without a Machine", false, slurm("IDLE", {"DRAIN"}, kBefore),
        kNone}});
}

TEST(DrainRules, OfADeletedMachine) {
  using enum DrainAction;
  expect_rulings(
      MachineOf::kDeleting,
      {{"its Machine is being deleted", false, slurm("IDLE", {}, ""), kDrain, kMine},
       {"cordoned first", true, slurm("IDLE", {"DRAIN"}, kCordoned), kDrain, kMine},
       {"uncordoned then", false, slurm("IDLE", {"DRAIN"}, kMine), kNone},
       {"an administrator's drain", true, slurm("IDLE", {"DRAIN"}, "dimm"), kNone},
       {"one without a Reason", false, slurm("IDLE", {"DRAIN"}, ""), kNone},
       {"down for somebody's reason", false, slurm("DOWN", {}, "fire"), kDrain, "fire"},
       {"failing for somebody's reason", false, slurm("IDLE", {"FAIL"}, "fan"), kDrain, "fan"},
       {"down as it does not respond", false, slurm("DOWN", {"NOT_RESPONDING"}, "Not responding"),
        kDrain, kMine},
       {"down, and drained by 0.1", false, slurm("DOWN", {"DRAIN"}, kMine + ", was: fan"), kDrain,
        "fan"},
       {"cordoned first, down for somebody's reason", true, slurm("DOWN", {"DRAIN"}, "fire"), kNone,
        "", kDownNote},
       {"powering up for a job", false, slurm("MIXED", {"POWERING_UP"}, ""), kNone, "", "", true}});
}

TEST(DrainRules, OfAMachineThatLives) {
  using enum DrainAction;
  expect_rulings(
      MachineOf::kLives,
      {{"the same Node, and a Machine that lives", false, slurm("IDLE", {"DRAIN"}, kMine), kNone},
       {"the next Machine's Node", false, slurm("IDLE", {"DRAIN"}, kBefore), kUndrain},
       {"its host still boots", false,
        slurm("DOWN", {"DRAIN", "NOT_RESPONDING"}, kBefore + " : Not responding"), kNone, "", "",
        true},
       {"its slurmd is there", false, slurm("DOWN", {"DRAIN"}, kBefore + " : Not responding"),
        kResume},
       {"drained by 0.1, and in service before", false,
        slurm("IDLE", {"DRAIN"}, kBefore + ", was: Kill task failed"), kUndrain},
       {"the next Machine's Node, cordoned", true, slurm("IDLE", {"DRAIN"}, kBefore), kNone},
       {"the next Machine's Node, an administrator's drain", false,
        slurm("IDLE", {"DRAIN"}, "dimm"), kNone}});
}

TEST(DrainNote, IsOneLineOfJsonWhateverTheReason) {
  for (const char* reason : {"fire", "a \"quoted\" one", "two\nlines", "\xff\xfe", "{}"}) {
    const std::string text = to_annotation({"n1", "DOWN", reason});
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(parse_drain_note(text).slurm_node, "n1");
  }
  for (const char* text : {"", "{", "[]", "1", R"({"slurmNode":1})"}) {
    EXPECT_EQ(parse_drain_note(text), DrainNote{});
  }
}

TEST(Matching, ANodeActsOnlyForTheSlurmNodeOfItsOwnName) {
  const auto trust = [](const std::string& node, const std::string& name,
                        const std::string& hostname, std::size_t claims = 1) {
    const KubeNode kube{node, kUid, name, true, false, std::nullopt};
    const SlurmNode one{name, hostname, {}, "", ""};
    return distrust(kube, one, claims).empty();
  };
  EXPECT_TRUE(trust("n1", "n1", "n1"));
  EXPECT_TRUE(trust("n1.hpc.example", "n1", "n1"));
  EXPECT_TRUE(trust("host7", "n1", "host7"));
  EXPECT_TRUE(trust("host7", "N1", "Host7.hpc.example"));
  EXPECT_FALSE(trust("n2", "n1", "n1"));
  EXPECT_FALSE(trust("n10", "n1", "n1"));
  EXPECT_FALSE(trust("n1", "n1", "n1", 2));
  EXPECT_EQ(claimed_name({"n1", kUid, "", false, false, std::nullopt}), "n1");
}

class RecordRules : public ::testing::Test {
 protected:
  static constexpr WallTime kNow{std::chrono::hours{480000}};
  static constexpr Duration kRefresh = minutes{5};  // of a small site
  SlurmNode slurm_ = slurm("IDLE", {}, "");
  KubeNode node_ = kube(false);
  DumpReport dump_{"c", kNow - seconds{2}};

  void publish(WallTime dumped_at) {
    node_.record = Published{record_hash("c", slurm_.text), dumped_at, {}};
  }
  Urgency rule(const SlurmNode* before = nullptr) const {
    return rule_record(node_, slurm_, before, dump_, kNow);
  }
};

TEST_F(RecordRules, AChangeIsWrittenByItsUrgency) {
  EXPECT_EQ(rule(), Urgency::kState) << "never written";
  publish(*dump_.dumped_at);
  EXPECT_EQ(rule(&slurm_), Urgency::kNone);
  SlurmNode before = slurm_;
  slurm_.text = "another text";
  slurm_.state.base = "MIXED";
  EXPECT_EQ(rule(&before), Urgency::kRoutine);
  slurm_.state.flags = {"COMPLETING"};
  EXPECT_EQ(rule(&before), Urgency::kRoutine);
  slurm_.state.flags = {"DRAIN"};
  EXPECT_EQ(rule(&before), Urgency::kOutOfService);
  before.state = slurm_.state;
  slurm_.reason = "bad dimm";
  EXPECT_EQ(rule(&before), Urgency::kOutOfService);
  slurm_.state = {"DOWN", {}};
  EXPECT_EQ(rule(&before), Urgency::kOutOfService);
  slurm_.state = {"IDLE", {}};
  EXPECT_EQ(rule(&before), Urgency::kState);
}

TEST_F(RecordRules, AnUnchangedRecordIsWrittenEachRefresh) {
  publish(kNow - minutes{3});
  EXPECT_EQ(rule(&slurm_), Urgency::kNone);
  publish(kNow - kRefresh);
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine);
  publish(kNow + minutes{3});
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "from the future";
  node_.record->dumped_at.reset();
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "without a time";
}

TEST_F(RecordRules, AFailureIsWrittenEachRefreshWhateverItsText) {
  dump_.dumped_at = kNow - minutes{10};
  dump_.failure = "ControllerUnreachable: no";
  dump_.failed_at = kNow - seconds{3};
  publish(*dump_.dumped_at);
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine);
  node_.record->failed_at = kNow - minutes{2};
  dump_.failure = "ControllerTimeout: another text";
  EXPECT_EQ(rule(&slurm_), Urgency::kNone) << "already published";
  node_.record->failed_at = kNow - kRefresh;
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "refreshed while it lasts";
  node_.record->failed_at = kNow - minutes{2};
  dump_.dumped_at = kNow - seconds{1};
  dump_.failure.clear();
  dump_.failed_at.reset();
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "recovered";
  node_.record->failed_at = kNow + std::chrono::hours{9};
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "from the future";
  dump_.dumped_at.reset();
  EXPECT_EQ(rule(&slurm_), Urgency::kNone) << "no dump yet";
}

TEST(SitePace, GrowsWithALargeSite) {
  for (const auto& [nodes, dump, refresh] : std::vector<std::array<int, 3>>{
           {0, 15, 300}, {1, 15, 300}, {5000, 15, 300}, {10'000, 30, 600}, {40'000, 60, 600}}) {
    const SitePace pace = site_pace(static_cast<std::size_t>(nodes));
    EXPECT_EQ(pace.dump, seconds{dump}) << nodes;
    EXPECT_EQ(pace.refresh, seconds{refresh}) << nodes;
  }
}

TEST_F(RecordRules, ALargeSiteRefreshesMoreSeldom) {
  dump_.refresh = 2 * kRefresh;
  publish(kNow - kRefresh);
  EXPECT_EQ(rule(&slurm_), Urgency::kNone);
  publish(kNow - 2 * kRefresh);
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine);
  publish(kNow - kRefresh);
  node_.record->refresh = kRefresh;
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine)
      << "the published refresh is shorter than that of the grown site";
}

TEST_F(RecordRules, RefreshesAreSpread) {
  std::set<WallTime> due;
  for (int i = 0; i < 100; ++i) {
    node_.name = "n" + std::to_string(i);
    WallTime at = kNow - kRefresh;
    for (; at < kNow; at += seconds{1}) {
      publish(at);
      if (rule(&slurm_) == Urgency::kNone) {
        break;
      }
    }
    due.insert(at);
  }
  EXPECT_GT(due.size(), 30U);
}

}  // namespace rules_test
}  // namespace slurmlet::op
