// published.h, wakeup.h and unique_fd.h.

#include "base/published.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "base/wakeup.h"

namespace slurmlet {
namespace published_test {

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST(PublishedTest, IsEmptyAtFirstAndThenTheNewest) {
  Published<std::string> box;
  EXPECT_EQ(box.get(), nullptr);
  box.set("a");
  const auto old = box.get();
  box.set("b");
  EXPECT_EQ(*box.get(), "b");
  EXPECT_EQ(*old, "a");  // a reader keeps what it took
}

TEST(PublishedTest, ReadersNeverSeeAHalfValue) {
  Published<std::pair<int, int>> box;
  box.set({0, 0});
  std::thread writer{[&] {
    for (int i = 1; i <= 20000; ++i) {
      box.set({i, i});
    }
  }};
  int last = 0;
  while (last < 20000) {
    const auto value = box.get();
    ASSERT_EQ(value->first, value->second);
    ASSERT_GE(value->first, last);
    last = value->first;
  }
  writer.join();
}

TEST(WakeupTest, StaysReadableUntilCleared) {
  const Wakeup wakeup;
  EXPECT_FALSE(readable(wakeup.fd()));
  wakeup.notify();
  wakeup.notify();
  EXPECT_TRUE(readable(wakeup.fd()));
  wakeup.clear();
  EXPECT_FALSE(readable(wakeup.fd()));
  wakeup.clear();  // nothing there: does not block
}

TEST(UniqueFdTest, ClosesOnceAndMoves) {
  const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(number, 0);
  {
    UniqueFd first{number};
    UniqueFd second{std::move(first)};
    EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(second.get(), number);
    second = std::move(*&second);  // to itself
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFdTest, ReleaseLeavesItOpen) {
  const int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(number, 0);
  { EXPECT_EQ(UniqueFd{number}.release(), number); }
  EXPECT_TRUE(is_open(number));
  UniqueFd{number}.reset();
  EXPECT_FALSE(is_open(number));
}

}  // namespace published_test
}  // namespace slurmlet
