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
const std::string kOurs = "slurmlet: cordoned [" + kUid + "]";
const std::string kOursOfAnother = "slurmlet: cordoned [22f4c1c0-0000-4000-8000-000000000002]";

SlurmNode slurm(const std::string& base, std::set<std::string> flags, const std::string& reason) {
  return {"n1", "n1", {base, std::move(flags)}, reason, "NodeName=n1 …\n"};
}

KubeNode kube(bool cordoned) { return {"n1", kUid, "n1", cordoned, false, std::nullopt}; }

struct DrainCase {
  const char* what;
  bool cordoned;
  SlurmNode node;
  DrainAction action;
  bool is_told = false;
};

TEST(DrainRules, Table) {
  const auto kNone = DrainAction::kNone;
  const auto kDrain = DrainAction::kDrain;
  const auto kUndrain = DrainAction::kUndrain;
  const DrainCase cases[] = {
      {"idle", false, slurm("IDLE", {}, ""), kNone},
      {"cordoned", true, slurm("IDLE", {}, ""), kDrain},
      {"cordoned while jobs run", true, slurm("ALLOCATED", {}, ""), kDrain},
      {"drained by us already", true, slurm("IDLE", {"DRAIN"}, kOurs), kNone},
      {"uncordoned, drained by us", false, slurm("IDLE", {"DRAIN"}, kOurs), kUndrain},
      {"uncordoned while jobs run", false, slurm("MIXED", {"DRAIN"}, kOurs), kUndrain},
      {"drained for the Node before this one", false, slurm("IDLE", {"DRAIN"}, kOursOfAnother),
       kUndrain},
      {"cordoned, drained for the Node before", true, slurm("IDLE", {"DRAIN"}, kOursOfAnother),
       kNone},
      {"drained by an administrator", false, slurm("IDLE", {"DRAIN"}, "bad dimm"), kNone},
      {"cordoned and drained by an administrator", true, slurm("IDLE", {"DRAIN"}, "bad dimm"),
       kNone},
      {"drained without a reason", false, slurm("IDLE", {"DRAIN"}, ""), kNone},
      {"a reason that only begins like ours", false,
       slurm("IDLE", {"DRAIN"}, kOurs + "; bad dimm, keep [rt 7]"), kNone},
      {"rebooted while drained by us", false,
       slurm("IDLE", {"DRAIN"}, kOurs + " : reboot complete"), kUndrain},
      {"powering up for a job", true, slurm("MIXED", {"POWERING_UP"}, ""), kNone, true},
      {"powered down with a job on its way", true, slurm("ALLOCATED", {"POWERED_DOWN"}, ""), kNone,
       true},
      {"powering up without one", true, slurm("IDLE", {"POWERING_UP"}, ""), kDrain},
      {"a reason of ours that nothing drains any more", false, slurm("IDLE", {}, kOurs),
       DrainAction::kSetReason},
      {"down since it does not respond, uncordoned", false,
       slurm("DOWN", {"DRAIN"}, kOurs + " : Not responding"), kUndrain},
      {"an old reason of somebody's", true, slurm("IDLE", {}, "bad dimm"), kDrain},
      {"down for somebody's reason", true, slurm("DOWN", {}, "fire"), kNone, true},
      {"failing for somebody's reason", true, slurm("IDLE", {"FAIL"}, "fan"), kNone, true},
      {"down without a reason", true, slurm("DOWN", {}, ""), kDrain},
      {"down for our old reason", true, slurm("DOWN", {}, kOurs), kDrain},
      {"not responding", true, slurm("IDLE", {"NOT_RESPONDING"}, ""), kDrain},
      {"uncordoned and down, drained by us", false, slurm("DOWN", {"DRAIN"}, kOurs), kUndrain},
  };
  for (const auto& test : cases) {
    const auto ruling = rule_drain(kube(test.cordoned), test.node);
    EXPECT_EQ(ruling.action, test.action) << test.what;
    EXPECT_EQ(!ruling.waits_for.empty(), test.is_told) << test.what;
  }
  EXPECT_EQ(cordon_reason(kube(true)), kOurs);
}

