#include "base/file_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet {
namespace file_watch_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

bool readable(const FileWatch& watch, int milliseconds) {
  pollfd entry{watch.fd(), POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) == 1;
}

// What changed() names once the kernel has told of something; "silent" if it never does.
std::vector<fs::path> told(FileWatch& watch) {
  if (!readable(watch, 10'000)) {
    return {"silent"};
  }
  return watch.changed();
}

// Nothing more is told of.
::testing::AssertionResult quiet(FileWatch& watch) {
  if (readable(watch, 0)) {
    return ::testing::AssertionFailure() << "the descriptor is readable";
  }
  if (const auto changed = watch.changed(); !changed.empty()) {
    return ::testing::AssertionFailure() << changed.front() << " changed";
  }
  if (readable(watch, 0)) {
    return ::testing::AssertionFailure() << "looking makes events";
  }
  return ::testing::AssertionSuccess();
}

// The link leads to `target` from now on, at one stroke, as `ln -sfn` and the kubelet do it.
void swap_link(const fakes::TempTree& tree, const fs::path& target, const char* link) {
  const fs::path temporary = tree.path(std::string{link} + ".tmp");
  fs::create_symlink(target, temporary);
  fs::rename(temporary, tree.path(link));
}

TEST(FileWatchTest, NoFilesAtAll) {
  FileWatch watch{{}};
  EXPECT_TRUE(quiet(watch));
}

// A log beside the watched file must not wake the daemon with each of its lines.
TEST(FileWatchTest, AnotherFileThatGrowsIsNoEvent) {
  fakes::TempTree tree;
  tree.file("kubeconfig", "1").file("audit.log", "");
  std::ofstream log{tree.path("audit.log"), std::ios::app};
  FileWatch watch{{tree.path("kubeconfig")}};
  log << "line" << std::endl;
  EXPECT_TRUE(quiet(watch));
}

// Two writes within one tick of the file system's clock leave the same size and time behind.
TEST(FileWatchTest, WrittenInPlaceWithTheSameSizeAndTime) {
  fakes::TempTree tree;
  tree.file("tls.crt", "1");
  FileWatch watch{{tree.path("tls.crt")}};
  const auto time = fs::last_write_time(tree.path("tls.crt"));
  tree.file("tls.crt", "2");
  fs::last_write_time(tree.path("tls.crt"), time);
  EXPECT_THAT(told(watch), ElementsAre(tree.path("tls.crt")));
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, RenamedOver) {
  fakes::TempTree tree;
  tree.file("tls.crt", "1").file("new", "2");
  FileWatch watch{{tree.path("tls.crt")}};
  for (int i = 0; i < 3; ++i) {
    tree.file("new", "2");
    EXPECT_THAT(told(watch), IsEmpty());
    fs::rename(tree.path("new"), tree.path("tls.crt"));
    EXPECT_THAT(told(watch), ElementsAre(tree.path("tls.crt")));
  }
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, LinkOfTheFileSwapped) {
  fakes::TempTree tree;
  tree.file("old/ca", "1").file("new/ca", "1").symlink("old/ca", "ca");
  FileWatch watch{{tree.path("ca")}};
  swap_link(tree, "new/ca", "ca");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  EXPECT_TRUE(quiet(watch));
  // The new target is watched, the old one no longer.
  tree.file("new/ca", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  tree.file("old/ca", "2");
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, LinkOfADirectorySwapped) {
  fakes::TempTree tree;
  tree.file("a/v1/pki/ca", "1").file("a/v2/pki/ca", "1").symlink("v1", "a/now");
  FileWatch watch{{tree.path("a/now/pki/ca")}};
  swap_link(tree, "v2", "a/now");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a/now/pki/ca")));
  EXPECT_TRUE(quiet(watch));
  tree.file("a/v2/pki/ca", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a/now/pki/ca")));
}

TEST(FileWatchTest, AbsoluteLinksAndDotDot) {
  fakes::TempTree tree;
  tree.file("store/1/ca", "1").file("store/2/ca", "1").dir("etc");
  tree.symlink(tree.path("store/1"), "current").symlink("../etc/../current/ca", "etc/ca");
  FileWatch watch{{tree.path("etc/ca")}};
  swap_link(tree, tree.path("store/2"), "current");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("etc/ca")));
  tree.file("store/2/ca", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("etc/ca")));
}

