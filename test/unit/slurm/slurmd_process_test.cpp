#include "slurm/local/slurmd_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "fake_proc.h"
#include "slurm/local/proc.h"

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
      {{"/usr/sbin/slurmd", "-D", "-N", "nid1"}, {"nid1", false, "", ""}},
      {{"slurmd", "-Nnid1"}, {"nid1", false, "", ""}},
      {{"slurmd", "-DsNnid1"}, {"nid1", false, "", ""}},
      {{"slurmd", "-DN", "nid1"}, {"nid1", false, "", ""}},
      {{"slurmd", "-f", "-N", "x"}, {"", false, "-N", ""}},
      {{"slurmd", "-D", "-f/etc/x.conf"}, {"", false, "/etc/x.conf", ""}},
      {{"slurmd", "--systemd", "-n", "5"}, {}},
      {{"slurmd", "-b", "-Z"}, {"", true, "", ""}},
      {{"slurmd", "-bDZN", "nid1"}, {"nid1", true, "", ""}},
      {{"slurmd", "-FNZ", "-Nnid1"}, {"nid1", false, "", "", true}},
      {{"slurmd", "-DF", "-f", "/x.conf"}, {"", false, "/x.conf", "", true}},
      {{"slurmd", "-Z", "--conf", "Feature=a,b -N x"}, {"", true, "", ""}},
      {{"slurmd", "-Z", "--conf=Feature=a Gres=gpu:2"}, {"", true, "", ""}},
      {{"slurmd", "--conf-server=head", "-N", "n"}, {"n", false, "", "head"}},
      {{"slurmd", "--conf-server", "h1:6817,h2", "-Z"}, {"", true, "", "h1:6817,h2"}},
      {{"slurmd", "--conf-s=h"}, {"", false, "", "h"}},
      {{"slurmd", "--instance-id", "-N", "-N", "nid1"}, {"nid1", false, "", ""}},
      {{"slurmd", "--extra=-Z"}, {}},
      {{"slurmd", "--", "-N", "nid1"}, {}},
      {{"slurmd", "-N"}, {}},
      {{"slurmd", "-", "--="}, {}},
      {{"slurmd", "", "-N", ""}, {}},
      {{"slurmd", "--instance-", "-Z"}, {"", true, "", ""}},
      {{"slurmd", "-x?:;W", "--nonsense=x", "-Z"}, {"", true, "", ""}},
      {std::vector<std::string>(100'000, "-Z"), {"", true, "", ""}},
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
  EXPECT_THAT(*seen, testing::ElementsAre(
                         SlurmdSeen{42, {"n1", false, "/a.conf", ""}, "/a.conf", "", true, true},
                         SlurmdSeen{43, {}, "/b.conf", "head", true, true}));
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

TEST_F(SlurmdProcessTest, APidfileIsBelievedWhereASlurmdRuns) {
  EXPECT_EQ(find(), FoundSlurmd{});
  tree_.file("run/slurmd.pid", "42\n");
  EXPECT_EQ(find().pid, 0);
  EXPECT_EQ(find().hidden_pid, 42) << "nothing of it can be seen";
  add_process(tree_, {42, "slurmd", {}, 'Z'});
  EXPECT_EQ(find().pid, 0);
  add_process(tree_, {42, "slurmd", {}});  // between its exec and its first own step
  EXPECT_EQ(find().pid, 0);
  EXPECT_TRUE(running_slurmds(places_.proc_root)->empty());
  add_process(tree_, {42, "slurmd", {"/usr/sbin/slurmd"}});
  EXPECT_EQ(find().pid, 42);
  add_process(tree_, {42, "bash", {"bash"}});
  add_process(tree_, {77, "slurmd", {"/usr/sbin/slurmd"}});
  EXPECT_EQ(find().pid, 77) << "the pidfile is stale";
  EXPECT_EQ(find().hidden_pid, 0);
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

TEST_F(SlurmdProcessTest, WithoutAFileOfItsOwnItReadsTheDefault) {
  identity_.conf = "/a/slurm.conf";
  add_process(tree_, {42, "slurmd", {"slurmd"}});
  EXPECT_EQ(find().pid, 42) << "the default is not known";
  identity_.default_conf = "/etc/slurm/slurm.conf";
  EXPECT_EQ(find().pid, 0);
  identity_.conf = "/etc/slurm/slurm.conf";
  EXPECT_EQ(find().pid, 42);
  identity_.conf = "/a/slurm.conf";
  add_process(tree_, {42, "slurmd", {"slurmd", "--conf-server=head"}});
  EXPECT_EQ(find().pid, 42) << "which file that is, is not known";
}

TEST_F(SlurmdProcessTest, WithoutANameOfItsOwnItIsTheNodeThatItTakes) {
  add_process(tree_, {42, "slurmd", {"slurmd"}});
  EXPECT_EQ(find().pid, 42) << "which one that is, is not known";
  identity_.unnamed = "nid2";
  EXPECT_EQ(find().pid, 0);
  tree_.file("run/slurmd.pid", "42\n");
  EXPECT_EQ(find().pid, 0);
  identity_.unnamed = identity_.node_name;
  EXPECT_EQ(find().pid, 42);
  identity_.unnamed = "nid2";
  for (const char* option : {"-Z", "-F"}) {
    add_process(tree_, {42, "slurmd", {"slurmd", option}});
    EXPECT_EQ(find().pid, 42) << option << " takes none of slurm.conf";
  }
}

TEST_F(SlurmdProcessTest, TheSameFileByALinkIsTheSame) {
  tree_.file("cache/slurm.conf", "").symlink(tree_.path("cache"), "conf");
  identity_.conf = tree_.path("conf/slurm.conf");
  add_process(tree_, {42, "slurmd", {"slurmd", "-f", tree_.path("cache/slurm.conf")}});
  EXPECT_EQ(find().pid, 42);
}

// stat(2) of a file on another user's FUSE mount may never return.
TEST_F(SlurmdProcessTest, AFileThatOthersMayPutThereIsNotLookedAt) {
  tree_.file("open/slurm.conf", "").symlink(tree_.path("open"), "link");
  std::filesystem::permissions(tree_.path("open"), std::filesystem::perms::all);
  identity_.conf = tree_.path("link/slurm.conf");
  add_process(tree_, {42, "slurmd", {"slurmd", "-f", tree_.path("open/slurm.conf")}});
  EXPECT_EQ(find().pid, 0);
}

TEST_F(SlurmdProcessTest, OnlyTheServiceOrAPidfileVouchesForAProcess) {
  const std::vector<std::pair<std::string, bool>> cases{
      {"0::/system.slice/slurmd.service\n", true},
      {"0::/system.slice/slurmd.service/slurmd\n", true},
      {"0::/system.slice/slurmd.service/system\n", true},
      {"0::/system.slice/system-slurmd.slice/slurmd@nid1.service\n", true},
      {"0::/hpc.slice/slurmd-gpu.service\n", true},
      {"12:memory:/\n1:name=systemd:/system.slice/slurmd.service\n0::/\n", true},
      // A job, by cgroup v2 and v1; a user's own service manager; a container; others.
      {"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", false},
      {"0::/system.slice/nid1_slurmstepd.scope/job_7/step_0/slurm\n", false},
      {"9:freezer:/slurm/uid_1000/job_7/step_0\n1:name=systemd:/system.slice/slurmd.service\n",
       false},
      {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/slurmd.service\n", false},
      {"0::/user.slice/user-0.slice/session-3.scope\n", false},
      {"0::/system.slice/docker-0a1b.scope/system.slice/slurmd.service\n", false},
      {"0::/system.slice/slurmd.service/init.scope\n", false},
      {"0::/system.slice/slurmctld.service\n", false},
      {"0::/system.slice/slurmd.service.d\n", false},
      {"0::/system.slice/other.service/slurmd\n", false},
      {"0::/slurmd\n", false},
      {"0::/\n", false},
      {"", false},
  };
  for (const auto& [cgroups, counts] : cases) {
    FakeProcess slurmd{42, "slurmd", {"slurmd", "-N", "nid1"}};
    slurmd.cgroups = cgroups;
    add_process(tree_, slurmd);
    EXPECT_EQ(find().pid, counts ? 42 : 0) << cgroups;
    EXPECT_EQ(find().passed_over.empty(), counts) << cgroups;
    EXPECT_EQ(running_slurmds(places_.proc_root)->front().in_unit, counts) << cgroups;
    places_.pid_pattern = tree_.path("run/slurmd.%n.pid");
    tree_.file("run/slurmd.whatever.pid", "42\n");
    EXPECT_EQ(find().pid, 42) << cgroups;
    tree_.remove("run/slurmd.whatever.pid");
  }
}

TEST_F(SlurmdProcessTest, AllUidsAndTheGroupMustBeRootsOrSlurmUsers) {
  places_.users = {{0, 64030}, {0, 64030}};
  const std::vector<std::tuple<std::string, std::string, bool>> cases{
      {"0\t0\t0\t0", "0\t0\t0\t0", true},
      {"64030\t64030\t64030\t64030", "64030\t64030\t64030\t64030", true},
      {"1000\t1000\t1000\t1000", "1000\t1000\t1000\t1000", false},
      {"1000\t0\t0\t0", "0\t0\t0\t0", false},  // a setuid program of a user's
      {"0\t1000\t0\t0", "0\t0\t0\t0", false},
      {"0\t0\t1000\t0", "0\t0\t0\t0", false},
      {"0\t0\t0\t1000", "0\t0\t0\t0", false},
      {"0\t0\t0\t0", "1000\t0\t0\t0", false},  // sudo while it asks for the password
      {"65534\t65534\t65534\t65534", "65534\t65534\t65534\t65534", false},
      {"0\t0\t0", "0\t0\t0\t0", false},
      {"4294967296\t0\t0\t0", "0\t0\t0\t0", false},
      {"", "", false},
  };
  for (const auto& [uids, gids, counts] : cases) {
    FakeProcess slurmd{42, "slurmd", {"slurmd", "-N", "nid1"}};
    slurmd.uids = uids;
    slurmd.gids = gids;
    add_process(tree_, slurmd);
    for (const bool by_pid_file : {false, true}) {
      tree_.remove("run/slurmd.pid");
      if (by_pid_file) {
        tree_.file("run/slurmd.pid", "42\n");
      }
      EXPECT_EQ(find().pid, counts ? 42 : 0) << uids << by_pid_file;
    }
    EXPECT_EQ(running_slurmds(places_.proc_root, places_.users)->size(), counts ? 1U : 0U) << uids;
    EXPECT_EQ(find().passed_over, "") << "nothing of a stranger is reported";
  }
}

TEST_F(SlurmdProcessTest, APidfileThatOthersMayWriteVouchesForNothing) {
  FakeProcess slurmd{42, "slurmd", {"slurmd", "-N", "nid1"}};
  slurmd.cgroups = "0::/user.slice/user-0.slice/session-3.scope\n";
  add_process(tree_, slurmd);
  tree_.file("run/slurmd.pid", "42\n");
  places_.pid_pattern = places_.pid_file;
  ASSERT_EQ(find().pid, 42);
  tree_.file("run/slurmd.pid", "42\n", 0666);
  EXPECT_EQ(find().pid, 0);
}

TEST_F(SlurmdProcessTest, TheOldestIsTheDaemon) {
  add_process(tree_, {42, "slurmd", {"slurmd"}, 'S', 100});
  add_process(tree_, {7, "slurmd", {"slurmd"}, 'S', 200});  // between fork and exec
  EXPECT_EQ(find().pid, 42);
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