TEST(DrainRules, OfMachines) {
  const auto kNone = DrainAction::kNone;
  const auto kDrain = DrainAction::kDrain;
  const auto kUndrain = DrainAction::kUndrain;
  const std::string mine = "slurmlet: machine deleted [" + kUid + "]";
  const std::string before = "slurmlet: machine deleted [22f4c1c0-0000-4000-8000-000000000002]";
  const struct {
    const char* what;
    bool cordoned;
    MachineOf machine;
    SlurmNode node;
    DrainAction action;
    std::string reason = {};
    bool is_told = false;
  } cases[] = {
      {"its Machine goes", false, MachineOf::kDeleting, slurm("IDLE", {}, ""), kDrain, mine},
      {"cordoned first", true, MachineOf::kDeleting, slurm("IDLE", {"DRAIN"}, kOurs), kDrain, mine},
      {"uncordoned then", false, MachineOf::kDeleting, slurm("IDLE", {"DRAIN"}, mine), kNone},
      {"an administrator's drain", true, MachineOf::kDeleting, slurm("IDLE", {"DRAIN"}, "dimm"),
       kNone},
      {"one without a Reason", false, MachineOf::kDeleting, slurm("IDLE", {"DRAIN"}, ""), kNone},
      {"the Machine has gone, the Node not yet", false, MachineOf::kNone,
       slurm("IDLE", {"DRAIN"}, mine), kNone},
      {"a Node that came back without a Machine", false, MachineOf::kNone,
       slurm("IDLE", {"DRAIN"}, before), kNone},
      {"the same Node, and a Machine that lives", false, MachineOf::kLives,
       slurm("IDLE", {"DRAIN"}, mine), kNone},
      {"the next Machine's Node", false, MachineOf::kLives, slurm("IDLE", {"DRAIN"}, before),
       kUndrain},
      {"the next Machine's Node after a reboot", false, MachineOf::kLives,
       slurm("IDLE", {"DRAIN"}, before + " : reboot complete"), kUndrain},
      {"the next Machine's Node after the host was off", false, MachineOf::kLives,
       slurm("DOWN", {"DRAIN"}, before + " : Not responding"), kUndrain},
      {"the next Machine's Node, down before", false, MachineOf::kLives,
       slurm("IDLE", {"DRAIN"}, before + ", was: Kill task failed"), kUndrain},
      {"the next Machine's Node, cordoned", true, MachineOf::kLives,
       slurm("IDLE", {"DRAIN"}, before), kNone},
      {"the next Machine's Node, an administrator's drain", false, MachineOf::kLives,
       slurm("IDLE", {"DRAIN"}, "dimm"), kNone},
      {"down for somebody's reason", false, MachineOf::kDeleting, slurm("DOWN", {}, "fire"), kDrain,
       mine + ", was: fire"},
      {"failing for somebody's reason", false, MachineOf::kDeleting, slurm("IDLE", {"FAIL"}, "fan"),
       kDrain, "fan"},
      {"down as it does not respond", false, MachineOf::kDeleting,
       slurm("DOWN", {"NOT_RESPONDING"}, "Not responding"), kDrain, mine + ", was: Not responding"},
      {"cordoned first, with an older reason", true, MachineOf::kDeleting,
       slurm("IDLE", {"DRAIN"}, kOurs + ", was: fan"), kDrain, mine + ", was: fan"},
      {"powering up for a job", false, MachineOf::kDeleting, slurm("MIXED", {"POWERING_UP"}, ""),
       kNone, "", true},
  };
  for (const auto& test : cases) {
    const auto ruling = rule_drain(kube(test.cordoned), test.node, test.machine);
    EXPECT_EQ(ruling.action, test.action) << test.what;
    EXPECT_EQ(ruling.reason, test.reason) << test.what;
    EXPECT_EQ(!ruling.waits_for.empty(), test.is_told) << test.what;
  }
}