// A projected volume: FILE -> ..data/FILE, ..data -> ..2026_11_20; an update makes a new directory,
// swaps ..data and removes the old one.
TEST(FileWatchTest, ProjectedVolume) {
  fakes::TempTree tree;
  tree.file("v/..1/tls.crt", "1").file("v/..1/tls.key", "1").symlink("..1", "v/..data");
  tree.symlink("..data/tls.crt", "v/tls.crt").symlink("..data/tls.key", "v/tls.key");
  FileWatch watch{{tree.path("v/tls.crt"), tree.path("v/tls.key")}};
  for (const std::string number : {"2", "3"}) {
    const std::string fresh = "v/.." + number;
    tree.file(fresh + "/tls.crt", number).file(fresh + "/tls.key", number);
    swap_link(tree, ".." + number, "v/..data");
    tree.remove(number == "2" ? "v/..1" : "v/..2");
    EXPECT_THAT(told(watch), UnorderedElementsAre(tree.path("v/tls.crt"), tree.path("v/tls.key")));
    EXPECT_TRUE(quiet(watch));
  }
}

TEST(FileWatchTest, DirectoryReplacedByRename) {
  fakes::TempTree tree;
  tree.file("pki/sub/ca", "1").file("other/sub/ca", "1");
  FileWatch watch{{tree.path("pki/sub/ca")}};
  fs::rename(tree.path("pki"), tree.path("gone"));
  EXPECT_THAT(told(watch), ElementsAre(tree.path("pki/sub/ca")));
  EXPECT_TRUE(quiet(watch));
  fs::rename(tree.path("other"), tree.path("pki"));
  EXPECT_THAT(told(watch), ElementsAre(tree.path("pki/sub/ca")));
  EXPECT_TRUE(quiet(watch));
  // Both at once, between two looks.
  fs::rename(tree.path("pki"), tree.path("other"));
  fs::rename(tree.path("gone"), tree.path("pki"));
  EXPECT_THAT(told(watch), ElementsAre(tree.path("pki/sub/ca")));
  EXPECT_TRUE(quiet(watch));
  tree.file("pki/sub/ca", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("pki/sub/ca")));
}

TEST(FileWatchTest, RemovedAndPutBack) {
  fakes::TempTree tree;
  tree.file("ca", "1");
  FileWatch watch{{tree.path("ca")}};
  tree.remove("ca");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  EXPECT_TRUE(quiet(watch));
  tree.file("ca", "1");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, NeitherFileNorDirectoryYet) {
  fakes::TempTree tree;
  FileWatch watch{{tree.path("a/b/ca")}};
  EXPECT_TRUE(quiet(watch));
  tree.dir("a");
  EXPECT_THAT(told(watch), IsEmpty());
  tree.dir("a/b");
  EXPECT_THAT(told(watch), IsEmpty());
  tree.file("a/b/ca", "1");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a/b/ca")));
  EXPECT_TRUE(quiet(watch));
  // What had to be watched while they were missing is not any more.
  tree.file("unrelated", "").file("a/unrelated", "");
  EXPECT_TRUE(quiet(watch));
  tree.remove("a");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a/b/ca")));
  tree.file("a/b/ca", "1");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a/b/ca")));
}

TEST(FileWatchTest, AFileInThePlaceOfItsDirectory) {
  fakes::TempTree tree;
  tree.file("a", "not a directory");
  FileWatch watch{{tree.path("a/ca")}};
  EXPECT_TRUE(quiet(watch));
  tree.remove("a").file("a/ca", "1");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a/ca")));
}

