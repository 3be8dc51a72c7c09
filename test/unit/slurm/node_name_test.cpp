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

NameSources on_host(const SlurmConf& conf, std::vector<std::string> other_hosts,
                    std::vector<SlurmdSeen> slurmds = running({""})) {
  return {"", std::move(slurmds), &conf, "cn01.example.org", "kube", std::move(other_hosts), ""};
}

// As slurmd 22.05 and 24.11 do without -N (test/system/test_slurm_node_name.py).
TEST(NodeName, IsLookedForByTheHostsNamesInSlurmdsOrder) {
  const NodeLine by_short = line("n1", "cn01");
  const NodeLine by_full = line("n2", "cn01.example.org");
  const NodeLine by_alias = line("n3", "nid7");
  const NodeLine by_later_alias = line("n4", "nid6");
  const NodeLine local = line("n5", "localhost");
  const std::vector<std::string> others{"nid7", "nid6", "localhost"};
  SlurmConf conf = conf_with({local, by_later_alias, by_alias, by_full, by_short});
  for (const char* name : {"n1", "n2", "n3", "n4", "n5"}) {
    EXPECT_EQ(resolve_node_name(on_host(conf, others)).name, name);
    EXPECT_EQ(resolve_node_name(on_host(conf, others, {})).name, name) << "nor when it is away";
    EXPECT_EQ(name_without_option(on_host(conf, others)), name);
    conf.nodes.pop_back();
  }
  EXPECT_EQ(resolve_node_name(on_host(conf_with({local}), others)).why,
            "/etc/slurm/slurm.conf: NodeHostname localhost");
}

TEST(NodeName, LettersMatterInNames) {
  const SlurmConf conf = conf_with({line("CN01", "CN01"), line("n1", "LOCALHOST")});
  EXPECT_EQ(resolve_node_name(on_host(conf, {"localhost"})).name, "cn01.example.org");
  EXPECT_EQ(resolve_node_name(on_host(conf, {"CN01", "localhost"})).name, "CN01")
      << "as the name server writes it";
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "CN01", "cn01"}).name, "CN01");
}

TEST(NodeName, ARunningSlurmdHasTakenTheFirstOfSeveral) {
  const SlurmConf conf = conf_with({line("b", "cn01"), line("a", "cn01")});
  EXPECT_EQ(resolve_node_name(on_host(conf, {})).name, "b");
  EXPECT_EQ(resolve_node_name(on_host(conf, {}, {})).name, "") << "it may come with -N";
}

TEST(NodeName, OtherNamesOfTheHostAreAskedForWhereTheyAreNeeded) {
  const SlurmConf mine = conf_with({line("n1", "cn01")});
  const SlurmConf none = conf_with({line("n1", "elsewhere")});
  EXPECT_FALSE(needs_other_hosts(on_host(mine, {})));
  EXPECT_TRUE(needs_other_hosts(on_host(none, {})));
  EXPECT_TRUE(needs_other_hosts(on_host(none, {}, {})));
  EXPECT_FALSE(needs_other_hosts(on_host(none, {}, running({"n7"}))));
  auto dynamic = running({""});
  dynamic[0].options.dynamic = true;
  EXPECT_FALSE(needs_other_hosts(on_host(none, {}, dynamic)));
  NameSources set = on_host(none, {});
  set.configured = "n1";
  EXPECT_FALSE(needs_other_hosts(set));
}

TEST(NodeName, NamesThatCannotBeResolvedAreNotNone) {
  const SlurmConf none = conf_with({line("kube", "elsewhere")});
  NameSources sources = on_host(none, {"localhost"});
  sources.other_hosts_problem = "the name server does not answer";
  const auto choice = resolve_node_name(sources);
  EXPECT_EQ(choice.name, "");
  EXPECT_THAT(
      choice.why,
      testing::AllOf(HasSubstr("/etc/slurm/slurm.conf"), HasSubstr("cn01.example.org"),
                     HasSubstr("the name server does not answer"), HasSubstr("slurm.nodeName")));
  const SlurmConf local = conf_with({line("n1", "localhost")});
  sources.conf = &local;
  EXPECT_EQ(resolve_node_name(sources).name, "n1");
}

TEST(NodeName, ByTheNameInKubernetesWhereTheHostHasNone) {
  const SlurmConf conf = conf_with({line("nid2", "elsewhere")});
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm", "nid2"}).name, "nid2");
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm", "nid2.cluster.local"}).name, "nid2");
}

TEST(NodeName, SeveralNeedTheSetting) {
  const SlurmConf conf = conf_with({line("nid1", "vm"), line("nid2", "vm"), line("nid3", "vm")});
  EXPECT_EQ(resolve_node_name({"", {}, &conf, "vm", "nid2"}),
            (NameChoice{"",
                        "/etc/slurm/slurm.conf names this host nid1, nid2 and nid3; set "
                        "slurm.nodeName"}));
}

TEST(NodeName, SeveralSlurmdsNeedTheSetting) {
  const SlurmConf conf = conf_with({line("n1", "vm"), line("n2", "vm")});
  EXPECT_EQ(resolve_node_name({"", running({"n2", "n1"}), &conf, "vm", "n1"}),
            (NameChoice{"", "slurmd is running here as n1 and n2; set slurm.nodeName"}));
  EXPECT_EQ(resolve_node_name({"", running({"n2", ""}), nullptr, "vm.example.org", "kube"}).why,
            "slurmd is running here as n2 and vm; set slurm.nodeName");
  EXPECT_EQ(resolve_node_name({"n2", running({"n2", "n1"}), &conf, "vm", "kube"}).name, "n2");
  EXPECT_EQ(resolve_node_name({"", running({"n2", "n2"}), &conf, "vm", "kube"}).name, "n2")
      << "the old one and its successor";
}

std::vector<SlurmdSeen> future(const std::string& option) {
  auto seen = running({option});
  seen[0].options.future = true;
  return seen;
}

TEST(NodeName, ANameThatSlurmctldChoosesNeedsTheSetting) {
  const SlurmConf conf = conf_with({line("n1", "vm"), line("vm", "vm"), line("kube", "x")});
  EXPECT_EQ(resolve_node_name({"", future(""), &conf, "vm", "kube"}),
            (NameChoice{"", "slurmd -F: slurmctld assigns the node name; start it with -N NAME"}));
  EXPECT_EQ(resolve_node_name({"fut7", future(""), &conf, "vm", "kube"}).name, "fut7");
  EXPECT_EQ(resolve_node_name({"", future("n7"), &conf, "vm", "kube"}),
            (NameChoice{"n7", "option -N of the running slurmd"}));
}

TEST(NodeName, OfSeveralOneThatSlurmctldNamesIsNotTheHostName) {
  auto both = running({"n1"});
  both.push_back(future("").front());
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
            (NameChoice{"vm.example.org", "host name"}));
  const SlurmConf other = conf_with({line("n1", "vm"), line("kube", "elsewhere")});
  auto dynamic = running({""});
  dynamic[0].options.dynamic = true;
  EXPECT_EQ(resolve_node_name({"", dynamic, &other, "vm.example.org", "kube"}),
            (NameChoice{"vm.example.org", "host name of the running slurmd -Z"}));
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "vm.example.org", "kube"}).name, "vm")
      << "without slurm.conf most likely no dynamic one";
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "vm", "kube"}).name, "vm");
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "", "kube.x"}).name, "kube");
  EXPECT_EQ(resolve_node_name({"", {}, nullptr, "", ""}).name, "");
}

}  // namespace
}  // namespace slurmlet::slurm
