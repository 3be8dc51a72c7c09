#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "fakes/temp_tree.h"

namespace slurmlet {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names_in(const std::filesystem::path& path) {
  const auto names = list_directory(path);
  return names ? *names : std::vector<std::string>{"error: " + names.error().message};
}

TEST(ReadFileTest, GivesTheWholeContent) {
  fakes::TempTree tree;
  const std::string big(300000, 'x');
  tree.file("empty", "").file("text", "a\nb\n").file("big", big).file("zero", {"a\0b", 3});
  EXPECT_EQ(*read_file(tree.path("empty")), "");
  EXPECT_EQ(*read_file(tree.path("text")), "a\nb\n");
  EXPECT_EQ(*read_file(tree.path("big")), big);
  EXPECT_EQ(read_file(tree.path("zero"))->size(), 3U);
}

TEST(ReadFileTest, NamesTheMissingFile) {
  const auto content = read_file("/nonexistent/slurmlet/x");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kNotFound);
  EXPECT_THAT(content.error().message, HasSubstr("/nonexistent/slurmlet/x"));
}

TEST(ReadFileTest, AFileInThePlaceOfADirectoryIsNotFound) {
  fakes::TempTree tree;
  tree.file("a", "");
  const auto content = read_file(tree.path("a/b"));
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kNotFound);
}

TEST(ReadFileTest, ADirectoryIsInvalid) {
  fakes::TempTree tree;
  const auto content = read_file(tree.root());
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kInvalid);
  EXPECT_THAT(content.error().message, HasSubstr(tree.root().string()));
}

TEST(ReadFileTest, HoldsTheSizeLimit) {
  fakes::TempTree tree;
  tree.file("ten", "0123456789");
  EXPECT_TRUE(read_file(tree.path("ten"), 10));
  const auto content = read_file(tree.path("ten"), 9);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kInvalid);
  EXPECT_THAT(content.error().message, HasSubstr("9 bytes"));
}

TEST(ReadFileTest, ReadsProcWhereSizesAreZero) {
  const auto content = read_file("/proc/self/status");
  ASSERT_TRUE(content);
  EXPECT_THAT(*content, HasSubstr("Pid:\t" + std::to_string(::getpid())));
}

// None of them may keep us waiting, or never end.
TEST(ReadFileTest, OnlyRegularFilesAreRead) {
  fakes::TempTree tree;
  const std::string fifo = tree.path("fifo").string();
  const std::string socket = tree.path("socket").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  tree.symlink(fifo, "link").file("file", "a").symlink("file", "good");
  for (const std::string& path :
       {fifo, socket, tree.path("link").string(), std::string{"/dev/zero"}}) {
    const auto content = read_file(path);
    ASSERT_FALSE(content) << path;
    EXPECT_EQ(content.error().code, Code::kInvalid) << path;
    EXPECT_EQ(content.error().message, path + " is not a regular file");
  }
  EXPECT_EQ(*read_file(tree.path("good")), "a");
}

TEST(ListDirectoryTest, AFileInItsPlaceIsInvalid) {
  fakes::TempTree tree;
  tree.file("a", "");
  const auto names = list_directory(tree.path("a"));
  ASSERT_FALSE(names);
  EXPECT_EQ(names.error().code, Code::kInvalid);
  EXPECT_EQ(names.error().message, tree.path("a").string() + " is not a directory");
  EXPECT_EQ(list_directory(tree.path("a/b")).error().code, Code::kNotFound);
  EXPECT_EQ(list_directory(tree.path("none")).error().code, Code::kNotFound);
}

TEST(ReadTrimmedTest, GivesNothingForAMissingFile) {
  fakes::TempTree tree;
  tree.file("id", "  4f2a\n");
  EXPECT_EQ(read_trimmed(tree.path("id")), "4f2a");
  EXPECT_EQ(read_trimmed(tree.path("none")), "");
}

