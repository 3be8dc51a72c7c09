#include "base/detached_task.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/unique_fd.h"
#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet {
namespace detached_task_test {

using std::chrono::minutes;
using std::chrono::seconds;

const SteadyTime kNow{std::chrono::hours{1}};

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

// Work that ends when the test says so.
class Held {
 public:
  std::function<int()> work(const std::string& file = "") const {
    return [released = released_, file] {
      if (!file.empty()) {
        touches_file(file);
      }
      released.wait();
      return 7;
    };
  }
  void release() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> released_{promise_.get_future()};
};

TEST(DetachedTaskTest, GivesTheResultOnce) {
  DetachedTask<std::string> call;
  EXPECT_FALSE(call.busy());
  EXPECT_EQ(call.wake_fd(), -1);
  ASSERT_TRUE(call.begin([] { return std::string{"here"}; }, kNow));
  EXPECT_EQ(call.take(minutes{1}), "here");
  EXPECT_EQ(call.take(), std::nullopt);
  EXPECT_FALSE(call.busy());
}

TEST(DetachedTaskTest, WakesItsOwner) {
  DetachedTask<int> call;
  ASSERT_TRUE(call.begin([] { return 7; }, kNow));
  ASSERT_TRUE(readable(call.wake_fd(), 60'000));
  EXPECT_EQ(call.take(), 7);
}

TEST(DetachedTaskTest, WorkThatHangsIsLateNamesItsFileAndKeepsAnotherFromBeginning) {
  Held held;
  DetachedTask<int> call;
  ASSERT_TRUE(call.begin(held.work("/shared/slurm.conf"), kNow, seconds{5}));
  EXPECT_EQ(call.take(std::chrono::milliseconds{1}), std::nullopt);
  EXPECT_FALSE(readable(call.wake_fd(), 0));
  EXPECT_FALSE(call.late(kNow + seconds{4}));
  EXPECT_EQ(call.late_at(kNow), kNow + seconds{5});
  EXPECT_TRUE(call.late(kNow + seconds{5}));
  EXPECT_EQ(call.late_at(kNow + seconds{5}), kNever) << "no turn without end";
  while (call.file() != "/shared/slurm.conf") {  // its thread has begun
    std::this_thread::yield();
  }
  EXPECT_EQ(call.problem(), "/shared/slurm.conf did not answer for 5 s");
  EXPECT_FALSE(call.begin([] { return 8; }, kNow));
  held.release();
  ASSERT_TRUE(readable(call.wake_fd(), 60'000));
  EXPECT_EQ(call.take(), 7) << "better late than never";
  EXPECT_TRUE(call.begin([] { return 8; }, kNow));
}

TEST(DetachedTaskTest, ItsOwnerMayGo) {
  const auto held = std::make_shared<Held>();
  const auto seen = std::make_shared<std::promise<void>>();
  {
    DetachedTask<int> call;
    ASSERT_TRUE(call.begin(
        [work = held->work(), seen] {
          const int result = work();
          seen->set_value();
          return result;
        },
        kNow));
  }
  held->release();
  seen->get_future().wait();
}

TEST(DetachedTaskTest, OnlySoManyHang) {
  fakes::let_detached_tasks_end();  // of the tests before
  Held held;
  std::array<DetachedTask<int>, 32> calls;
  for (auto& call : calls) {
    ASSERT_TRUE(call.begin(held.work(), kNow));
  }
  DetachedTask<int> more;
  EXPECT_FALSE(more.begin([] { return 1; }, kNow));
  EXPECT_FALSE(more.busy());
  EXPECT_FALSE(more.begin([] { return 1; }, kNow + seconds{4}));
  EXPECT_FALSE(more.late(kNow + seconds{4}));
  EXPECT_TRUE(more.late(kNow + seconds{5})) << "since the first time";
  EXPECT_EQ(more.problem(), "so many file operations hang that none could begin for 5 s");
  EXPECT_EQ(more.take(), std::nullopt);
  held.release();
  for (auto& call : calls) {
    EXPECT_EQ(call.take(minutes{1}), 7);
  }
}

TEST(DetachedTaskTest, InTimeGivesAResultOrNamesTheFileThatHangs) {
  DetachedTask<Result<int>> call;
  const auto value = [](int number) { return [number]() -> Result<int> { return number; }; };
  EXPECT_EQ(*in_time(call, value(6), minutes{1}), 6);
  Held held;
  const auto hangs = [work = held.work("/shared/jwt")]() -> Result<int> { return work(); };
  Result<int> late = in_time(call, hangs, std::chrono::milliseconds{1});
  while (!late && late.error().message != "/shared/jwt does not answer") {
    late = in_time(call, hangs, minutes{1});  // not waited for again
  }
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kTimeout);
  held.release();
  ASSERT_TRUE(readable(call.wake_fd(), 60'000));
  EXPECT_EQ(*in_time(call, value(8), minutes{1}), 7) << "what came late";
  EXPECT_EQ(*in_time(call, value(8), minutes{1}), 8);
}

// The real thing: to open a FIFO waits for its writer.
TEST(DetachedTaskTest, AFileThatHangsHoldsUpNobody) {
  fakes::TempTree tree;
  const std::string path = tree.path("fifo").string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  DetachedTask<int> call;
  ASSERT_TRUE(
      call.begin([path] { return UniqueFd{::open(path.c_str(), O_RDONLY)} ? 1 : 0; }, kNow));
  EXPECT_EQ(call.take(std::chrono::milliseconds{20}), std::nullopt);
  const UniqueFd writer{::open(path.c_str(), O_WRONLY)};
  EXPECT_EQ(call.take(minutes{1}), 1);
}

// A thread that hangs does not hold up the end of the process, whose exit code stays.
TEST(DetachedTaskDeathTest, TheProcessEndsAllTheSame) {
  EXPECT_EXIT(
      {
        DetachedTask<int> call;
        Held held;
        call.begin(held.work(), kNow);
        std::exit(end_of_process(3));
      },
      testing::ExitedWithCode(3), "");
}

// What reads files says which.
TEST(DetachedTaskTest, ReadingNamesTheFile) {
  Held held;
  DetachedTask<int> call;
  ASSERT_TRUE(call.begin(
      [work = held.work()] {
        (void)read_file("/nonexistent/a");
        (void)list_directory("/nonexistent/spool");
        return work();
      },
      kNow));
  while (call.file() != "/nonexistent/spool") {
    std::this_thread::yield();
  }
  held.release();
  EXPECT_EQ(call.take(minutes{1}), 7);
}

}  // namespace detached_task_test
}  // namespace slurmlet