TEST(FileWatchTest, NamesTheOneOfTwoInADirectory) {
  fakes::TempTree tree;
  tree.file("tls.crt", "1").file("tls.key", "1");
  FileWatch watch{{tree.path("tls.crt"), tree.path("tls.key"), tree.path("tls.key")}};
  tree.file("tls.key", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("tls.key")));
  tree.file("tls.crt", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("tls.crt")));
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, RelativePathsAreNamedAsGiven) {
  fakes::TempTree tree;
  tree.file("pki/ca", "1");
  const auto before = fs::current_path();
  fs::current_path(tree.root());
  FileWatch watch{{"pki/ca", "./none"}};
  tree.file("pki/ca", "2");
  const auto first = told(watch);
  tree.file("none", "1");
  const auto second = told(watch);
  fs::current_path(before);
  EXPECT_THAT(first, ElementsAre(fs::path{"pki/ca"}));
  EXPECT_THAT(second, ElementsAre(fs::path{"./none"}));
}

TEST(FileWatchTest, LinksInALoopUntilSomebodyCutsIt) {
  fakes::TempTree tree;
  tree.symlink("b", "a").symlink("a", "b");
  FileWatch watch{{tree.path("a")}};
  EXPECT_TRUE(quiet(watch));
  tree.file("c", "1");
  swap_link(tree, "c", "b");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("a")));
}

TEST(FileWatchTest, ALinkToNowhereIsWaitedFor) {
  fakes::TempTree tree;
  tree.dir("etc").symlink("../run/ca", "etc/ca");
  FileWatch watch{{tree.path("etc/ca")}};
  tree.dir("run");
  EXPECT_THAT(told(watch), IsEmpty());
  tree.file("run/ca", "1");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("etc/ca")));
}

TEST(FileWatchTest, ManyEventsWithoutAChange) {
  fakes::TempTree tree;
  tree.file("ca", "1");
  FileWatch watch{{tree.path("ca")}};
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "other" + std::to_string(i % 7);
    tree.file(name, "x").remove(name);
  }
  (void)tree.content("ca");
  EXPECT_THAT(told(watch), IsEmpty());
  EXPECT_TRUE(quiet(watch));
  tree.file("ca", "2");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
}

// More events than the kernel keeps; the one that matters is among the lost ones.
TEST(FileWatchTest, LostEventsLoseNoChange) {
  fakes::TempTree tree;
  tree.file("ca", "1");
  FileWatch watch{{tree.path("ca")}};
  int limit = 0;
  std::ifstream{"/proc/sys/fs/inotify/max_queued_events"} >> limit;
  ASSERT_GT(limit, 0);
  tree.file("x", "");
  for (int i = 0; i < limit; ++i) {
    fs::rename(tree.path(i % 2 == 0 ? "x" : "y"), tree.path(i % 2 == 0 ? "y" : "x"));
  }
  tree.file("ca", "22");
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, ALookThatHangsHoldsUpNobodyAndIsToldOfWhenItEnds) {
  fakes::TempTree tree;
  tree.file("ca", "1");
  FileWatch watch{{tree.path("ca")}};
  EXPECT_EQ(watch.problem(), "");
  fakes::HangingFile hanging{tree.path("ca")};
  tree.file("ca", "22");
  EXPECT_THAT(told(watch), IsEmpty());
  hanging.wait();
  EXPECT_EQ(watch.problem(), tree.path("ca").string() + " does not answer");
  EXPECT_TRUE(quiet(watch)) << "no turn without end";
  hanging.answer();
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  EXPECT_EQ(watch.problem(), "");
  EXPECT_TRUE(quiet(watch));
}

TEST(FileWatchTest, WhatHangsFromTheBeginningMayHaveChangedMeanwhile) {
  fakes::TempTree tree;
  tree.file("ca", "1");
  fakes::HangingFile hanging{tree.path("ca")};
  FileWatch watch{{tree.path("ca")}};
  hanging.answer();
  EXPECT_THAT(told(watch), ElementsAre(tree.path("ca")));
  EXPECT_TRUE(quiet(watch));
}

}  // namespace file_watch_test
}  // namespace slurmlet
