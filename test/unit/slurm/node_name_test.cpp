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

std::vector<SlurmdSeen> future(const std::string& option) {
  auto seen = running({option});
  seen[0].options.future = true;
  return seen;
}

std::vector<SlurmdSeen> dynamic() {
  auto seen = running({""});
  seen[0].options.dynamic = true;
  return seen;
}

// The name, and the words that say whence it comes or what to set.
TEST(NodeName, ComesFromTheFirstOfThese) {
  const SlurmConf mine = conf_with({line("n1", "vm"), line("kube", "elsewhere")});
  const SlurmConf other = conf_with({line("nid2", "elsewhere")});
  const SlurmConf several = conf_with({line("nid1", "vm"), line("nid2", "vm")});
  const SlurmConf empty;
  auto one_of_slurmctld = running({"n1"});
  one_of_slurmctld.push_back(future("").front());
  const struct {
    NameSources from;
    const char* name;
    std::vector<const char*> words;
  } kRows[] = {
      {{"set", running({"option"}), &mine, "vm", "kube"}, "set", {"slurm.nodeName"}},
      {{"n2", running({"n2", "n1"}), &several, "vm", "kube"}, "n2", {"slurm.nodeName"}},
      {{"fut7", future(""), &mine, "vm", "kube"}, "fut7", {"slurm.nodeName"}},
      {{"", running({"option"}), &mine, "vm", "kube"}, "option", {"-N"}},
      {{"", future("n7"), &mine, "vm", "kube"}, "n7", {"-N"}},
      // The old one and its successor.
      {{"", running({"n2", "n2"}), &several, "vm", "kube"}, "n2", {"-N"}},
      {{"", running({"n2", "n1"}), &several, "vm", "n1"}, "", {"n1 and n2", "slurm.nodeName"}},
      {{"", running({"n2", ""}), nullptr, "vm.a.b", "kube"}, "", {"n2 and vm", "slurm.nodeName"}},
      {{"", one_of_slurmctld, nullptr, "vm", "vm"}, "", {"n1", "slurm.nodeName"}},
      {{"", future(""), &mine, "vm", "kube"}, "", {"slurmd -F", "-N NAME"}},
      {{"", {}, &mine, "vm.example.org", "kube"}, "n1", {"/etc/slurm/slurm.conf", "vm"}},
      {{"", {}, &several, "vm", "nid2"}, "", {"nid1 and nid2", "slurm.nodeName"}},
      {{"", dynamic(), &mine, "vm.example.org", "kube"}, "vm.example.org", {"slurmd -Z"}},
      {{"", {}, &other, "vm", "nid2"}, "nid2", {}},
      {{"", {}, &other, "vm", "nid2.cluster.local"}, "nid2", {}},
      {{"", {}, &empty, "vm.example.org", "kube"}, "vm.example.org", {"host name"}},
      // Without slurm.conf most likely no dynamic one.
      {{"", {}, nullptr, "vm.example.org", "kube"}, "vm", {}},
      {{"", {}, nullptr, "", "kube.x"}, "kube", {}},
      {{"", {}, nullptr, "", ""}, "", {}},
  };
  for (const auto& row : kRows) {
    const auto choice = resolve_node_name(row.from);
    EXPECT_EQ(choice.name, row.name) << choice.why;
    for (const char* words : row.words) {
      EXPECT_THAT(choice.why, HasSubstr(words));
    }
  }
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
  EXPECT_FALSE(needs_other_hosts(on_host(none, {}, dynamic())));
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

TEST(NodeName, ASlurmdThatMayBeAnotherClustersDoesNotConfuse) {
  const SlurmConf conf = conf_with({line("n1", "vm")});
  auto both = running({"n1", "other"});
  both[1].conf_known = false;
  EXPECT_EQ(resolve_node_name({"", both, &conf, "vm", "kube"}).name, "n1");
  both[1].options.dynamic = true;  // in no slurm.conf
  EXPECT_EQ(resolve_node_name({"", both, &conf, "vm", "kube"}).name, "");
}

}  // namespace
}  // namespace slurmlet::slurm