TEST(WriteFileTest, WritesContentAndMode) {
  fakes::TempTree tree;
  const std::string big(200000, 'y');
  ASSERT_TRUE(write_file_atomic(tree.path("secret"), big, 0600));
  EXPECT_EQ(tree.content("secret"), big);
  EXPECT_EQ(tree.mode("secret"), 0600U);
  ASSERT_TRUE(write_file_atomic(tree.path("public"), "x", 0644));
  EXPECT_EQ(tree.mode("public"), 0644U);
}

TEST(WriteFileTest, ReplacesAndLeavesNothingBehind) {
  fakes::TempTree tree;
  tree.file("a", "old, longer than the new one", 0644);
  ASSERT_TRUE(write_file_atomic(tree.path("a"), "new", 0600));
  EXPECT_EQ(tree.content("a"), "new");
  EXPECT_EQ(tree.mode("a"), 0600U);
  EXPECT_THAT(names_in(tree.root()), UnorderedElementsAre("a"));
}

TEST(WriteFileTest, MakesParentsThatOthersMayReadButNotWrite) {
  for (const mode_t mask : {0U, 077U}) {
    fakes::TempTree tree;
    const mode_t before = ::umask(mask);
    const Status written = write_file_atomic(tree.path("x/y/z"), "1", 0600);
    ::umask(before);
    ASSERT_TRUE(written);
    EXPECT_EQ(tree.content("x/y/z"), "1");
    EXPECT_EQ(tree.mode("x"), 0755U);
    EXPECT_EQ(tree.mode("x/y"), 0755U);
  }
}

TEST(WriteFileTest, WritesIntoTheCurrentDirectory) {
  fakes::TempTree tree;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(tree.root());
  const Status written = write_file_atomic("plain", "1", 0600);
  std::filesystem::current_path(before);
  ASSERT_TRUE(written);
  EXPECT_EQ(tree.content("plain"), "1");
}

// The rename fails because the target is a directory that is not empty.
TEST(WriteFileTest, AFailureKeepsTheOldAndRemovesTheTemporaryFile) {
  fakes::TempTree tree;
  tree.file("target/kept", "old");
  const Status written = write_file_atomic(tree.path("target"), "new", 0600);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr(tree.path("target").string()));
  EXPECT_EQ(tree.content("target/kept"), "old");
  EXPECT_THAT(names_in(tree.root()), UnorderedElementsAre("target"));
}

// A write that fails half way, as on a full disk: the file size limit stands in for it.
TEST(WriteFileTest, AFullDiskKeepsTheOld) {
  fakes::TempTree tree;
  tree.file("a", "old");
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small {
    4096, before.rlim_max
  };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write_file_atomic(tree.path("a"), std::string(10000, 'n'), 0600);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("write " + tree.path("a").string()));
  EXPECT_EQ(tree.content("a"), "old");
  EXPECT_THAT(names_in(tree.root()), UnorderedElementsAre("a"));
}

TEST(WriteFileTest, NamesTheDirectoryThatCannotBeMade) {
  const Status written = write_file_atomic("/proc/slurmlet/none", "new", 0600);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("/proc/slurmlet/none"));
}

TEST(ListDirectoryTest, NamesWithoutDots) {
  fakes::TempTree tree;
  tree.file("a", "").file(".hidden", "").dir("sub");
  EXPECT_THAT(names_in(tree.root()), UnorderedElementsAre("a", ".hidden", "sub"));
  EXPECT_THAT(names_in(tree.path("sub")), UnorderedElementsAre());
}

TEST(ErrnoErrorTest, Codes) {
  struct Row {
    int number;
    Code code;
  };
  const Row kRows[] = {
      {ENOENT, Code::kNotFound}, {ENOTDIR, Code::kNotFound},  {EACCES, Code::kDenied},
      {EPERM, Code::kDenied},    {ETIMEDOUT, Code::kTimeout}, {EISDIR, Code::kInvalid},
      {EIO, Code::kInternal},    {ENOSPC, Code::kInternal},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(errno_error(row.number, "x").code, row.code) << row.number;
  }
  EXPECT_EQ(errno_error(ENOENT, "open /x").message, "open /x: No such file or directory");
}

}  // namespace
}  // namespace slurmlet
