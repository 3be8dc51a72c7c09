#include "base/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "fakes/fake_clock.h"
#include "fakes/hanging_file.h"

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
  // What came too late comes with the next look.
  void until_token(TokenFile& file, const std::string& token) {
    while (file.token() != token) {
      clock_.advance(TokenFile::kCheckInterval);
    }
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

TEST_F(TokenFileTest, BytesThatNobodySees) {
  write("\xEF\xBB\xBFone\r\n");
  TokenFile file(folder_ / "token", clock_);
  EXPECT_EQ(file.token(), "one");
  const std::pair<std::string, const char*> kRows[] = {
      {std::string("\xFF\xFEt\0w\0o\0", 8), "UTF-16; save it as UTF-8"},
      {std::string("t\0w\0o\0", 6), "UTF-16; save it as UTF-8"},
      {"two\u200b", "not ASCII"}};
  for (const auto& [content, words] : kRows) {
    write(content);
    const Status read = file.reload();
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr((folder_ / "token").string()));
    EXPECT_THAT(read.error().message, HasSubstr(words));
    EXPECT_EQ(file.held(), "one");
  }
}

TEST_F(TokenFileTest, AFileThatHangsLeavesTheLastTokenInUseUntilItAnswers) {
  write("one");
  TokenFile file(folder_ / "token", clock_);
  EXPECT_EQ(file.token(), "one");
  write("two");
  fakes::HangingFile hanging{folder_ / "token"};
  for (int look = 0; look < 3; ++look) {
    clock_.advance(TokenFile::kCheckInterval);
    EXPECT_EQ(file.token(), "one");
    ASSERT_TRUE(file.last_error());
    EXPECT_EQ(file.last_error()->code, Code::kTimeout);
    hanging.wait();
  }
  EXPECT_EQ(file.last_error()->message,
            "token file: " + (folder_ / "token").string() + " does not answer");
  hanging.answer();
  until_token(file, "two");
  EXPECT_FALSE(file.last_error());
}

// The thread that renews the lease must not wait for a file system that hangs.
TEST_F(TokenFileTest, WhatIsHeldIsGivenWhileALookAtTheFileHangs) {
  TokenFile file(folder_ / "token", clock_);
  for (const std::string token : {"one", "two"}) {
    const std::string before = token == "one" ? "" : "one";
    write(token);
    clock_.advance(TokenFile::kCheckInterval);
    fakes::HangingFile hanging{folder_ / "token"};
    std::thread look([&] { (void)file.token(); });
    hanging.wait();
    EXPECT_EQ(file.held(), before);
    hanging.answer();
    look.join();
    until_token(file, token);
  }
}

TEST_F(TokenFileTest, AReloadTakesWhatIsThereNow) {
  write("one");
  TokenFile file(folder_ / "token", clock_);
  EXPECT_EQ(file.token(), "one");
  write("two");
  ASSERT_TRUE(file.reload());
  EXPECT_EQ(file.held(), "two");
  write("");
  EXPECT_FALSE(file.reload());
  EXPECT_EQ(file.held(), "two");
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
