#include "base/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <semaphore>
#include <thread>

#include "fakes/fake_clock.h"

namespace slurmlet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest() {
    std::string name = (fs::temp_directory_path() / "token-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~TokenFileTest() override { fs::remove_all(folder_); }
  // As a rotation does it: a new file takes the name of the old one.
  void write(const std::string& content) const {
    std::ofstream(folder_ / "new") << content;
    fs::rename(folder_ / "new", folder_ / "token");
  }
  fs::path folder_;
  fakes::FakeClock clock_;
};

TEST_F(TokenFileTest, TakesARotatedTokenAtTheNextLook) {
  write("one\n");
  TokenFile file(folder_ / "token", clock_);
  EXPECT_EQ(file.token(), "one");
  write("two\n");
  clock_.advance(TokenFile::kCheckInterval - std::chrono::seconds{1});
  EXPECT_EQ(file.token(), "one") << "looked sooner than promised";
  clock_.advance(std::chrono::seconds{1});
  EXPECT_EQ(file.token(), "two");
  EXPECT_FALSE(file.last_error());
}

// Holds up whoever asks for the time.
class HeldUpClock final : public Clock {
 public:
  Now now() const override {
    asked.release();
    go_on.acquire();
    return {};
  }
  mutable std::binary_semaphore asked{0};
  mutable std::binary_semaphore go_on{0};
};

TEST_F(TokenFileTest, AFileThatHangsLeavesTheLastTokenInUseUntilItAnswers) {
  write("one");
  std::promise<void> release;
  const auto hangs = std::make_shared<std::atomic<bool>>(false);
  const auto at_it = std::make_shared<std::binary_semaphore>(0);
  TokenFile file(folder_ / "token", clock_,
                 [hangs, at_it, released = release.get_future().share()](const auto& path,
                                                                         const auto& before) {
                   touches_file(path.string());
                   if (*hangs) {
                     at_it->release();
                     released.wait();
                   }
                   return TokenFile::read(path, before);
                 });
  const auto patience = std::chrono::minutes{1};
  EXPECT_EQ(file.token(patience), "one");
  *hangs = true;
  write("two");
  for (int look = 0; look < 3; ++look) {
    clock_.advance(TokenFile::kCheckInterval);
    EXPECT_EQ(file.token(std::chrono::milliseconds{1}), "one");
    ASSERT_TRUE(file.last_error());
    EXPECT_EQ(file.last_error()->code, Code::kTimeout);
    if (look == 0) {
      at_it->acquire();
    }
  }
  EXPECT_THAT(file.last_error()->message, HasSubstr((folder_ / "token").string()));
  *hangs = false;
  release.set_value();
  while (file.token(patience) != "two") {
    clock_.advance(TokenFile::kCheckInterval);
  }
  EXPECT_FALSE(file.last_error());
}

// The thread that renews the lease must not wait for a file system that hangs.
TEST_F(TokenFileTest, WhatIsHeldIsGivenWhileALookAtTheFileHangs) {
  HeldUpClock clock;
  TokenFile file(folder_ / "token", clock);
  for (const std::string token : {"one", "two"}) {
    const std::string before = token == "one" ? "" : "one";
    write(token);
    file.look_again();
    std::thread look([&] { (void)file.token(); });
    clock.asked.acquire();
    EXPECT_EQ(file.held(), before);
    clock.go_on.release();
    look.join();
    EXPECT_EQ(file.held(), token);
  }
}

TEST_F(TokenFileTest, APipeInItsPlaceIsAnErrorAndNotAHang) {
  write("one");
  TokenFile file(folder_ / "token", clock_);
  EXPECT_EQ(file.token(), "one");
  fs::remove(folder_ / "token");
  ASSERT_EQ(::mkfifo((folder_ / "token").c_str(), 0600), 0);
  clock_.advance(TokenFile::kCheckInterval);
  EXPECT_EQ(file.token(), "one");
  ASSERT_TRUE(file.last_error());
  EXPECT_EQ(file.last_error()->code, Code::kInvalid);
  EXPECT_THAT(file.last_error()->message,
              HasSubstr((folder_ / "token").string() + " is not a regular file"));
}

TEST_F(TokenFileTest, KeepsTheLastTokenWhenTheFileGoes) {
  write("one");
  TokenFile file(folder_ / "token", clock_);
  EXPECT_EQ(file.token(), "one");
  fs::remove(folder_ / "token");
  clock_.advance(TokenFile::kCheckInterval);
  EXPECT_EQ(file.token(), "one");
  ASSERT_TRUE(file.last_error());
  EXPECT_EQ(file.last_error()->code, Code::kNotFound);
  write("two");
  clock_.advance(TokenFile::kCheckInterval);
  EXPECT_EQ(file.token(), "two");
  EXPECT_FALSE(file.last_error());
}

TEST_F(TokenFileTest, RefusesWhatCannotStandInAHeader) {
  for (const std::string content :
       {"", " \n", "s3cret\r\nInjected: x", "s3cret two", "s3cret\x01"}) {
    write(content);
    TokenFile file(folder_ / "token", clock_);
    EXPECT_EQ(file.token(), "");
    ASSERT_TRUE(file.last_error());
    EXPECT_EQ(file.last_error()->code, Code::kInvalid);
    EXPECT_THAT(file.last_error()->message, HasSubstr((folder_ / "token").string()));
    EXPECT_THAT(file.last_error()->message, Not(HasSubstr("s3cret")));
  }
}

}  // namespace
}  // namespace slurmlet
