#include "operator/nodes/leftover_nodes.h"

#include <gtest/gtest.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "operator/fake_site.h"

namespace slurmlet::op {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class LeftoverNodesTest : public ::testing::Test {
 protected:
  KubeNode& node(const std::string& name, const std::string& machine = "",
                 const std::string& provider_id = "") {
    KubeNode& one = nodes_[name];
    one.name = name;
    one.uid = "uid-" + name;
    one.provider_id = provider_id;
    one.belongs = Belongs::kHere;
    if (!machine.empty()) {
      one.machine = "ns/" + machine;
      one.cluster = "ns/hpc";
    }
    site_.nodes[name] = {name, one.uid, {}, false, false, provider_id};
    return one;
  }
  kube::Machine& machine(const std::string& name, const std::string& its_node) {
    kube::Machine& one = machines_["ns/" + name];
    one.namespace_name = "ns";
    one.name = name;
    one.cluster = "hpc";
    one.node = its_node;
    return one;
  }
  void renew(const std::string& name) {
    kube::Lease lease;
    lease.name = name;
    leases_.put(lease);
  }
  void run(LeftoverNodes& leftovers, Duration time, const std::string& living = "") {
    for (const SteadyTime end = clock_.now().steady + time; clock_.now().steady < end;) {
      (void)leftovers.step(clock_.now(), nodes_, &machines_);
      clock_.advance(seconds{10});
      if (!living.empty()) {
        renew(living);
      }
    }
  }

  fakes::FakeClock clock_;
  FakeSite site_;
  fakes::FakeLeaseApi leases_;
  fakes::FakeEventApi event_api_;
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  LeftoverContext context_{site_, leases_, events_, [] { return true; }};
  std::map<std::string, KubeNode> nodes_;
  Machines machines_;
};

TEST_F(LeftoverNodesTest, OnlyANodeWhoseMachineIsGoneIsLeftOver) {
  machine("m1", "n1").provider_id = "metal3://ns/host1/m1";
  node("n1", "m1", "metal3://ns/host1/m1");
  node("gone", "m0");
  // Registered again, so without Cluster API's annotation.
  node("same-host", "", "metal3://ns/host1/m0");
  node("of-nobody");
  node("other-form", "", "metal3://11f4c1c0-0000-4000-8000-000000000001");
  node("other-provider", "", "docker:////m0");
  node("unknown-namespace", "", "metal3://prod/host1/m0");
  node("other-cluster", "m0").cluster = "ns/other";
  node("other-namespace", "m0").cluster = "prod/hpc";
  node("deleting", "m0").deleting = true;
  node("other-slurm", "m0").belongs = Belongs::kElsewhere;
  node("unknown-slurm", "m0").belongs = Belongs::kUnknown;
  machine("m2", "").provider_id = "metal3://ns/host2/m2";
  node("not-joined-yet", "", "metal3://ns/host2/m2");
  machine("m3", "named-otherwise");
  node("named-otherwise", "m0");
  machine("m4", "ending").deleted_at = clock_.now().wall;
  node("ending", "m4");
  const auto found = left_over(nodes_, machines_);
  EXPECT_EQ(found.size(), 2U);
  EXPECT_TRUE(found.contains("gone") && found.contains("same-host"));
}

TEST_F(LeftoverNodesTest, KeepsNodesOfAClusterWithoutLiveMachines) {
  node("gone", "m0");
  EXPECT_TRUE(left_over(nodes_, machines_).empty());
  machine("m1", "n1").deleted_at = clock_.now().wall;
  EXPECT_TRUE(left_over(nodes_, machines_).empty());
}

TEST_F(LeftoverNodesTest, DeletesOnceTheLeaseIsNotRenewed) {
  machine("m1", "n1");
  node("n1", "m1");
  node("alive", "m0");
  node("dead", "m0");
  node("no-lease", "m0");
  renew("dead");
  LeftoverNodes leftovers{context_, false};
  run(leftovers, kLeaseWatched, "alive");
  EXPECT_EQ(site_.nodes.size(), 4U);
  run(leftovers, minutes{2}, "alive");
  EXPECT_EQ(leftovers.deleted(), 2U);
  EXPECT_TRUE(site_.nodes.contains("alive"));
  EXPECT_TRUE(site_.nodes.contains("n1"));
  EXPECT_EQ(site_.nodes.size(), 2U);
}

TEST_F(LeftoverNodesTest, ARecreatedNodeIsWatchedAnew) {
  machine("m1", "n1");
  node("n1", "m1");
  node("gone", "m0");
  LeftoverNodes leftovers{context_, false};
  run(leftovers, kLeaseWatched - seconds{20});
  nodes_["gone"].uid = site_.nodes["gone"].uid = "another";
  run(leftovers, minutes{1});
  EXPECT_TRUE(site_.nodes.contains("gone"));
  nodes_["gone"].uid = "stale";
  run(leftovers, minutes{10});
  EXPECT_TRUE(site_.nodes.contains("gone")) << "the deletion has the uid as precondition";
}

TEST_F(LeftoverNodesTest, DeletesNothingWhileFactsAreMissing) {
  machine("m1", "n1");
  node("n1", "m1");
  node("gone", "m0");
  LeftoverNodes leftovers{context_, false};
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(leftovers, minutes{10});
  EXPECT_GE(leftovers.failures(), 1U);
  EXPECT_LE(leftovers.failures(), 20U);
  leases_.fail_always(std::nullopt);
  run(leftovers, minutes{1});
  EXPECT_EQ(leftovers.step(clock_.now(), nodes_, nullptr), kNever) << "Machines are not known";
  run(leftovers, kLeaseWatched - seconds{10});
  EXPECT_TRUE(site_.nodes.contains("gone")) << "watched from the start again";
  LeftoverNodes dry{context_, true};
  run(dry, minutes{10});
  EXPECT_TRUE(site_.nodes.contains("gone"));
}

}  // namespace
}  // namespace slurmlet::op
