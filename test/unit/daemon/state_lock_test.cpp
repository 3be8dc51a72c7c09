#include "daemon/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fakes/child_process.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using ::testing::HasSubstr;

// Another daemon: holds the lock until it is killed. It has a child of its own that has all its
// descriptors, as one between fork and exec, and outlives it.
class OtherDaemon : public fakes::ChildProcess {
 public:
  explicit OtherDaemon(const std::filesystem::path& directory) {
    int told[2];
    EXPECT_EQ(::pipe(told), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto lock = lock_state_directory(directory);
      const pid_t child = lock && *lock ? ::fork() : -1;
      if (child != 0) {
        (void)!::write(told[1], &child, sizeof child);
      }
      while (true) {
        ::pause();
      }
    }
    EXPECT_EQ(::read(told[0], &child_, sizeof child_), ssize_t{sizeof child_});
    ::close(told[0]);
    ::close(told[1]);
  }
  ~OtherDaemon() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
    }
  }

  bool holds() const { return child_ > 0; }

 private:
  pid_t child_ = -1;
};

TEST(StateLockTest, IsHeldByOneProcessAndFreedWhenItIsKilled) {
  const fakes::TempTree tree;
  OtherDaemon other{tree.path("state")};
  ASSERT_TRUE(other.holds());
  const auto refused = lock_state_directory(tree.path("state"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr(tree.path("state").string()));
  EXPECT_THAT(refused.error().message, HasSubstr("process " + std::to_string(other.pid())));
  other.kill();
  const auto lock = lock_state_directory(tree.path("state"));
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(*lock);
}

TEST(StateLockTest, IsFreedWithTheDescriptor) {
  const fakes::TempTree tree;
  auto lock = lock_state_directory(tree.path("state"));
  ASSERT_TRUE(lock);
  EXPECT_TRUE(*lock);
  EXPECT_FALSE(OtherDaemon{tree.path("state")}.holds());
  lock->reset();
  EXPECT_TRUE(OtherDaemon{tree.path("state")}.holds());
}

TEST(StateLockTest, WithoutAPlaceForItTheDaemonWorks) {
  const auto none = lock_state_directory("/proc/self/nowhere");
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

}  // namespace
}  // namespace slurmlet::daemon
