#include "slurm/node_name.h"

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

TEST(NodeName, TheSettingWinsOverEverything) {
  const SlurmConf conf = conf_with({line("n1", "vm")});
  const auto choice = resolve_node_name({"set", "option", &conf, "vm", "kube"});
  EXPECT_EQ(choice.name, "set");
  EXPECT_THAT(choice.why, HasSubstr("slurm.nodeName"));
}

TEST(NodeName, SlurmdsOptionWinsOverTheFile) {
  const SlurmConf conf = conf_with({line("n1", "vm")});
  const auto choice = resolve_node_name({"", "option", &conf, "vm", "kube"});
  EXPECT_EQ(choice.name, "option");
  EXPECT_THAT(choice.why, HasSubstr("-N"));
}

TEST(NodeName, TheOnlyNodeOfThisHost) {
  const SlurmConf conf = conf_with({line("n1", "vm"), line("kube", "elsewhere")});
  const auto choice = resolve_node_name({"", "", &conf, "vm.example.org", "kube"});
  EXPECT_EQ(choice.name, "n1");
  EXPECT_EQ(choice.why, "/etc/slurm/slurm.conf: NodeHostname vm");
}

TEST(NodeName, OfSeveralTheOneNamedAsInKubernetes) {
  const SlurmConf conf = conf_with({line("nid1", "vm"), line("nid2", "vm")});
  EXPECT_EQ(resolve_node_name({"", "", &conf, "vm", "nid2"}).name, "nid2");
  EXPECT_EQ(resolve_node_name({"", "", &conf, "vm", "nid2.cluster.local"}).name, "nid2");
}

TEST(NodeName, SeveralWithoutAHintAreNotGuessed) {
  const SlurmConf conf = conf_with({line("nid1", "vm"), line("nid2", "vm")});
  const auto choice = resolve_node_name({"", "", &conf, "vm", "kube"});
  EXPECT_EQ(choice.name, "");
  EXPECT_THAT(choice.why, HasSubstr("set slurm.nodeName"));
}

TEST(NodeName, ADynamicNodeIsCalledByItsHostName) {
  const SlurmConf conf;
  EXPECT_EQ(resolve_node_name({"", "", &conf, "vm.example.org", "kube"}),
            (NameChoice{"vm", "host name"}));
  EXPECT_EQ(resolve_node_name({"", "", nullptr, "vm", "kube"}).name, "vm");
  EXPECT_EQ(resolve_node_name({"", "", nullptr, "", "kube.x"}).name, "kube");
  EXPECT_EQ(resolve_node_name({"", "", nullptr, "", ""}).name, "");
}

}  // namespace
}  // namespace slurmlet::slurm
