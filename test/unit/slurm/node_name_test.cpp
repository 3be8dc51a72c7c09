#include "slurm/local/own_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace slurmlet::slurm {
namespace {

using testing::HasSubstr;

NodeLine line(const std::string& name, const std::string& hostname) {
  NodeLine node;
  node.name = name;
  node.hostname = hostname;
  return node;
}

SlurmConf conf_with(std::vector<NodeLine> nodes) {
  SlurmConf conf;
  conf.path = "/etc/slurm/slurm.conf";
  conf.nodes = std::move(nodes);
  return conf;
}

std::vector<SlurmdSeen> running(const std::vector<std::string>& names) {
  std::vector<SlurmdSeen> seen;
  for (const auto& name : names) {
    seen.emplace_back();
    seen.back().options.node_name = name;
  }
  return seen;
}

TEST(NodeName, TheSettingWinsOverEverything) {
  const SlurmConf conf = conf_with({line("n1", "vm")});
  const auto choice = resolve_node_name({"set", running({"option"}), &conf, "vm", "kube"});
  EXPECT_EQ(choice.name, "set");
  EXPECT_THAT(choice.why, HasSubstr("slurm.nodeName"));
}

TEST(NodeName, SlurmdsOptionWinsOverTheFile) {
  const SlurmConf conf = conf_with({line("n1", "vm")});
  const auto choice = resolve_node_name({"", running({"option"}), &conf, "vm", "kube"});
  EXPECT_EQ(choice.name, "option");
  EXPECT_THAT(choice.why, HasSubstr("-N"));
}

TEST(NodeName, TheOnlyNodeOfThisHost) {
  const SlurmConf conf = conf_with({line("n1", "vm"), line("kube", "elsewhere")});
  const auto choice = resolve_node_name({"", {}, &conf, "vm.example.org", "kube"});
  EXPECT_EQ(choice.name, "n1");
  EXPECT_EQ(choice.why, "/etc/slurm/slurm.conf: NodeHostname vm");
}

TEST(NodeName, OfSeveralTheOneNamedAsInKubernetes) {
  const SlurmConf conf = conf_with({line("nid1", "vm"), line("nid2", "vm")});
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm", "nid2"}).name, "nid2");
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm", "nid2.cluster.local"}).name, "nid2");
}

TEST(NodeName, SeveralWithoutAHintAreNotGuessed) {
  const SlurmConf conf = conf_with({line("nid1", "vm"), line("nid2", "vm"), line("nid3", "vm")});
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm", "kube"}),
            (NameChoice{"",
                        "/etc/slurm/slurm.conf names this host nid1, nid2 and nid3; set "
                        "slurm.nodeName"}));
}

TEST(NodeName, SeveralSlurmdAreNotGuessed) {
  const SlurmConf conf = conf_with({line("n1", "vm"), line("n2", "vm")});
  EXPECT_EQ(resolve_node_name({"", running({"n2", "n1"}), &conf, "vm", "kube"}),
            (NameChoice{"", "slurmd is running here as n1 and n2; set slurm.nodeName"}));
  EXPECT_EQ(resolve_node_name({"", running({"n2", ""}), nullptr, "vm.example.org", "kube"}).why,
            "slurmd is running here as n2 and vm; set slurm.nodeName");
  EXPECT_EQ(resolve_node_name({"n2", running({"n2", "n1"}), &conf, "vm", "kube"}).name, "n2");
  EXPECT_EQ(resolve_node_name({"", running({"n2", "n1"}), &conf, "vm", "n1.cluster"}).name, "n1");
  EXPECT_EQ(resolve_node_name({"", running({"n2", "n2"}), &conf, "vm", "kube"}).name, "n2")
      << "the old one and its successor";
}

std::vector<SlurmdSeen> future(const std::string& option, const std::string& told) {
  auto seen = running({option});
  seen[0].pid = 42;
  seen[0].options.future = true;
  seen[0].told_name = told;
  return seen;
}

TEST(NodeName, ANameThatSlurmctldChoosesIsNotGuessed) {
  const SlurmConf conf = conf_with({line("n1", "vm"), line("vm", "vm"), line("kube", "x")});
  EXPECT_EQ(
      resolve_node_name({"", future("", ""), &conf, "vm", "kube"}),
      (NameChoice{"", "slurmd -F: slurmctld assigns the node name; slurmd has not reported it yet",
                  42}));
  EXPECT_EQ(resolve_node_name({"", future("", "fut7"), &conf, "vm", "kube"}),
            (NameChoice{"fut7", "scontrol show slurmd", 42}));
}

TEST(NodeName, WhereItIsKnownOtherwiseNobodyIsAsked) {
  EXPECT_EQ(resolve_node_name({"set", future("", ""), nullptr, "vm", "kube"}),
            (NameChoice{"set", "setting slurm.nodeName"}));
  EXPECT_EQ(resolve_node_name({"", future("n7", ""), nullptr, "vm", "kube"}),
            (NameChoice{"n7", "option -N of the running slurmd"}));
}

TEST(NodeName, OfSeveralOneThatHasNotToldItsNameIsNotTheHostName) {
  auto both = running({"n1"});
  both.push_back(future("", "").front());
  EXPECT_EQ(
      resolve_node_name({"", both, nullptr, "vm", "vm"}),
      (NameChoice{
          "", "slurmd is running here as a node named by slurmctld and n1; set slurm.nodeName"}));
}

TEST(NodeName, ASlurmdThatMayBeAnotherClustersDoesNotConfuse) {
  const SlurmConf conf = conf_with({line("n1", "vm")});
  auto both = running({"n1", "other"});
  both[1].conf_known = false;
  EXPECT_EQ(resolve_node_name({"", both, &conf, "vm", "kube"}).name, "n1");
  both[1].options.dynamic = true;  // in no slurm.conf
  EXPECT_EQ(resolve_node_name({"", both, &conf, "vm", "kube"}).name, "");
}

TEST(NodeName, ADynamicNodeIsCalledByItsHostName) {
  const SlurmConf conf;
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm.example.org", "kube"}),
            (NameChoice{"vm", "host name"}));
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "vm", "kube"}).name, "vm");
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "", "kube.x"}).name, "kube");
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "", ""}).name, "");
}

}  // namespace
}  // namespace slurmlet::slurm
