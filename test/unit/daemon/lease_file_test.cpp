#include "daemon/state_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/rfc3339.h"
#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;

class LeaseFileTest : public ::testing::Test {
 protected:
  LeaseFileTest() {
    lease_.name = lease_.owner_node_name = "n1";
    lease_.resource_version = "42";
    lease_.holder_identity = "n1/s1";
    lease_.duration_seconds = 40;
    lease_.owner_node_uid = "uid-1";
    lease_.acquire_time = "2026-11-01T00:00:00.000000Z";
    lease_.renew_time = rfc3339_micro(clock_.now().wall - seconds{9});
  }
  std::optional<LeftLease> take() { return take_lease(scope_, clock_.now().wall); }
  std::string file() const { return tree_.path("lease.json").string(); }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  LeaseScope scope_{tree_.root().string(), "https://a:6443", "n1", "n1/s1"};
  kube::Lease lease_;
};

TEST_F(LeaseFileTest, ComesBackOnce) {
  EXPECT_EQ(take(), std::nullopt);
  ASSERT_TRUE(leave_lease(scope_, {lease_, "1234"}));
  EXPECT_EQ(std::filesystem::status(file()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(take(), (LeftLease{lease_, "1234"}));
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_EQ(take(), std::nullopt);
}

TEST_F(LeaseFileTest, IsOfNoUseToAnotherOrLater) {
  for (auto field :
       {&LeaseScope::api_server, &LeaseScope::node_name, &LeaseScope::holder_identity}) {
    ASSERT_TRUE(leave_lease(scope_, {lease_, "1234"}));
    LeaseScope other = scope_;
    other.*field = "another";
    EXPECT_EQ(take_lease(other, clock_.now().wall), std::nullopt);
  }
  for (const seconds away :
       {seconds{-10}, seconds{32}}) {  // a clock set back; longer than it lasts
    ASSERT_TRUE(leave_lease(scope_, {lease_, "1234"}));
    EXPECT_EQ(take_lease(scope_, clock_.now().wall + away), std::nullopt);
  }
  for (auto field : {&kube::Lease::resource_version, &kube::Lease::owner_node_uid}) {
    kube::Lease broken = lease_;
    (broken.*field).clear();
    ASSERT_TRUE(leave_lease(scope_, {broken, "1234"}));
    EXPECT_EQ(take(), std::nullopt);
  }
  ASSERT_TRUE(write_file_atomic(file(), "no JSON", 0600));
  EXPECT_EQ(take(), std::nullopt);
}

}  // namespace
}  // namespace slurmlet::daemon
