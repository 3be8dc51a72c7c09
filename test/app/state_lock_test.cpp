#include "app/state_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fakes/temp_tree.h"

namespace slurmlet::app {
namespace {

using ::testing::HasSubstr;

TEST(StateLockTest, IsHeldOnceAndFreedWithTheDescriptor) {
  const fakes::TempTree tree;
  auto first = lock_state_directory(tree.path("state"));
  ASSERT_TRUE(first);
  EXPECT_TRUE(*first);
  const auto second = lock_state_directory(tree.path("state"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr(tree.path("state").string()));
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(::getpid())));
  first->reset();
  const auto third = lock_state_directory(tree.path("state"));
  ASSERT_TRUE(third);
  EXPECT_TRUE(*third);
}

TEST(StateLockTest, WithoutAPlaceForItTheDaemonWorks) {
  const auto none = lock_state_directory("/proc/self/nowhere");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

}  // namespace
}  // namespace slurmlet::app
