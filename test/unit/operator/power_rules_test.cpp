#include "operator/rules/power_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"
#include "operator/machines/sleeping_machines.h"

namespace slurmlet::op {
namespace power_rules_test {

using std::chrono::minutes;
using std::chrono::seconds;

SlurmNode slurm(const std::string& base, std::set<std::string> flags) {
  return {"n1", "n1", {base, std::move(flags)}, "", ""};
}

PowerMachine machine(std::vector<const SlurmNode*> nodes) {
  return {"ns/m1", "metal3://ns/host1/m3m1", false, true, "", std::move(nodes)};
}

TEST(PowerRules, SwitchOffWhatSlurmPowersDown) {
  const SlurmNode going = slurm("IDLE", {"POWERING_DOWN"}),
                  drained = slurm("IDLE", {"DRAIN", "POWER_DOWN"}),
                  gone = slurm("IDLE", {"POWERED_DOWN"}), down = slurm("DOWN", {"POWERING_DOWN"}),
                  idle = slurm("IDLE", {}), mixed = slurm("MIXED", {"POWERING_DOWN"}),
                  completing = slurm("IDLE", {"POWERING_DOWN", "COMPLETING"}),
                  up = slurm("IDLE", {"POWERING_UP"});
  PowerMachine deleting = machine({&going}), unclear = machine({&going}),
               legacy = machine({&going}), no_node = machine({&going});
  deleting.deleting = true;
  unclear.unclear = "more than one Node has its providerID";
  legacy.provider_id = "metal3://11f4c1c0-0000-4000-8000-000000000001";
  no_node.has_node = false;
  const struct {
    const char* what;
    std::vector<PowerMachine> machines;
    const char* suspend;  // the problem; "" = none
    const char* resume;
  } kCases[] = {
      {"powering down", {machine({&going})}, "", ""},
      {"to be powered down", {machine({&drained})}, "", ""},
      {"powered down", {machine({&gone})}, "", ""},
      {"down as well", {machine({&down})}, "", ""},
      {"idle", {machine({&idle})}, "not being powered down", ""},
      {"a job", {machine({&mixed})}, "a job is on", ""},
      {"a job that ends", {machine({&completing})}, "a job is on", ""},
      {"waking", {machine({&up})}, "not being powered down", ""},
      {"another slurmd of the host works",
       {machine({&going, &idle})},
       "not being powered down",
       ""},
      {"no Slurm node", {machine({})}, "no node of its host", ""},
      {"no Machine", {}, "no Machine has it", "no Machine has it"},
      {"two", {machine({&going}), machine({&going})}, "more than one", "more than one"},
      {"going", {deleting}, "is being deleted", "is being deleted"},
      {"unclear", {unclear}, "more than one Node", "more than one Node"},
      {"no BareMetalHost",
       {legacy},
       "does not name a BareMetalHost",
       "does not name a BareMetalHost"},
      {"its Node was deleted", {no_node}, "has no Node", ""},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.what);
    for (const auto& [action, want] : {std::pair{PowerAction::kSuspend, test.suspend},
                                       std::pair{PowerAction::kResume, test.resume}}) {
      const auto host = rule_power(action, test.machines);
      ASSERT_EQ(bool{host}, *want == '\0');
      if (host) {
        EXPECT_EQ(*host, (PowerHost{"ns", "host1", "m3m1"}));
      } else {
        EXPECT_NE(host.error().message.find(want), std::string::npos) << host.error().message;
      }
    }
  }
}

// Whatever Slurm shows, no host goes off on which a job is, or that Slurm does not power down.
TEST(PowerRules, NoJobIsEnded) {
  std::mt19937 chance{7};
  const char* const bases[] = {"IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN"};
  const char* const flags[] = {"DRAIN",      "COMPLETING",  "POWERING_DOWN", "POWERED_DOWN",
                               "POWER_DOWN", "POWERING_UP", "NOT_RESPONDING"};
  int allowed = 0;
  for (int i = 0; i < 5000; ++i) {
    std::vector<SlurmNode> nodes(1 + chance() % 2);
    std::vector<const SlurmNode*> all;
    for (SlurmNode& node : nodes) {
      node.state.base = bases[chance() % std::size(bases)];
      for (int flag = 0; flag < 3; ++flag) {
        node.state.flags.insert(flags[chance() % std::size(flags)]);
      }
      all.push_back(&node);
    }
    if (!rule_power(PowerAction::kSuspend, {machine(all)})) {
      continue;
    }
    ++allowed;
    for (const SlurmNode& node : nodes) {
      EXPECT_TRUE(node.state.base != "ALLOCATED" && node.state.base != "MIXED");
      EXPECT_FALSE(node.state.has("COMPLETING"));
      EXPECT_TRUE(node.state.raw().find("DOWN", node.state.base.size()) != std::string::npos);
    }
  }
  EXPECT_GT(allowed, 100);
}

TEST(PowerRules, ANodeSaysThatItSleepsUntilItIsReady) {
  KubeNode ready, silent;
  ready.conditions = {{{"Ready", "True", "", ""}, ""}};
  silent.conditions = {{{"Ready", "Unknown", "", ""}, ""}};
  const struct {
    const KubeNode& node;
    SlurmNode slurm;
    const char* reason;  // "" = awake
  } kCases[] = {
      {silent, slurm("IDLE", {"POWERED_DOWN"}), "PoweredDown"},
      {ready, slurm("IDLE", {"POWERING_DOWN"}), "PoweredDown"},
      {silent, slurm("IDLE", {"POWERING_UP", "NOT_RESPONDING"}), "PoweringUp"},
      {ready, slurm("ALLOCATED", {"POWERING_UP"}), "PoweringUp"},
      {silent, slurm("IDLE", {}), "PoweringUp"},
      {ready, slurm("IDLE", {}), ""},
      {ready, slurm("MIXED", {}), ""},
      {silent, slurm("DOWN", {}), ""},
      {silent, slurm("DOWN", {"POWERED_DOWN"}), "PoweredDown"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.slurm.state.raw());
    const auto condition = rule_sleep(test.node, test.slurm);
    EXPECT_EQ(condition ? condition->reason : "", test.reason);
  }
}

class SleepingMachinesTest : public ::testing::Test {
 protected:
  SleepingMachinesTest() {
    slurm_.nodes["n1"].flags = {"POWERED_DOWN"};
    api_.machines["m1"] = hooked_machine("m1", "n1");
    api_.machines["m1"].sleeping = true;
    node_ = site_node("n1", "", "n1");
    node::DesiredNode made;
    made.name = "n1";
    node_.uid = node_api_.create(made, {})->uid;
    node_.conditions = {{{"Ready", "Unknown", "", ""}, ""}};
  }
  // The watch shows at once what was written.
  void run(Duration time) {
    clock_.run(time, [this] {
      const auto now = node_api_.get("n1");
      std::erase_if(node_.conditions,
                    [](const auto& one) { return one.condition.type == kAsleep; });
      for (const auto& one : now->conditions) {
        node_.conditions.push_back({one.condition, one.last_transition_time});
      }
      nodes_.put(node_);
      Machines machines;
      for (const auto& [name, machine] : api_.machines) {
        machines.emplace(key_of(machine), machine);
      }
      return std::min(dump_.step(clock_.now(), true, false),
                      sleeping_.step(clock_.now(), nodes_, dump_, machines));
    });
  }
  std::string condition() const {
    for (const auto& one : node_.conditions) {
      if (one.condition.type == kAsleep) {
        return one.condition.reason;
      }
    }
    return "";
  }

