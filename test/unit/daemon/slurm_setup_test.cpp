#include "daemon/slurm_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class DiscoverSlurm : public testing::Test {
 protected:
  DiscoverSlurm() {
    tree_.file("slurm.conf",
               "ClusterName=alps\nSlurmctldHost=head\nNodeName=fut[1-4] "
               "State=FUTURE\nNodeName=vm\n");
    settings_.slurm.conf = tree_.path("slurm.conf");
    slurmd_.pid = 42;
    slurmd_.conf = settings_.slurm.conf;
    slurmd_.in_unit = true;
  }
  sync::SlurmSetup discover() const {
    return discover_slurm(settings_, "vm.example.org", "vm", {slurmd_});
  }

  fakes::TempTree tree_;
  config::Settings settings_;
  slurm::SlurmdSeen slurmd_;
};

TEST_F(DiscoverSlurm, ANodeThatSlurmctldNamesNeedsTheOption) {
  slurmd_.options.future = true;
  EXPECT_EQ(discover().node_name, "");
  EXPECT_THAT(discover().name_problem, HasSubstr("-N NAME"));
  settings_.slurm.node_name = "fut3";
  EXPECT_EQ(discover().node_name, "fut3");
  EXPECT_EQ(discover().watch.identity.node_name, "fut3");
  EXPECT_EQ(discover().name_problem, "");
}

TEST_F(DiscoverSlurm, TellsTheClusterAndHowSlurmCountsCpus) {
  tree_.file("slurm.conf",
             "ClusterName=Alps\nInclude gone.conf\n"
             "NodeName=vm CPUs=8 CoresPerSocket=8 Sockets=1 ThreadsPerCore=2\n");
  const auto setup = discover();
  EXPECT_EQ(setup.node_name, "vm");
  EXPECT_EQ(setup.place.cluster, "alps");
  EXPECT_EQ(setup.jobs.threads_per_cpu, 2);
  ASSERT_EQ(setup.left_out.size(), 1U);
  EXPECT_NE(setup.left_out.front().find("gone.conf"), std::string::npos);
}

TEST_F(DiscoverSlurm, OnlyAWholeSlurmConfTellsThatTheRateIsNotLimited) {
  const std::string conf = "ClusterName=alps\nNodeName=vm CPUs=8\n";
  for (const auto& [more, may] : {std::pair{"", false},
                                  {"SlurmctldParameters=idle_on_node_suspend\n", false},
                                  {"SlurmctldParameters=idle_on_node_suspend,rl_enable\n", true},
                                  {"Include gone.conf\n", true}}) {
    tree_.file("slurm.conf", conf + more);
    EXPECT_EQ(discover().place.may_limit_rate, may) << more;
  }
  std::filesystem::remove(tree_.path("slurm.conf"));
  EXPECT_TRUE(discover().place.may_limit_rate);
}

// slurmd -Z has none in slurm.conf, and it may be in an Include that is left out.
TEST_F(DiscoverSlurm, WithoutTheLineOfTheNodeItIsNotKnownHowSlurmCountsCpus) {
  tree_.file("slurm.conf", "ClusterName=alps\nInclude gone.conf\nNodeName=other CPUs=8\n");
  settings_.slurm.node_name = "vm";
  const auto setup = discover();
  EXPECT_EQ(setup.node_name, "vm");
  EXPECT_EQ(setup.jobs.threads_per_cpu, std::nullopt);
}

TEST_F(DiscoverSlurm, TheConfigurationOfAConfiglessSlurmdIsFetchedFromItsServer) {
  settings_.slurm.conf.clear();
  slurmd_.conf.clear();
  slurmd_.conf_server = "head";
  const auto setup = discover();
  if (setup.place.conf.empty()) {  // this machine has none in the usual places
    EXPECT_EQ(setup.place.conf_server, "head");
  }
}

TEST_F(DiscoverSlurm, ASlurmdOutsideItsUnitNeedsAPidfile) {
  slurmd_.in_unit = false;
  slurmd_.options = {};
  slurmd_.options.node_name = "fut1";
  EXPECT_EQ(discover().node_name, "vm") << "not of a process that nobody vouches for";
  tree_.file("slurm.conf", "NodeName=fut1,vm\nSlurmdPidFile=" + tree_.path("%n.pid").string());
  EXPECT_EQ(discover().node_name, "vm");
  tree_.file("fut1.pid", "42\n");
  EXPECT_EQ(discover().node_name, "fut1");
  tree_.file("fut1.pid", "43\n");
  EXPECT_EQ(discover().node_name, "vm");
}

TEST_F(DiscoverSlurm, AConfigurationThatOthersMayChangeIsNotUsed) {
  tree_.file("slurm.conf", "ClusterName=theirs\nNodeName=vm\n", 0666);
  for (const bool set : {true, false}) {  // by the setting, by the slurmd's -f
    settings_.slurm.conf = set ? tree_.path("slurm.conf").string() : "";
    slurmd_.in_unit = set;
    const auto setup = discover();
    EXPECT_THAT(setup.name_problem,
                HasSubstr("mode 0666; chmod o-w " + tree_.path("slurm.conf").string()));
    EXPECT_EQ(setup.name_problem_cause, node::SlurmFailure::kBadConfiguration);
    EXPECT_EQ(setup.node_name, "");
    EXPECT_EQ(setup.conf.cluster_name, "");
  }
}

TEST_F(DiscoverSlurm, AGresConfOrAnIncludeThatOthersMayChangeIsNotUsed) {
  tree_.file("gres.conf", "AutoDetect=nvml\n", 0666);
  settings_.slurm.node_name = "vm";
  EXPECT_THAT(discover().name_problem, HasSubstr("gres.conf has owner"));
  EXPECT_EQ(discover().node_name, "");
  tree_.remove("gres.conf").file("slurm.conf", "Include nodes.conf\n");
  tree_.file("nodes.conf", "NodeName=vm\n", 0666);
  EXPECT_THAT(discover().name_problem, HasSubstr("nodes.conf has owner"));
}

TEST_F(DiscoverSlurm, ACommandTakesNoConfigurationFromAProcess) {
  settings_.slurm.conf.clear();
  tree_.file("theirs.conf", "ClusterName=theirs\nNodeName=vm\n");
  slurmd_.conf = slurmd_.options.conf_file = tree_.path("theirs.conf");
  EXPECT_EQ(discover().conf.cluster_name, "theirs");
  const auto setup = discover_slurm_for_command(settings_, "vm.example.org", "vm", {slurmd_});
  EXPECT_NE(setup.conf.cluster_name, "theirs");
  EXPECT_NE(setup.place.conf, slurmd_.conf);
  slurmd_.conf = slurmd_.options.conf_file = "";  // of another user, for who may not look into it
  slurmd_.in_unit = false;
  EXPECT_EQ(discover().name_problem, "");
  if (setup.conf.path.empty()) {  // this machine has none in the usual places
    EXPECT_THAT(setup.problem, HasSubstr("commands ignore a running slurmd's slurm.conf"));
  }
}

}  // namespace
}  // namespace slurmlet::daemon