// Slurm keeps one Reason: since 23.11 also that of a drain that has ended.
TEST(DrainRules, AnotherReasonComesBackAndNoneOfOursStays) {
  const struct {
    const char* what;
    bool cordoned;
    SlurmNode node;
    std::string reason;
  } cases[] = {
      {"none", true, slurm("IDLE", {}, ""), kOurs},
      {"somebody's, of earlier", true, slurm("IDLE", {}, "bad dimm"), kOurs + ", was: bad dimm"},
      {"down, which a query of one node hides", true, slurm("MIXED", {}, "disk"),
       kOurs + ", was: disk"},
      {"ours, of earlier", true, slurm("IDLE", {}, kOursOfAnother), kOurs},
      {"ours, ended", true, slurm("IDLE", {}, "slurmlet: undrained"), kOurs},
      {"its host was off", true, slurm("IDLE", {}, "slurmlet: undrained : Not responding"),
       kOurs + ", was: Not responding"},
      {"undrained", false, slurm("IDLE", {}, kOurs), "slurmlet: undrained"},
      {"undrained, somebody's", false, slurm("DOWN", {}, kOurs + ", was: disk, bay 3"),
       "disk, bay 3"},
      {"undrained after a reboot", false, slurm("IDLE", {}, kOurs + " : reboot issued"),
       "slurmlet: undrained"},
      {"undrained while its host was off", false, slurm("DOWN", {}, kOurs + " : Not responding"),
       "Not responding"},
      {"undrained, both", false,
       slurm("DOWN", {}, kOurs + ", was: disk : reboot complete : Not responding"), "disk"},
      {"done", false, slurm("IDLE", {}, "slurmlet: undrained"), ""},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(rule_drain(kube(test.cordoned), test.node).reason, test.reason) << test.what;
  }
  // `scontrol reboot ASAP` drains, and keeps a Reason that is there.
  EXPECT_EQ(rule_drain(kube(false), slurm("IDLE", {"DRAIN"}, "slurmlet: undrained")),
            DrainRuling{});
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
  static constexpr Duration kRefresh = minutes{5};  // of a site that is not large
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

TEST_F(RecordRules, WhatDoesNotChangeIsWrittenEachRefresh) {
  publish(kNow - minutes{3});
  EXPECT_EQ(rule(&slurm_), Urgency::kNone);
  publish(kNow - kRefresh);
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine);
  publish(kNow + minutes{3});
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "from the future";
  node_.record->dumped_at.reset();
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "without a time";
}

TEST_F(RecordRules, AFailureIsWrittenEachRefreshWhateverItSays) {
  dump_.dumped_at = kNow - minutes{10};
  dump_.failure = "ControllerUnreachable: no";
  dump_.failed_at = kNow - seconds{3};
  publish(*dump_.dumped_at);
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine);
  node_.record->failed_at = kNow - minutes{2};
  dump_.failure = "ControllerTimeout: another text";
  EXPECT_EQ(rule(&slurm_), Urgency::kNone) << "it is told";
  node_.record->failed_at = kNow - kRefresh;
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "so that the reader knows that it lasts";
  node_.record->failed_at = kNow - minutes{2};
  dump_.dumped_at = kNow - seconds{1};
  dump_.failure.clear();
  dump_.failed_at.reset();
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "over";
  node_.record->failed_at = kNow + std::chrono::hours{9};
  EXPECT_EQ(rule(&slurm_), Urgency::kRoutine) << "from the future";
  dump_.dumped_at.reset();
  EXPECT_EQ(rule(&slurm_), Urgency::kNone) << "nothing is known yet";
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
      << "what is written promises that: the site has grown";
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