  fakes::FakeClock clock_;
  FakeSlurm slurm_;
  FakeMachines api_;
  fakes::FakeNodeApi node_api_;
  kube::SiteNode node_;
  SiteNodes nodes_{"c"};
  DumpedNodes dump_{{{}, seconds{15}, "c"},
                    std::make_unique<slurm::ScontrolDump>(
                        slurm::ClientSettings{}, std::make_unique<FakeSlurmRunner>(slurm_)),
                    [] { return 0.5; }};
  bool may_act_ = true;
  SleepingMachines sleeping_{{api_, node_api_, [this] { return may_act_; }}, false};
};

TEST_F(SleepingMachinesTest, AreShownAndMarkedUntilTheyAreBack) {
  run(minutes{1});
  EXPECT_EQ(condition(), "PoweredDown");
  EXPECT_EQ(sleeping_.count(), 1U);
  const int writes = node_api_.writes();
  run(minutes{30});
  EXPECT_EQ(node_api_.writes(), writes);
  slurm_.nodes["n1"].flags = {"POWERING_UP"};
  run(minutes{1});
  EXPECT_EQ(condition(), "PoweringUp");
  slurm_.nodes["n1"].flags = {};
  run(minutes{1});
  EXPECT_TRUE(api_.machines["m1"].sleeping) << "its Node is not Ready yet";
  node_.conditions[0].condition.status = "True";
  api_.fail_next(Error{Code::kConflict, "it has changed"});
  run(minutes{2});
  EXPECT_FALSE(api_.machines["m1"].sleeping);
  EXPECT_EQ(condition(), "");
  EXPECT_EQ(sleeping_.count(), 0U);
}

// The mark comes before the dump that shows why.
TEST_F(SleepingMachinesTest, AnOldDumpWakesNothing) {
  slurm_.nodes["n1"].flags = {};
  node_.conditions[0].condition.status = "True";
  api_.machines["m1"].sleeping = false;
  run(seconds{20});
  api_.machines["m1"].sleeping = true;
  slurm_.nodes["n1"].flags = {"POWERING_DOWN"};
  run(minutes{1});
  EXPECT_TRUE(api_.machines["m1"].sleeping);
  EXPECT_EQ(condition(), "PoweredDown");
}

TEST_F(SleepingMachinesTest, NothingIsWrittenWithoutTheLead) {
  may_act_ = false;
  run(minutes{1});
  EXPECT_EQ(condition(), "");
}

}  // namespace power_rules_test
}  // namespace slurmlet::op
