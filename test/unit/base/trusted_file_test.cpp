#include "base/trusted_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fakes/temp_tree.h"

namespace slurmlet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kStranger = 54321;
constexpr uid_t kSlurm = 54322;

class TrustedFile : public ::testing::Test {
 protected:
  TrustedFile() {
    tree_.file("etc/slurm.conf", "ClusterName=alps\n");
    users_.uids.push_back(kSlurm);
    users_.gids.push_back(kSlurm);
  }
  Result<std::string> read(const std::string& relative = "etc/slurm.conf") const {
    return read_trusted_file(tree_.path(relative), users_);
  }
  void mode(const std::string& relative, mode_t mode) {
    ASSERT_EQ(::chmod(tree_.path(relative).c_str(), mode), 0);
  }
  void own(const std::string& relative, uid_t uid, gid_t gid) {
    ASSERT_EQ(::lchown(tree_.path(relative).c_str(), uid, gid), 0);
  }
  void expect_rejected(const std::string& words, const std::string& relative = "etc/slurm.conf") {
    const auto content = read(relative);
    ASSERT_FALSE(content) << words;
    EXPECT_EQ(content.error().code, Code::kInvalid);
    EXPECT_THAT(content.error().message, AllOf(HasSubstr(words), HasSubstr(tree_.path(relative))));
  }

  fakes::TempTree tree_;
  TrustedUsers users_;
};

TEST_F(TrustedFile, IsReadBelowAStickyDirectory) {
  ASSERT_TRUE(read());
  EXPECT_EQ(*read(), "ClusterName=alps\n");
  EXPECT_EQ(read("etc/none").error().code, Code::kNotFound);
  EXPECT_EQ(read("etc/slurm.conf/x").error().code, Code::kNotFound);
}

TEST_F(TrustedFile, AComponentThatOthersMayWriteToIsNamed) {
  mode("etc/slurm.conf", 0646);
  expect_rejected("mode 0646; chmod o-w " + tree_.path("etc/slurm.conf").string());
  mode("etc/slurm.conf", 0644);
  mode("etc", 0757);
  expect_rejected(tree_.path("etc").string() + " has owner");
  mode("etc", 01777);
  EXPECT_TRUE(read()) << "sticky";
  expect_rejected("every user may create it", "etc/none");
}

TEST_F(TrustedFile, LinksAreFollowedAndTheirTargetsLookedAt) {
  tree_.symlink(tree_.path("etc"), "conf").symlink("../etc/slurm.conf", "run/slurm.conf");
  EXPECT_TRUE(read("conf/slurm.conf"));
  EXPECT_TRUE(read("run/slurm.conf"));
  tree_.symlink("a", "b").symlink("b", "a");
  EXPECT_FALSE(read("a"));
  mode("etc", 0757);
  expect_rejected(tree_.path("etc").string() + " has owner", "conf/slurm.conf");
}

TEST_F(TrustedFile, WhatIsNoRegularFileIsNotOpened) {
  ASSERT_EQ(::mkfifo(tree_.path("etc/fifo").c_str(), 0644), 0);
  expect_rejected("is not a regular file", "etc/fifo");
  expect_rejected("is not a regular file", "etc");
}

TEST_F(TrustedFile, ARelativePathIsRejected) {
  EXPECT_EQ(read_trusted_file("slurm.conf", users_).error().code, Code::kInvalid);
}

class TrustedOwner : public TrustedFile {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root gives files away";
    }
  }
};

TEST_F(TrustedOwner, AnotherUsersComponentIsNamed) {
  own("etc/slurm.conf", kStranger, 0);
  expect_rejected("owner 54321, group 0, mode 0644; chown -h root " +
                  tree_.path("etc/slurm.conf").string());
  own("etc/slurm.conf", kSlurm, kSlurm);
  EXPECT_TRUE(read());
  own("etc", kStranger, 0);
  expect_rejected(tree_.path("etc").string() + " has owner 54321");
  mode("etc", 01777);
  expect_rejected(tree_.path("etc").string() + " has owner 54321");
}

TEST_F(TrustedOwner, AnotherUsersLinkIsRejected) {
  tree_.symlink(tree_.path("etc/slurm.conf"), "link");
  EXPECT_TRUE(read("link"));
  own("link", kStranger, 0);
  expect_rejected(tree_.path("link").string() + " has owner 54321", "link");
}

TEST_F(TrustedOwner, AGroupMayWriteOnlyWhereItIsTrusted) {
  mode("etc/slurm.conf", 0664);
  EXPECT_TRUE(read()) << "root's";
  own("etc/slurm.conf", 0, kSlurm);
  mode("etc/slurm.conf", 0664);
  EXPECT_TRUE(read());
  own("etc/slurm.conf", 0, kStranger);
  mode("etc/slurm.conf", 0664);
  expect_rejected("group 54321, mode 0664; chmod g-w");
}

}  // namespace
}  // namespace slurmlet
