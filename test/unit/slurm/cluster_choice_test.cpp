#include "slurm/local/own_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fakes/temp_tree.h"

namespace slurmlet::slurm {
namespace {

using testing::SizeIs;

constexpr const char* kUsual = "/etc/slurm/slurm.conf";

SlurmdSeen slurmd(int pid, const std::string& name, const std::string& conf,
                  const std::string& server = "") {
  SlurmdSeen seen;
  seen.pid = pid;
  seen.options.node_name = name;
  seen.conf = conf;
  seen.conf_server = server;
  return seen;
}

TEST(ClusterChoice, WithoutASlurmdThereIsNothingToChoose) {
  const auto choice = choose_cluster({}, {"", "", kUsual});
  EXPECT_EQ(choice.conf, "");
  EXPECT_EQ(choice.problem, "");
}

TEST(ClusterChoice, TheFileOfTheOnlySlurmdIsUsed) {
  EXPECT_EQ(choose_cluster({slurmd(1, "n1", "/srv/b.conf")}, {"", "", kUsual}).conf, "/srv/b.conf");
  EXPECT_EQ(choose_cluster({slurmd(1, "n1", "")}, {"", "", kUsual}).conf, "");
  EXPECT_EQ(choose_cluster({slurmd(1, "n1", "", "head")}, {"", "", ""}).conf_server, "head");
}

TEST(ClusterChoice, TwoClustersAreRefusedByName) {
  const auto choice =
      choose_cluster({slurmd(1, "n1", ""), slurmd(2, "n1", "/srv/b.conf")}, {"", "", kUsual});
  EXPECT_EQ(choice.problem,
            "slurmds of several clusters are running here (/etc/slurm/slurm.conf, /srv/b.conf): "
            "set slurm.conf");
  EXPECT_EQ(choice.conf, "");
}

TEST(ClusterChoice, OneClusterByTwoPathsIsOne) {
  fakes::TempTree tree;
  tree.file("cache/slurm.conf", "").symlink(tree.path("cache"), "conf");
  const auto choice = choose_cluster({slurmd(1, "n1", tree.path("cache/slurm.conf")),
                                      slurmd(2, "n2", tree.path("conf/slurm.conf"))},
                                     {"", "", kUsual});
  EXPECT_EQ(choice.problem, "");
  EXPECT_THAT(choice.slurmds, SizeIs(2));
}

// stat(2) of a file on another user's FUSE mount may never return.
TEST(ClusterChoice, AFileThatOthersMayPutThereIsNotLookedAt) {
  fakes::TempTree tree;
  tree.file("open/slurm.conf", "").symlink(tree.path("open"), "link");
  std::filesystem::permissions(tree.path("open"), std::filesystem::perms::all);
  const auto choice = choose_cluster({slurmd(1, "n1", tree.path("link/slurm.conf")),
                                      slurmd(2, "n2", tree.path("open/slurm.conf"))},
                                     {"", "", kUsual});
  EXPECT_THAT(choice.problem, testing::HasSubstr("several clusters"));
  EXPECT_THAT(choose_cluster({slurmd(1, "n1", tree.path("link/slurm.conf"))},
                             {tree.path("open/slurm.conf"), "", kUsual})
                  .slurmds,
              testing::IsEmpty());
}

TEST(ClusterChoice, TheSettingChoosesTheCluster) {
  const std::vector<SlurmdSeen> two{slurmd(1, "n1", "/srv/a.conf"), slurmd(2, "n2", "/srv/b.conf")};
  const auto choice = choose_cluster(two, {"/srv/b.conf", "", kUsual});
  EXPECT_EQ(choice.problem, "");
  ASSERT_THAT(choice.slurmds, SizeIs(1));
  EXPECT_EQ(choice.slurmds[0].pid, 2);
}

TEST(ClusterChoice, TheNodeNameChoosesTheCluster) {
  const std::vector<SlurmdSeen> two{slurmd(1, "n1", "/srv/a.conf"), slurmd(2, "n2", "/srv/b.conf")};
  const auto choice = choose_cluster(two, {"", "n1", kUsual});
  EXPECT_EQ(choice.problem, "");
  EXPECT_EQ(choice.conf, "/srv/a.conf");
}

TEST(ClusterChoice, ASlurmdThatSaysTheNodeNameIsPreferredToOnesThatSayNone) {
  const std::vector<SlurmdSeen> two{slurmd(1, "", "/srv/a.conf"), slurmd(2, "n2", "/srv/b.conf")};
  const auto choice = choose_cluster(two, {"", "n2", kUsual});
  EXPECT_EQ(choice.problem, "");
  EXPECT_EQ(choice.conf, "/srv/b.conf");
  EXPECT_NE(choose_cluster(two, {"", "n3", kUsual}).conf, "/srv/b.conf");
}

TEST(ClusterChoice, ASlurmdWhoseFileCannotBeToldIsNoOtherCluster) {
  SlurmdSeen hidden = slurmd(2, "n1", "");
  hidden.conf_known = false;
  const auto choice = choose_cluster({slurmd(1, "n1", "/srv/a.conf"), hidden}, {"", "", kUsual});
  EXPECT_EQ(choice.problem, "");
  EXPECT_EQ(choice.conf, "/srv/a.conf");
}

}  // namespace
}  // namespace slurmlet::slurm
