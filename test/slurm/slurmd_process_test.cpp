#include "slurm/slurmd_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_proc.h"
#include "slurm/proc.h"

namespace slurmlet::slurm {
namespace {

class SlurmdProcessTest : public testing::Test {
 protected:
  SlurmdProcessTest() {
    tree_.dir("proc").dir("cgroup");
    places_.proc_root = tree_.path("proc");
    places_.cgroup_root = tree_.path("cgroup");
    places_.pid_file = tree_.path("run/slurmd.pid");
  }
  FoundSlurmd find() { return find_slurmd(places_, identity_); }

  fakes::TempTree tree_;
  SlurmdPlaces places_;
  SlurmdIdentity identity_{"nid1", ""};
};

TEST(SlurmdOptions, AreReadAsGetoptDoes) {
  const std::vector<std::pair<std::vector<std::string>, SlurmdOptions>> cases{
      {{"/usr/sbin/slurmd", "-D", "-N", "nid1"}, {"nid1", false, "", "", ""}},
      {{"slurmd", "-Nnid1"}, {"nid1", false, "", "", ""}},
      {{"slurmd", "-DsNnid1"}, {"nid1", false, "", "", ""}},
      {{"slurmd", "-DN", "nid1"}, {"nid1", false, "", "", ""}},
      {{"slurmd", "-f", "-N", "x"}, {"", false, "", "-N", ""}},
      {{"slurmd", "-D", "-f/etc/x.conf"}, {"", false, "", "/etc/x.conf", ""}},
      {{"slurmd", "--systemd", "-n", "5"}, {}},
      {{"slurmd", "-b", "-Z"}, {"", true, "", "", ""}},
      {{"slurmd", "-bDZN", "nid1"}, {"nid1", true, "", "", ""}},
      {{"slurmd", "-FNZ", "-Nnid1"}, {"nid1", false, "", "", "", true}},
      {{"slurmd", "-DF", "-f", "/x.conf"}, {"", false, "", "/x.conf", "", true}},
      {{"slurmd", "-Z", "--conf", "Feature=a,b -N x"}, {"", true, "Feature=a,b -N x", "", ""}},
      {{"slurmd", "-Z", "--conf=Feature=a Gres=gpu:2"}, {"", true, "Feature=a Gres=gpu:2", "", ""}},
      {{"slurmd", "--conf-server=head", "-N", "n"}, {"n", false, "", "", "head"}},
      {{"slurmd", "--conf-server", "h1:6817,h2", "-Z"}, {"", true, "", "", "h1:6817,h2"}},
      {{"slurmd", "--conf-s=h"}, {"", false, "", "", "h"}},
      {{"slurmd", "--instance-id", "-N", "-N", "nid1"}, {"nid1", false, "", "", ""}},
      {{"slurmd", "--extra=-Z"}, {}},
      {{"slurmd", "--", "-N", "nid1"}, {}},
      {{"slurmd", "-N"}, {}},
      {{"slurmd", "-", "--="}, {}},
      {{}, {}},
  };
  for (const auto& [arguments, options] : cases) {
    EXPECT_EQ(parse_slurmd_options(arguments), options) << testing::PrintToString(arguments);
  }
}

TEST(SlurmdOptions, TellWhetherSlurmdOnlyPrintsSomething) {
  const std::vector<std::pair<std::vector<std::string>, bool>> cases{
      {{"slurmd", "-V"}, true},
      {{"slurmd", "-C"}, true},
      {{"slurmd", "-G"}, true},
      {{"slurmd", "-h"}, true},
      {{"slurmd", "--version"}, true},
      {{"slurmd", "--help"}, true},
      {{"slurmd", "--ver"}, true},
      {{"slurmd", "--h"}, true},
      {{"slurmd", "-N", "nid1", "-G"}, true},
      {{"slurmd", "-vvC"}, true},
      {{"slurmd", "-DGN", "nid1"}, true},
      {{"slurmd", "-f/x.conf", "-C"}, true},
      {{"slurmd"}, false},
      {{"slurmd", "-D", "-c", "-v", "-M", "-s", "-b"}, false},
      {{"slurmd", "-NVC"}, false},
      {{"slurmd", "-N", "-V"}, false},
      {{"slurmd", "-FCG"}, false},
      {{"slurmd", "-LV"}, false},
      {{"slurmd", "--extra", "--version"}, false},
      {{"slurmd", "--systemd", "--conf", "-C"}, false},
      {{"slurmd", "--", "-V"}, false},
  };
  for (const auto& [arguments, prints] : cases) {
    EXPECT_EQ(parse_slurmd_options(arguments).prints_only, prints)
        << testing::PrintToString(arguments);
  }
}

TEST_F(SlurmdProcessTest, EverySlurmdOfTheMachineIsSeen) {
  add_process(tree_, {1, "systemd", {"/sbin/init"}});
  add_process(tree_, {42, "slurmd", {"slurmd", "-f", "/a.conf", "-N", "n1"}});
  add_process(tree_, {43,
                      "slurmd",
                      {"slurmd"},
                      'S',
                      100,
                      std::string("SLURM_CONF=/b.conf\0SLURM_CONF_SERVER=head\0", 42)});
  add_process(tree_, {44, "slurmd", {"slurmd", "-N", "n3"}, 'Z'});
  add_process(tree_, {45, "slurmstepd", {"slurmstepd: [9.batch]"}});
  const auto seen = running_slurmds(places_.proc_root);
  ASSERT_TRUE(seen);
  EXPECT_THAT(*seen,
              testing::ElementsAre(SlurmdSeen{42, {"n1", false, "", "/a.conf", ""}, "/a.conf", ""},
                                   SlurmdSeen{43, {}, "/b.conf", "head"}));
  tree_.remove("proc");
  EXPECT_FALSE(running_slurmds(places_.proc_root));
}

// Before it becomes slurmstepd, or the successor that a reconfigure starts (23.11 and later).
TEST_F(SlurmdProcessTest, AChildOfSlurmdIsNoOther) {
  add_process(tree_, {42, "slurmd", {"slurmd"}});
  FakeProcess child{77, "slurmd", {"slurmd"}};
  child.parent = 42;
  add_process(tree_, child);
  EXPECT_EQ(running_slurmds(places_.proc_root)->size(), 1U);
  child.parent = 1;
  add_process(tree_, child);
  EXPECT_EQ(running_slurmds(places_.proc_root)->size(), 2U) << "its parent would be another";
}

TEST_F(SlurmdProcessTest, ASlurmdThatOnlyPrintsSomethingIsNone) {
  add_process(tree_, {42, "slurmd", {"slurmd", "-C"}});
  EXPECT_TRUE(running_slurmds(places_.proc_root)->empty());
  EXPECT_EQ(find().pid, 0);
  tree_.file("run/slurmd.pid", "42\n");
  EXPECT_EQ(find().pid, 0) << "not by a stale pidfile either";
  add_process(tree_, {43, "slurmd", {"slurmd", "-N", "nid1"}, 'S', 200});
  EXPECT_EQ(find().pid, 43);
  ASSERT_EQ(running_slurmds(places_.proc_root)->size(), 1U);
  EXPECT_EQ(running_slurmds(places_.proc_root)->front().pid, 43);
}

TEST_F(SlurmdProcessTest, WhatThisProcessStartedIsNoSlurmdOfTheMachine) {
  tree_.symlink("4711", "proc/self");
  FakeProcess child{77, "slurmd", {"slurmd"}};
  child.parent = 4711;
  add_process(tree_, child);
  EXPECT_TRUE(running_slurmds(places_.proc_root)->empty());
  child.parent = 4712;
  add_process(tree_, child);
  EXPECT_EQ(running_slurmds(places_.proc_root)->size(), 1U);
}

// Between its exec and its first own step, or while it ends.
TEST_F(SlurmdProcessTest, AProcessWithoutACommandLineIsNoSlurmdYet) {
  add_process(tree_, {42, "slurmd", {}});
  EXPECT_TRUE(running_slurmds(places_.proc_root)->empty());
  EXPECT_EQ(find().pid, 0);
}

TEST_F(SlurmdProcessTest, NothingRuns) { EXPECT_EQ(find(), FoundSlurmd{}); }

TEST_F(SlurmdProcessTest, ThePidfileTells) {
  tree_.file("run/slurmd.pid", "42\n");
  add_process(tree_, {42, "slurmd", {"/usr/sbin/slurmd"}});
  EXPECT_EQ(find().pid, 42);
}

TEST_F(SlurmdProcessTest, AStalePidfileIsNotBelieved) {
  tree_.file("run/slurmd.pid", "42\n");
  add_process(tree_, {42, "bash", {"bash"}});
  add_process(tree_, {77, "slurmd", {"/usr/sbin/slurmd"}});
  EXPECT_EQ(find().pid, 77) << "found by looking at all processes";
  EXPECT_EQ(find().hidden_pid, 0);
}

TEST_F(SlurmdProcessTest, AZombieDoesNotRun) {
  tree_.file("run/slurmd.pid", "42\n");
  add_process(tree_, {42, "slurmd", {}, 'Z'});
  EXPECT_EQ(find().pid, 0);
}

TEST_F(SlurmdProcessTest, AnotherNodesSlurmdIsNotOurs) {
  tree_.file("run/slurmd.pid", "42\n");
  add_process(tree_, {42, "slurmd", {"slurmd", "-N", "nid2"}});
  EXPECT_EQ(find().pid, 0);
  add_process(tree_, {43, "slurmd", {"slurmd", "-N", "nid1"}});
  EXPECT_EQ(find().pid, 43);
  identity_.node_name = "";
  EXPECT_EQ(find().pid, 42) << "while our name is not known, the pidfile decides";
}

TEST_F(SlurmdProcessTest, AnotherClustersSlurmdIsNotOurs) {
  identity_.conf = "/a/slurm.conf";
  add_process(tree_, {42, "slurmd", {"slurmd", "-f", "/b/slurm.conf"}});
  add_process(
      tree_,
      {43, "slurmd", {"slurmd"}, 'S', 100, std::string("A=b\0SLURM_CONF=/b/slurm.conf\0", 28)});
  EXPECT_EQ(find().pid, 0);
  add_process(tree_,
              {44, "slurmd", {"slurmd"}, 'S', 100, std::string("SLURM_CONF=/a/slurm.conf\0", 25)});
  EXPECT_EQ(find().pid, 44);
}

TEST_F(SlurmdProcessTest, TheSameFileByALinkIsTheSame) {
  tree_.file("cache/slurm.conf", "").symlink(tree_.path("cache"), "conf");
  identity_.conf = tree_.path("conf/slurm.conf");
  add_process(tree_, {42, "slurmd", {"slurmd", "-f", tree_.path("cache/slurm.conf")}});
  EXPECT_EQ(find().pid, 42);
}

TEST_F(SlurmdProcessTest, TheUnitTellsWithoutAPidfile) {
  add_process(tree_, {10, "slurmd", {"slurmd"}, 'S', 1});
  add_process(tree_, {42, "slurmd", {"slurmd"}, 'S', 100});
  add_process(tree_, {41, "slurmd-helper", {"x"}, 'S', 50});
  for (const char* hierarchy : {"", "unified/", "systemd/"}) {
    const std::string file =
        std::string{"cgroup/"} + hierarchy + "system.slice/slurmd.service/cgroup.procs";
    tree_.file(file, "41\n42\n");
    EXPECT_EQ(find().pid, 42) << file;
    tree_.remove(file);
  }
}

TEST_F(SlurmdProcessTest, TheOldestIsTheDaemon) {
  add_process(tree_, {42, "slurmd", {"slurmd"}, 'S', 100});
  add_process(tree_, {7, "slurmd", {"slurmd"}, 'S', 200});  // between fork and exec
  EXPECT_EQ(find().pid, 42);
}

TEST_F(SlurmdProcessTest, AHiddenProcessIsReported) {
  tree_.file("run/slurmd.pid", "42\n");
  EXPECT_EQ(find().hidden_pid, 42);
}

TEST_F(SlurmdProcessTest, WithoutProcTheSearchFails) {
  tree_.remove("proc");
  EXPECT_NE(find().error, "");
}

TEST_F(SlurmdProcessTest, OddNamesDoNotConfuseStat) {
  tree_.file("proc/5/stat", "5 (a) b (c) T 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n");
  const auto stat = process_stat(places_.proc_root, 5);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'T');
  EXPECT_EQ(stat->parent, 1);
  EXPECT_EQ(stat->start_time, 4711U);
  tree_.file("proc/6/stat", "6 (cut");
  EXPECT_FALSE(process_stat(places_.proc_root, 6));
}

}  // namespace
}  // namespace slurmlet::slurm
