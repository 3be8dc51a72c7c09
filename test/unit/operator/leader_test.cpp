#include "operator/leader.h"

#include <gtest/gtest.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"

namespace slurmlet::op {
namespace {

using std::chrono::seconds;

constexpr const char* kName = "slurmlet-operator-alps";

class LeaderTest : public ::testing::Test {
 protected:
  bool leads(const Leader& leader) const { return leader.leads(clock_.now().steady); }
  void step(Leader& leader) { leader.step(clock_.now()); }

  fakes::FakeLeaseApi api_;
  fakes::FakeClock clock_;
  Leader a_{api_, kName, "a", [] { return 0.0; }, clock_};
  Leader b_{api_, kName, "b", [] { return 0.5; }, clock_};
};

TEST(LeaderLease, IsOneForEachSlurmCluster) {
  EXPECT_EQ(leader_lease("alps"), "slurmlet-operator-alps");
  EXPECT_EQ(leader_lease("Alps-2"), "slurmlet-operator-alps-2");
  EXPECT_NE(leader_lease("my_cluster"), leader_lease("my-cluster"));
  EXPECT_NE(leader_lease("my_cluster"), leader_lease("my.cluster"));
  EXPECT_EQ(leader_lease("my_cluster").find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
            std::string::npos);
}

// The Lease is renewed while the other candidate's GET is under way.
TEST_F(LeaderTest, ASlowGetCountsFromItsAnswer) {
  step(a_);
  const auto renewed = [this] {
    clock_.advance(seconds{9});
    api_.put(*api_.find(kName));
  };
  api_.during_get = renewed;
  step(b_);
  api_.during_get = [] {};
  const Now seen = clock_.now();
  while (!leads(b_)) {
    clock_.advance(seconds{1});
    step(b_);
  }
  EXPECT_GE(clock_.now().steady - seen.steady, Leader::kLease);
}

// Stopped at any moment for any time, there are never two leaders, and one within 20 s.
TEST_F(LeaderTest, NeverTwoLeadersWhateverIsStopped) {
  for (int stop = 1; stop < 40; ++stop) {
    step(a_);
    step(b_);
    Leader& stopped = leads(a_) ? a_ : b_;
    Leader& other = leads(a_) ? b_ : a_;
    for (int second = 0; second < stop; ++second) {
      clock_.advance(seconds{1});
      step(other);
      EXPECT_FALSE(leads(a_) && leads(b_)) << stop;
      EXPECT_TRUE(second < 20 || leads(other)) << stop << " " << second;
    }
    step(stopped);
    EXPECT_FALSE(leads(a_) && leads(b_)) << stop;
    clock_.advance(seconds{1});
  }
}

TEST_F(LeaderTest, LosesTheLeadWithoutTheApiServer) {
  step(a_);
  api_.fail_always(Error{Code::kUnavailable, "no route"});
  clock_.run(seconds{9}, [this] { return a_.step(clock_.now()); });
  EXPECT_TRUE(leads(a_));
  EXPECT_EQ(a_.problem(), "no route");
  clock_.run(seconds{2}, [this] { return a_.step(clock_.now()); });
  EXPECT_FALSE(leads(a_));
  api_.fail_always(std::nullopt);
  clock_.run(seconds{5}, [this] { return a_.step(clock_.now()); });
  EXPECT_TRUE(leads(a_)) << "its own Lease is free for itself";
}

TEST_F(LeaderTest, LosingARaceIsNotLeadingAndResigningFreesTheLease) {
  step(a_);
  auto lease = *api_.find(kName);
  lease.holder_identity = "b";
  api_.put(lease);
  clock_.advance(seconds{3});
  step(a_);
  EXPECT_FALSE(leads(a_));
  step(b_);
  ASSERT_TRUE(leads(b_));
  b_.resign(clock_.now());
  EXPECT_FALSE(leads(b_));
  clock_.advance(seconds{3});
  step(a_);
  EXPECT_TRUE(leads(a_));
}

}  // namespace
}  // namespace slurmlet::op
