#include "slurm/local/conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "slurm/local/conf_lines.h"

namespace slurmlet::slurm {
namespace {

using fakes::TempTree;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(ConfLines, ReadsPairs) {
  EXPECT_THAT(parse_conf_line("NodeName=n1 CPUs=8  Gres=gpu:2\t").pairs,
              ElementsAre(Pair("nodename", "n1"), Pair("cpus", "8"), Pair("gres", "gpu:2")));
  EXPECT_THAT(parse_conf_line("ClusterName = alps").pairs,
              ElementsAre(Pair("clustername", "alps")));
  EXPECT_THAT(parse_conf_line("Reason=\"two words\" A=b").pairs,
              ElementsAre(Pair("reason", "two words"), Pair("a", "b")));
  EXPECT_THAT(parse_conf_line("Params+=x nonsense K=v").pairs,
              ElementsAre(Pair("params", "x"), Pair("k", "v")));
  EXPECT_THAT(parse_conf_line("Open=\"never closed").pairs,
              ElementsAre(Pair("open", "never closed")));
  EXPECT_THAT(parse_conf_line("").pairs, IsEmpty());
  EXPECT_THAT(parse_conf_line("=x").pairs, IsEmpty());
}

struct LinesRead {
  std::vector<std::string> keys;
  Result<std::vector<std::string>> left_out;
};

LinesRead lines_of(const std::string& path) {
  std::vector<std::string> keys;
  auto left_out = for_each_conf_line(path, {}, [&](const ConfLine& line) {
    keys.push_back(line.pairs.front().first + "=" + line.pairs.front().second);
  });
  return {keys, left_out};
}

// As slurmd 22.05 and 24.11 read them.
TEST(ConfLines, ABackslashThatIsEscapedEscapesNothing) {
  TempTree tree;
  tree.file("slurm.conf",
            "A=1\\\\\nB=2\\\\ \t\r\nC=3\\\\\\\n4\nD=5\\\\#6\nE=7\\\\\\#8\nF=\"a \\# "
            "b\"\nNode\\Name=n\\1\n"
            "G=9 \\ # comment\n H=10\nI=\\\\\\\\\nJ=11\\");
  EXPECT_THAT(lines_of(tree.path("slurm.conf")).keys,
              ElementsAre("a=1\\", "b=2\\", "c=3\\4", "d=5\\", "e=7\\#8", "f=a # b", "nodename=n1",
                          "g=9", "i=\\\\", "j=11"));
}

TEST(ConfLines, CommentsContinuationsAndIncludes) {
  TempTree tree;
  tree.file("etc/slurm.conf",
            "# comment\nA=1 # rest\nB=\\\n2 \nC=a\\#b\nInclude nodes.conf\n include  sub/x.conf\n"
            "D=last \\")
      .file("etc/nodes.conf", "E=5\r\n")
      .file("etc/sub/x.conf", "F=6");
  const auto read = lines_of(tree.path("etc/slurm.conf"));
  EXPECT_THAT(read.keys, ElementsAre("a=1", "b=2", "c=a#b", "e=5", "f=6", "d=last"));
  ASSERT_TRUE(read.left_out);
  EXPECT_THAT(*read.left_out, IsEmpty());
}

TEST(ConfLines, AMissingIncludeCostsItsOwnLinesOnly) {
  TempTree tree;
  tree.file("a.conf", "A=1\nInclude gone.conf\nB=2\nInclude part.conf\nC=3\n")
      .file("part.conf", "Include gone-too.conf\nD=4\n");
  const auto read = lines_of(tree.path("a.conf"));
  EXPECT_THAT(read.keys, ElementsAre("a=1", "b=2", "d=4", "c=3"));
  ASSERT_TRUE(read.left_out);
  EXPECT_THAT(*read.left_out, ElementsAre(HasSubstr(tree.path("gone.conf")),
                                          HasSubstr(tree.path("gone-too.conf"))));
}

TEST(ConfLines, FilesThatIncludeManyAreAnError) {
  TempTree tree;
  std::string ten;
  for (int i = 0; i < 10; ++i) {
    ten += "Include next.conf\n";
  }
  tree.file("slurm.conf", ten);
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    std::string text = ten;
    for (auto at = text.find("next"); at != std::string::npos; at = text.find("next", at)) {
      text.replace(at, 4, std::string(1, static_cast<char>(name[0] + 1)));
    }
    tree.file(std::string{name} + ".conf", text);
  }
  tree.file("next.conf", "Include a.conf\n").file("g.conf", "X=1\n");
  const auto read = lines_of(tree.path("slurm.conf"));
  ASSERT_FALSE(read.left_out);
  EXPECT_THAT(read.left_out.error().message, HasSubstr("1000 files"));
  tree.file("circle.conf", "Include circle.conf\n");
  const auto circle = lines_of(tree.path("circle.conf"));
  ASSERT_FALSE(circle.left_out);
  EXPECT_EQ(circle.left_out.error().code, Code::kInvalid);
}

TEST(ConfLines, TheClusterNameStandsForPercentC) {
  TempTree tree;
  tree.file("slurm.conf", "ClusterName=Alps\nInclude %c/nodes.%c.conf\n")
      .file("alps/nodes.alps.conf", "A=1\n")
      .file("early.conf", "Include %c.conf\nClusterName=alps\n");
  EXPECT_THAT(lines_of(tree.path("slurm.conf")).keys, ElementsAre("clustername=Alps", "a=1"));
  const auto early = lines_of(tree.path("early.conf"));
  EXPECT_THAT(early.keys, ElementsAre("clustername=alps"));
  ASSERT_TRUE(early.left_out);
  EXPECT_THAT(*early.left_out, ElementsAre(HasSubstr("%c.conf")));
}

SlurmConf conf_of(const TempTree& tree, const ConfIdentity& identity) {
  auto conf = read_slurm_conf(tree.path("slurm.conf"), identity);
  EXPECT_TRUE(conf);
  return conf ? *conf : SlurmConf{};
}

TEST(SlurmConfTest, ControllersBehindOneAddressAreNamedByIt) {
  TempTree tree;
  tree.file("slurm.conf", R"(
ClusterName=alps
SlurmctldHost=head1(10.0.0.1)
SlurmctldHost=head2(10.0.0.2)
SlurmctldAddr=slurm-vip
SlurmctldPort=6820-6825
NodeName=n1
)");
  const auto conf = conf_of(tree, {"n1", {}});
  EXPECT_EQ(conf.virtual_address, "slurm-vip");
  EXPECT_EQ(conf.controllers.size(), 2U);
  EXPECT_THAT(conf_facts(conf, "n1", {}).controllers,
              ElementsAre("slurm-vip:6820, the address of head1 and head2"));
}

TEST(SlurmConfTest, ReadsTheClusterAndTheNode) {
  TempTree tree;
  tree.file("slurm.conf", R"(
CLUSTERNAME=Alps
Include gone.conf
SlurmctldHost=head1(10.0.0.1)
SlurmctldHost=head2
SlurmctldPort=6820-6825
SlurmdPort=7000
TaskPluginParam=autobind=threads
SlurmctldParameters=enable_configless,RL_Enable,rl_bucket_size=10
SlurmdPidFile=/run/slurmd.%n.pid
SlurmdSpoolDir=/var/spool/slurmd.%h
NodeName=DEFAULT CPUs=128 ThreadsPerCore=2 MemSpecLimit=2048
NodeName=nid[000001-010000] CoreSpecCount=2 Gres=gpu:a100:4 Port=7001
NodeName=DEFAULT MemSpecLimit=0
NodeName=login1 CPUSpecList=0-1,4
PartitionName=normal Nodes=ALL ClusterName=wrong
)");
  const auto conf = conf_of(tree, {"nid000042.example.org", {"login1"}});
  EXPECT_EQ(conf.cluster_name, "alps");
  EXPECT_THAT(conf.left_out, ElementsAre(HasSubstr("gone.conf")));
  EXPECT_THAT(conf.controllers, ElementsAre("head1", "head2"));
  EXPECT_EQ(conf.controller_port, 6820);
  EXPECT_TRUE(conf.limits_rate);
  EXPECT_EQ(conf.pid_file, "/run/slurmd.%n.pid");
  ASSERT_EQ(conf.nodes.size(), 2U) << "other nodes are not kept";
  const NodeLine* node = conf.find_node("nid000042");
  ASSERT_NE(node, nullptr);
  EXPECT_THAT(node->gres, ElementsAre(node::Gres{"gpu", "a100", 4}));

  const auto facts = conf_facts(conf, "nid000042", {"nvidia", {{"/dev/nvidia0"}}});
  EXPECT_EQ(facts.path, tree.path("slurm.conf").string());
  EXPECT_EQ(facts.cluster_name, "alps");
  EXPECT_THAT(facts.controllers, ElementsAre("head1:6820", "head2:6820"));
  EXPECT_EQ(facts.node_name, "nid000042");
  EXPECT_EQ(facts.core_spec_cpus, 4) << "cores times threads";
  EXPECT_EQ(facts.mem_spec_limit_mib, 2048);
  EXPECT_EQ(facts.gpu_vendor, "nvidia");
  EXPECT_THAT(facts.gpu_files, ElementsAre(ElementsAre("/dev/nvidia0")));
  EXPECT_THAT(facts.gres, ElementsAre(node::Gres{"gpu", "a100", 4}));

  const auto login = conf_facts(conf, "login1", {});
  EXPECT_EQ(login.core_spec_cpus, 4) << "whole cores";
  EXPECT_EQ(login.mem_spec_limit_mib, 0);
}

TEST(SlurmConfTest, DefaultsAndUnknownNode) {
  TempTree tree;
  tree.file("slurm.conf", "ControlMachine=old1\nBackupController=old2\nNodeName=other\n");
  const auto conf = conf_of(tree, {"vm", {}});
  EXPECT_EQ(conf.pid_file, "/var/run/slurmd.pid");
  EXPECT_EQ(conf.spool_dir, "/var/spool/slurmd");
  EXPECT_THAT(conf.nodes, IsEmpty());
  const auto facts = conf_facts(conf, "vm", {});
  EXPECT_EQ(facts.node_name, "");
  EXPECT_EQ(facts.core_spec_cpus, 0);
  EXPECT_THAT(facts.controllers, ElementsAre("old1:6817", "old2:6817"));
}

TEST(SlurmConfTest, CountsTheNodesOfTheSite) {
  const struct {
    const char* text;
    std::int64_t nodes;
    std::int64_t at_once = nodes;
  } kRows[] = {
      {"", 0},
      {"NodeName=DEFAULT CPUs=4\nNodeName=n1\n", 1},
      {"NodeName=n[0001-6000] NodeHostname=h[1-6000]\nNodeName=login[1-4],viz\n", 6005},
      {"NodeName=n[1-10]\nMaxNodeCount=2000\n", 2000, 10},
      {"MaxNodeCount=5\nNodeName=n[1-10]\n", 10},
      {"NodeName=n[1-10]\nMaxNodeCount=many\n", 10},
      {"NodeName=n[1-10]\nMaxNodeCount=65536\n", 65536, 10},
      {"NodeName=n[1-10]\nNodeName=c[1-500] State=cloud\nNodeName=f[1-90] State=FUTURE\n", 600, 10},
      {"NodeName=DEFAULT State=CLOUD\nNodeName=c[1-5]\nNodeName=n[1-3] State=UNKNOWN\n", 8, 3},
  };
  for (const auto& row : kRows) {
    TempTree tree;
    tree.file("slurm.conf", std::string{"ClusterName=alps\n"} + row.text);
    EXPECT_EQ(conf_of(tree, {}).node_count, row.nodes) << row.text;
    EXPECT_EQ(conf_of(tree, {}).nodes_at_once, row.at_once) << row.text;
  }
}

TEST(SlurmConfTest, TellsWhetherMungeIsUsed) {
  for (const auto& [line, used] : {std::pair{"", true},
                                   {"AuthType=auth/munge", true},
                                   {"AuthType=Munge", true},
                                   {"AuthType=auth/slurm", false},
                                   {"AuthType=slurm", false}}) {
    TempTree tree;
    tree.file("slurm.conf", line);
    EXPECT_EQ(conf_of(tree, {}).uses_munge, used) << line;
  }
}

// Each row as slurmctld 22.05 and 24.11 have it: CPUTot - CPUEfctv of `scontrol show node`.
TEST(SlurmConfTest, SpecialisedCoresAreCountedAsSlurmCountsCpus) {
  struct Row {
    const char* line;
    bool counts_cores;
    std::int64_t core_spec_cpus;
  };
  const Row kRows[] = {
      {"CPUs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CoreSpecCount=2", true, 2},
      {"CPUs=128 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CoreSpecCount=2", false, 4},
      {"Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CoreSpecCount=2", false, 4},
      {"CPUs=64 Boards=1 SocketsPerBoard=2 CoresPerSocket=32 ThreadsPerCore=2 CoreSpecCount=2",
       true, 2},
      {"Procs=64 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CPUSpecList=0,1", true, 2},
      {"CPUs=128 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CPUSpecList=0,1", false, 2},
      {"CPUs=128 Sockets=2 CoresPerSocket=32 ThreadsPerCore=2 CPUSpecList=0,3", false, 4},
      {"CPUs=64 CoresPerSocket=32 ThreadsPerCore=2 CoreSpecCount=1", false, 2},
      {"CPUs=64 CoreSpecCount=2", false, 2},
      {"CPUs=64", false, 0},
  };
  for (const Row& row : kRows) {
    TempTree tree;
    tree.file("slurm.conf", std::string{"NodeName=nid1 "} + row.line);
    const SlurmConf conf = conf_of(tree, {"nid1", {}});
    ASSERT_NE(conf.find_node("nid1"), nullptr);
    EXPECT_EQ(conf.find_node("nid1")->counts_cores(), row.counts_cores) << row.line;
    const auto facts = conf_facts(conf, "nid1", {});
    EXPECT_EQ(facts.core_spec_cpus, row.core_spec_cpus) << row.line;
    EXPECT_EQ(facts.cpus, conf.find_node("nid1")->cpus);
  }
}

TEST(SlurmConfTest, NodeHostnamePairsWithNodeName) {
  TempTree tree;
  tree.file("slurm.conf",
            "NodeName=n[1-3] NodeHostname=host[11-13] CoreSpecCount=1\n"
            "NodeName=a,b NodeHostname=vm\n");
  auto conf = conf_of(tree, {"host12", {}});
  ASSERT_EQ(conf.nodes.size(), 1U);
  EXPECT_EQ(conf.nodes[0].name, "n2");
  EXPECT_EQ(conf.nodes[0].hostname, "host12");
  conf = conf_of(tree, {"vm.cluster", {}});
  ASSERT_EQ(conf.nodes.size(), 2U) << "several slurmd on one machine";
  conf = conf_of(tree, {"elsewhere", {"n3"}});
  ASSERT_EQ(conf.nodes.size(), 1U);
  EXPECT_EQ(conf.nodes[0].hostname, "host13");
}

TEST(SlurmConfTest, AMissingFileIsAnError) {
  const auto conf = read_slurm_conf("/nonexistent/slurm.conf", {});
  ASSERT_FALSE(conf);
  EXPECT_EQ(conf.error().code, Code::kNotFound);
  EXPECT_THAT(conf.error().message, HasSubstr("/nonexistent/slurm.conf"));
}

TEST(SlurmConfTest, ExpandsPatterns) {
  EXPECT_EQ(expand_pattern("/run/slurmd.%n.pid", "nid1", "vm.x.org"), "/run/slurmd.nid1.pid");
  EXPECT_EQ(expand_pattern("/spool/%h/%n", "nid1", "vm.x.org"), "/spool/vm/nid1");
  EXPECT_EQ(expand_pattern("100%%/%x/%", "n", "h"), "100%/%x/%");
}

TEST(SlurmConfTest, SearchesAsSlurmDoes) {
  TempTree tree;
  tree.file("b/slurm.conf", "").file("c/slurm.conf", "");
  ConfSearch search;
  search.defaults = {tree.path("a/slurm.conf"), tree.path("b/slurm.conf"),
                     tree.path("c/slurm.conf")};
  EXPECT_EQ(find_slurm_conf(search), tree.path("b/slurm.conf").string());
  search.environment = "/from/environment";
  EXPECT_EQ(find_slurm_conf(search), "/from/environment");
  search.configured = "/from/settings";
  EXPECT_EQ(find_slurm_conf(search), "/from/settings");
  EXPECT_EQ(find_slurm_conf({"", "", {"/nonexistent"}}), "");
  EXPECT_THAT(ConfSearch{}.defaults,
              ElementsAre("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                          "/run/slurm/conf/slurm.conf", "/var/spool/slurmd/conf-cache/slurm.conf"));
}

TEST(GresConf, TellsTheVendor) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"AutoDetect=nvml", "nvidia"},
      {"AutoDetect=nvidia\n", "nvidia"},
      {"autodetect=RSMI", "amd"},
      {"AutoDetect=oneapi", "intel"},
      {"AutoDetect=off", ""},
      {"AutoDetect=nrt", ""},
      {"Name=gpu Type=a100 File=/dev/nvidia[0-3]", "nvidia"},
      {"Name=gpu File=/dev/nvidia0,/dev/nvidia1", "nvidia"},
      {"Name=gpu File=/dev/dri/renderD[128-135]", ""},
      {"AutoDetect=rsmi\nName=gpu File=/dev/dri/renderD[128-135]", "amd"},
      {"Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21", "nvidia"},
      // two vendors in one node
      {"AutoDetect=nvml\nName=gpu Type=mi210 File=/dev/dri/renderD[128-131]", ""},
      {"Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/dri/renderD128", ""},
      {"Name=gpu File=/dev/kfd,/dev/dri/renderD128", "amd"},
      {"Name=nic File=/dev/nvidia0", ""},
      {"Name=gpu File=/dev/tty0", ""},
      {"NodeName=nid[1-9] Name=gpu File=/dev/nvidia0", "nvidia"},
      {"NodeName=other[1-9] Name=gpu File=/dev/nvidia0", ""},
      {"NodeName=nid5 AutoDetect=rsmi\nAutoDetect=nvml", "amd"},
      {"NodeName=nid5 AutoDetect=off\nAutoDetect=nvml", ""},
      {"Name=gpu File=/dev/nvidia0\nName=gpu File=/dev/kfd", ""},
      {"AutoDetect=nvml\nName=gpu File=/dev/nvidia0", "nvidia"},
      {"# nothing", ""},
  };
  for (const auto& [text, vendor] : cases) {
    TempTree tree;
    tree.file("gres.conf", text);
    EXPECT_EQ(read_gpu_conf(tree.path("slurm.conf"), "nid5").vendor, vendor) << text;
  }
  EXPECT_EQ(read_gpu_conf("/nonexistent/slurm.conf", "nid5"), GpuConf{});
  EXPECT_EQ(read_gpu_conf("", "nid5"), GpuConf{});
}

