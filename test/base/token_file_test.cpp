#include "base/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
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

// The thread that renews the lease must not wait for a file system that hangs.
TEST_F(TokenFileTest, WhatIsHeldIsGivenWithoutALookAtTheFile) {
  const fs::path pipe = folder_ / "token";
  write("one");
  TokenFile file(pipe, clock_);
  EXPECT_EQ(file.held(), "");
  EXPECT_EQ(file.token(), "one");
  write("two");
  clock_.advance(std::chrono::hours{1});
  EXPECT_EQ(file.held(), "one");
  // A look that hangs: nothing is written to the pipe until the end.
  fs::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread looks([&] { (void)file.token(); });
  int writer = -1;
  while ((writer = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) < 0) {
    std::this_thread::yield();  // until it has the pipe open
  }
  EXPECT_EQ(file.held(), "one");
  EXPECT_EQ(::write(writer, "three", 5), 5);
  ::close(writer);
  looks.join();
  EXPECT_EQ(file.held(), "three");
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
