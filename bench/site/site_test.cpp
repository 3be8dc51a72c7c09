// The goals of ./dev bench site with some of the nodes of a site of 10,000, as ratios within one
// run: a delay that lets the fleet move as one fails here. And that the simulation is what it says.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "kube/object_json.h"
#include "report.h"

namespace slurmlet::site {
namespace {

using std::chrono::seconds;

Plan small_plan() {
  Plan plan;
  plan.nodes = 400;
  plan.settle = seconds{240};
  plan.after = seconds{15};
  return plan;
}

class SiteTest : public ::testing::Test {
 protected:
  SiteTest() { log::set_level(log::Level::kError); }
  ~SiteTest() override { log::set_level(log::Level::kInfo); }
};

TEST_F(SiteTest, ANodeIsReadAsItWasSent) {
  node::ObservedNode node;
  node.name = "n1";
  node.uid = "u1";
  node.resource_version = "7";
  node.labels = {{"type", "virtual-kubelet"}};
  node.annotations = {{"slurmlet.io/slurm-state", "IDLE"}};
  node.unschedulable = true;
  node.taints = {{"key", "value", "NoSchedule"}};
  node.capacity = {{"cpu", "128"}};
  node.allocatable = {{"cpu", "126"}};
  node.conditions = {{{"Ready", "True", "SlurmdRunning", "so"}, "2026-11-20T14:00:00Z"}};
  node.addresses = {{"InternalIP", "192.0.2.1"}};
  node.node_info.boot_id = "b1";
  node.node_info.swap_bytes = 0;
  node.kubelet_port = 10250;
  const auto read = kube::node_from_json(nlohmann::json::parse(node_json(node)));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, node);
}

TEST_F(SiteTest, ASteadyNodeRenewsItsLeaseAndReportsItsStatus) {
  Plan plan;
  plan.nodes = 5;
  plan.settle = std::chrono::minutes{20};
  plan.after = seconds{1};
  const auto events = report(run_scenario("reconfigure", plan));
  EXPECT_NEAR(events.front().api.steady / plan.nodes, 1 / 10.2 + 1 / 300.0, 0.003);
}

TEST_F(SiteTest, TwoRunsAreTheSame) {
  Plan plan = small_plan();
  plan.nodes = 5;
  EXPECT_EQ(run_scenario("reconfigure", plan).seconds, run_scenario("reconfigure", plan).seconds);
}

// So few nodes vary more from second to second than 10,000 do.
constexpr double kSampleRatio = kMostRatio + 0.7;

// The goals, or what is missed today and must not grow: lower it when a delay gets better.
struct Ceiling {
  const char* scenario;
  double lease_gap;  // in seconds, the outage included
  double ratio = kSampleRatio;
  double rpcs = kMostSlurmRpcs + 5;  // one query of these nodes
};

class ApiLoad : public SiteTest, public ::testing::WithParamInterface<Ceiling> {};

TEST_P(ApiLoad, StaysBelowItsCeiling) {
  const Plan plan = small_plan();
  const site::Run run = run_scenario(GetParam().scenario, plan);
  EXPECT_LE(run.lease_gap, GetParam().lease_gap) << GetParam().scenario;
  for (const EventReport& each : report(run)) {
    SCOPED_TRACE(run.scenario + ": " + each.event.what);
    EXPECT_LE(each.ratio, GetParam().ratio);
    const double of_all = each.slurmctld_10_s * plan.site_nodes / plan.nodes;
    EXPECT_LE(of_all, GetParam().rpcs);
  }
}

INSTANTIATE_TEST_SUITE_P(Scenarios, ApiLoad,
                         ::testing::Values(Ceiling{"daemon-restart", 15},
                                           Ceiling{"api-restart", 30 + 15 + 10, 6},
                                           // Two renewals time out, then 20-40 s of rest.
                                           Ceiling{"api-hang", 60 + 40, 4.5, 55},
                                           Ceiling{"job", 15}, Ceiling{"slurmctld-restart", 15},
                                           Ceiling{"reconfigure", 15}));

}  // namespace
}  // namespace slurmlet::site