TEST(GresConf, TellsTheDeviceFilesOfEachGpuOfOneNode) {
  using Gpus = std::vector<std::vector<std::string>>;
  const std::vector<std::pair<const char*, Gpus>> cases{
      {"Name=gpu Type=a100 File=/dev/nvidia[0-2]",
       {{"/dev/nvidia0"}, {"/dev/nvidia1"}, {"/dev/nvidia2"}}},
      {"Name=gpu File=/dev/nvidia[0,2]", {{"/dev/nvidia0"}, {"/dev/nvidia2"}}},
      {"Name=gpu File=/dev/nvidia1,/dev/nvidia0", {{"/dev/nvidia1"}, {"/dev/nvidia0"}}},
      {"Name=gpu File=/dev/dri/renderD[128-129]",
       {{"/dev/dri/renderD128"}, {"/dev/dri/renderD129"}}},
      {"Name=gpu Type=a File=/dev/nvidia0\nName=gpu Type=b File=/dev/nvidia1",
       {{"/dev/nvidia0"}, {"/dev/nvidia1"}}},
      {"Name=gpu File=/dev/nvidia0 Cores=0-3\nName=gpu File=/dev/nvidia0", {{"/dev/nvidia0"}}},
      {"name=GPU file=\"/dev/tty1\"", {{"/dev/tty1"}}},
      // other nodes, other things
      {"NodeName=nid[1-9] Name=gpu File=/dev/nvidia0", {{"/dev/nvidia0"}}},
      {"NodeName=other[1-9] Name=gpu File=/dev/nvidia[0-7]", {}},
      {"Name=nic File=/dev/mlx0\nName=shard Count=8 File=/dev/nvidia0", {}},
      {"Name=shard Count=8 MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap21", {}},
      {"Name=mps Count=100 File=/dev/nvidia0", {}},
      // slices have several files each, as nvidia-smi's users write them
      {"Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap[21-22]\n"
       "Name=gpu Type=1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap30",
       {{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"},
        {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap30"}}},
      {"Name=gpu File=/dev/nvidia-caps/nvidia-cap[21,30]",
       {{"/dev/nvidia-caps/nvidia-cap21"}, {"/dev/nvidia-caps/nvidia-cap30"}}},
      {"Name=gpu MultipleFiles=/dev/dri/card[0-1]\nName=gpu MultipleFiles=/dev/dri/card[0-1]",
       {{"/dev/dri/card0", "/dev/dri/card1"}, {"/dev/dri/card0", "/dev/dri/card1"}}},
      // no file at all
      {"Name=gpu Count=4", {}},
      {"AutoDetect=nvml", {}},
      {"Name=gpu File=/dev/nvidia[0-", {}},
      {"Name=gpu File=/dev/nvidia[0-99999999]", {}},
      {"Name=gpu File=nvidia0", {}},
      {"Name=gpu MultipleFiles=", {}},
  };
  for (const auto& [text, files] : cases) {
    TempTree tree;
    tree.file("gres.conf", text);
    EXPECT_EQ(read_gpu_conf(tree.path("slurm.conf"), "nid5").files, files) << text;
  }
}

}  // namespace
}  // namespace slurmlet::slurm
