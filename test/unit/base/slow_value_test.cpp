#include "base/slow_value.h"

#include <gtest/gtest.h>

#include <thread>

#include "fakes/hanging_file.h"

namespace slurmlet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class SlowValueTest : public testing::Test {
 protected:
  // Each reading counts; it touches the file that may hang.
  std::optional<int> poll(Duration patience = minutes{1}) {
    return value_.poll(
        now_, [this] { return work(); }, patience);
  }
  std::function<int()> work() {
    return [number = ++begun_] {
      touches_file("/shared/file");
      return number;
    };
  }
  std::optional<int> poll_until_there() {
    auto value = poll();
    for (; !value; value = poll()) {
      std::this_thread::yield();
    }
    return value;
  }

  SteadyTime now_{minutes{7}};
  SlowValue<int> value_{seconds{5}};
  int begun_ = 0;
};

TEST_F(SlowValueTest, IsReadWhereItIsRequestedOnce) {
  EXPECT_EQ(poll(), std::nullopt);
  EXPECT_EQ(begun_, 0);
  value_.request();
  EXPECT_EQ(value_.wake_at(now_), now_);
  EXPECT_EQ(poll(), 1);
  EXPECT_EQ(poll(), std::nullopt);
  EXPECT_EQ(value_.wake_at(now_), kNever);
}

TEST_F(SlowValueTest, IsLateUntilTheNextValueAndIsNotReadTwiceAtOnce) {
  fakes::HangingFile hanging{"/shared/file"};
  value_.request();
  EXPECT_EQ(poll(Duration::zero()), std::nullopt);
  hanging.wait();
  EXPECT_EQ(value_.wake_at(now_), now_ + seconds{5});
  now_ += seconds{4};
  value_.request();
  EXPECT_EQ(poll(), std::nullopt);
  EXPECT_FALSE(value_.is_late());
  now_ += seconds{1};
  EXPECT_EQ(poll(), std::nullopt);
  EXPECT_TRUE(value_.is_late());
  EXPECT_EQ(value_.problem(), "/shared/file did not answer for 5 s");
  EXPECT_EQ(begun_, 1);

  hanging.answer();
  EXPECT_EQ(poll_until_there(), 1);
  EXPECT_FALSE(value_.is_late());
  EXPECT_EQ(value_.wake_at(now_), now_) << "requested after the reading began";
  EXPECT_EQ(poll_until_there(), 2);
}

TEST_F(SlowValueTest, AnAbandonedReadingBringsNothing) {
  fakes::HangingFile hanging{"/shared/file"};
  value_.request();
  EXPECT_EQ(poll(Duration::zero()), std::nullopt);
  hanging.wait();
  value_.abandon();
  hanging.answer();
  value_.request();
  EXPECT_EQ(poll_until_there(), 2);
}

}  // namespace
}  // namespace slurmlet
