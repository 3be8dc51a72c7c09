#include "daemon/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/file.h"
#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using ::testing::HasSubstr;

class StateSaverTest : public ::testing::Test {
 protected:
  void save(const std::string& content) {
    saver_.save("thing not saved",
                [file = file_, content] { return write_file_atomic(file, content, 0600); });
  }
  // What `body` logs.
  template <typename Body>
  static std::string logged(Body body) {
    ::testing::internal::CaptureStderr();
    body();
    return ::testing::internal::GetCapturedStderr();
  }

  fakes::TempTree tree_;
  const std::string file_ = tree_.path("thing").string();
  StateSaver saver_;
};

TEST_F(StateSaverTest, WritesAtOnceAndSaysAnErrorOnce) {
  EXPECT_EQ(logged([this] { save("one"); }), "");
  EXPECT_EQ(tree_.content("thing"), "one");
  EXPECT_THAT(
      logged([this] {
        saver_.save("thing not saved", [] { return Status{Error{Code::kInternal, "full"}}; });
      }),
      HasSubstr("thing not saved: full"));
  EXPECT_EQ(logged([this] { saver_.step(); }), "");
}

TEST_F(StateSaverTest, ADirectoryThatHangsHoldsUpNobodyAndGetsTheNewest) {
  fakes::HangingFile hang{file_};
  EXPECT_THAT(logged([this] { save("one"); }),
              HasSubstr("thing not saved yet: " + file_ + " does not answer"));
  save("two");
  EXPECT_EQ(logged([this] { saver_.step(); }), "") << "told once";
  EXPECT_EQ(tree_.content("thing"), "");
  hang.answer();
  // The write that hung may still be under way.
  for (int tries = 0; tree_.content("thing") != "two" && tries < 10000; ++tries) {
    saver_.step();
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_EQ(tree_.content("thing"), "two");
}

TEST_F(StateSaverTest, AnErrorThatComesLateIsTold) {
  fakes::HangingFile hang{file_};
  logged([this] {
    saver_.save("thing not saved", [file = file_] {
      touches_file(file);
      return Status{Error{Code::kInternal, "full"}};
    });
  });
  hang.answer();
  std::string said;
  for (int tries = 0; said.empty() && tries < 10000; ++tries) {
    said = logged([this] { saver_.step(); });
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  EXPECT_THAT(said, HasSubstr("thing not saved: full"));
}

}  // namespace
}  // namespace slurmlet::daemon
