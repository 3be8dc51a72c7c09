#include "slurm/answers/sinfo_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "utc_test.h"

namespace slurmlet::slurm {
namespace sinfo_table_test {

using node::Gres;
using node::SlurmNodeRecord;
using testing::ElementsAre;
using testing::IsEmpty;

class SinfoTableText : public UtcTest {};

// "name STATE partition,partition" of every node.
std::vector<std::string> summary(const NodesAnswer& capture) {
  std::vector<std::string> out;
  for (const auto& node : capture.nodes) {
    std::string text = node.name + " " + node.state.raw() + " ";
    for (const auto& partition : node.partitions) {
      text += partition + ",";
    }
    out.push_back(text);
  }
  return out;
}

NodesAnswer read(const std::string& text) {
  const auto capture = parse_sinfo_table(text);
  EXPECT_TRUE(capture) << text;
  return capture.value_or(NodesAnswer{});
}

const std::string kTwelve =
    "NODELIST|STATE|STATE|CPUS(A/I/O/T)|MEMORY|FREE_MEM|GRES|REASON|TIMESTAMP|USER|CPU_LOAD|"
    "PARTITION\n";

TEST_F(SinfoTableText, ReadsTwelveColumns) {
  const auto capture =
      read(kTwelve +
           "cpu02|draining|drng|3/0/5/8|4096|22863|gpu:a:1(S:0)|Kernel|State=DOWN fake|2026-11-20T"
           "23:08:44|root|0.62|batch\n"
           "cpu02|draining|drng|3/0/5/8|4096|22863|gpu:a:1(S:0)|Kernel|State=DOWN fake|2026-11-20T"
           "23:08:44|root|0.62|debug*\n");
  EXPECT_THAT(capture.not_understood, IsEmpty());
  ASSERT_THAT(summary(capture), ElementsAre("cpu02 MIXED+DRAIN batch,debug,"));
  const auto& record = capture.nodes.front();
  EXPECT_EQ(record.allocated_cpus, 3);
  EXPECT_EQ(record.cpus, 8);
  EXPECT_EQ(record.real_memory_mib, 4096);
  EXPECT_EQ(record.free_memory_mib, 22863);
  EXPECT_EQ(record.cpu_load, 0.62);
  EXPECT_EQ(record.kind, node::AnswerKind::kOneNode);
  EXPECT_THAT(record.gres, ElementsAre(Gres{"gpu", "a", 1, "0"}));
  EXPECT_EQ(record.reason, "Kernel|State=DOWN fake");
  EXPECT_EQ(record.reason_user, "root");
  EXPECT_EQ(record.reason_time, WallTime{std::chrono::seconds{1795216124}});
}

struct WordCase {
  const char* words;  // %T|%t|%C
  const char* raw;
};

TEST_F(SinfoTableText, CountsOfCpusTellWhatAWordHides) {
  const std::vector<WordCase> cases{
      {"draining|drng|8/0/0/8", "ALLOCATED+DRAIN"},
      {"draining|drng|3/0/5/8", "MIXED+DRAIN"},
      {"draining@|drng@|2/0/6/8", "MIXED+DRAIN+REBOOT_REQUESTED"},
      {"draining|drng|0/0/8/8", "ALLOCATED+DRAIN"},
      {"fail|fail|1/7/0/8", "MIXED+FAIL"},
      {"fail|fail|0/8/0/8", "IDLE+FAIL"},
      {"completing|comp|2/6/0/8", "MIXED+COMPLETING"},
      {"completing|comp|0/8/0/8", "IDLE+COMPLETING"},
      {"allocated+|alloc+|8/0/0/8", "ALLOCATED+COMPLETING"},
      {"drained|drain|0/0/8/8", "IDLE+DRAIN"},
      {"down*|down*|0/0/8/8", "DOWN+NOT_RESPONDING"},
      {"mixed-|mix-|3/5/0/8", "MIXED+PLANNED"},
      {"inval|inval|0/0/8/8", "UNKNOWN+INVALID_REG"},
  };
  for (const auto& c : cases) {
    const auto text = kTwelve + "n1|" + c.words + "|1|1|(null)|none|Unknown|Unknown|0.10|p\n";
    EXPECT_THAT(summary(read(text)), ElementsAre(std::string{"n1 "} + c.raw + " p,")) << text;
  }
}

TEST_F(SinfoTableText, ReadsSeveralNodes) {
  const auto capture = read(
      "NODELIST|PARTITION|STATECOMPLETE|CPUS(A/I/O/T)|MEMORY|ALLOCMEM|FREE_MEM|CPU_LOAD|GRES|"
      "GRES_USED|VERSION|AVAIL_FEATURES|CLUSTER|TIMESTAMP|USER|REASON|\n"
      "n1|p|mixed+drain|3/5/0/"
      "8|100|50|40|0.50|gpu:2|gpu:1(IDX:0)|25.11.0|f|c|1795216124|root|a|b|\n"
      "n2|p|idle|0/8/0/8|100|0|N/A|0.00|(null)|gpu:0|25.11.0|f|c|Unknown|root|none|\n");
  EXPECT_THAT(capture.not_understood, IsEmpty());
  ASSERT_THAT(summary(capture), ElementsAre("n1 MIXED+DRAIN p,", "n2 IDLE p,"));
  EXPECT_EQ(capture.nodes[0].reason, "a|b");
  EXPECT_EQ(capture.nodes[0].allocated_memory_mib, 50);
  EXPECT_EQ(capture.nodes[0].version, "25.11.0");
  EXPECT_EQ(capture.nodes[0].cluster, "c");
  EXPECT_FALSE(capture.nodes[1].cpu_load);
  EXPECT_EQ(capture.nodes[1].reason_user, "") << "newer releases print root without a reason";
}

TEST_F(SinfoTableText, FurtherLinesOfAReasonAreNamed) {
  const auto capture =
      read("NODELIST|STATE|REASON\nn1|drained|line one\nline two State=IDLE\nn2|idle|none\n");
  EXPECT_THAT(summary(capture), ElementsAre("n1 IDLE+DRAIN ", "n2 IDLE "));
  EXPECT_EQ(capture.nodes[0].reason, "line one");
  EXPECT_THAT(capture.not_understood, ElementsAre("line two State=IDLE"));
}

// As features, "up" would be shown of every node.
TEST_F(SinfoTableText, AvailIsNoCutHeading) {
  const auto capture = read(
      "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
      "main* up infinite 1 idle n01\n");
  EXPECT_THAT(summary(capture), ElementsAre("n01 IDLE main,"));
  EXPECT_THAT(capture.nodes[0].features, IsEmpty());
  EXPECT_THAT(read("NODELIST AVAIL_FE STATE\nn01 fast idle\n").nodes[0].features,
              ElementsAre("fast"));
}

// Two colons and a blank behind three letters.
TEST_F(SinfoTableText, ARowIsNoDate) {
  const auto capture = read(
      "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
      "gpu up 1-00:00:00 1 down n01\n"
      "cpu up 7-00:00:00 1 idle n02\n"
      "old up 7-00:00:00 0 n/a\n");
  EXPECT_THAT(summary(capture), ElementsAre("n01 DOWN gpu,", "n02 IDLE cpu,"));
  EXPECT_THAT(capture.not_understood, IsEmpty());
}

// Somebody's reason must not make nodes.
TEST_F(SinfoTableText, HeadingsWithinATextAreNone) {
  const auto capture = read(
      "REASON|NODELIST|STATE\nbad|n1|down\nNODELIST|STATE|REASON\n"
      "x|n2|down\n");
  EXPECT_THAT(summary(capture), ElementsAre("n1 DOWN ", "n2 DOWN "));
  EXPECT_THAT(capture.not_understood, ElementsAre("NODELIST|STATE|REASON"));
}

TEST_F(SinfoTableText, WhatIsNoStateMakesNoNodeWhereCellsMayBeEmpty) {
  const auto capture = read("NODELIST COMMENT STATE REASON\nnode1 down Kill task failed\n");
  EXPECT_THAT(capture.nodes, IsEmpty());
  EXPECT_THAT(capture.not_understood, ElementsAre("State=task"));
}

TEST_F(SinfoTableText, ReadsTheTables) {
  const std::vector<std::string> tables{
      "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
      "batch*       up   infinite      2  drain cpu[01-02]\n"
      "gpu          up 1-00:00:00      1   mix- gpu1\n"
      "all          up   infinite      2  drain cpu[01-02]\n"
      "empty        up   infinite      0    n/a \n",
      "Sat Nov 21 20:30:28 2026\n"
      "PARTITION AVAIL  TIMELIMIT   JOB_SIZE ROOT OVERSUBS     GROUPS  NODES       STATE "
      "RESERVATION NODELIST\n"
      "batch*       up   infinite 1-infinite   no       NO        all      2     drained           "
      "  "
      "cpu[01-02]\n"
      "gpu          up 1-00:00:00 1-infinite   no       NO        all      1      mixed-           "
      "  "
      "gpu1\n"
      "all          up   infinite 1-infinite   no       NO        all      2     drained           "
      "  "
      "cpu[01-02]\n",
      "NODELIST   NODES PARTITION STATE\n"
      "cpu01          1    batch* drain\n"
      "cpu02          1    batch* drain\n"
      "gpu1           1       gpu mix-\n"
      "cpu01          1       all drain\n"
      "cpu02          1       all drain\n",
  };
  for (const auto& text : tables) {
    const auto capture = read(text);
    EXPECT_THAT(capture.not_understood, IsEmpty()) << text;
    EXPECT_THAT(summary(capture), testing::UnorderedElementsAre("cpu01 IDLE+DRAIN batch,all,",
                                                                "cpu02 IDLE+DRAIN batch,all,",
                                                                "gpu1 MIXED+PLANNED gpu,"))
        << text;
  }
}

TEST_F(SinfoTableText, ReadsTheLongTableOfNodes) {
  const std::string rows =
      "cpu01          1    batch*    drained 8       2:4:1   4096     1000      1 intel,hd disk "
      "sdb "
      "gone\n"
      "gpu1           1       gpu       idle 16      1:8:2   8192     1000      1   (null) none\n";
  const auto capture = read(
      "Sat Nov 21 20:30:28 2026\nNODELIST   NODES PARTITION       STATE CPUS    S:C:T MEMORY "
      "TMP_DISK WEIGHT AVAIL_FE REASON              \n" +
      rows);
  EXPECT_THAT(summary(capture), ElementsAre("cpu01 IDLE+DRAIN batch,", "gpu1 IDLE gpu,"));
  EXPECT_EQ(capture.nodes[0].reason, "disk sdb gone");
  EXPECT_EQ(capture.nodes[0].real_memory_mib, 4096);
  EXPECT_THAT(capture.not_understood, IsEmpty());
}

TEST_F(SinfoTableText, ReadsTheListOfReasons) {
  const auto capture = read(
      "REASON               USER      TIMESTAMP           NODELIST\n"
      "disk sdb broken      root      2026-11-20T23:08:44 cpu[01-02]\n");
  EXPECT_THAT(summary(capture), ElementsAre("cpu01  ", "cpu02  "));
  EXPECT_EQ(capture.nodes[1].reason, "disk sdb broken");
  EXPECT_EQ(capture.nodes[1].reason_user, "root");
}

TEST_F(SinfoTableText, SumsOverSeveralNodesAreNotTheNodes) {
  const auto capture = read(
      "NODELIST|STATE|CPUS(A/I/O/T)|MEMORY|GRES\ncpu[1-2]|idle|0/16/0/16|"
      "4096+|gpu:2\ncpu3|idle|0/8/0/8|4096|gpu:2\n");
  ASSERT_EQ(capture.nodes.size(), 3U);
  EXPECT_FALSE(capture.nodes[0].cpus);
  EXPECT_FALSE(capture.nodes[0].real_memory_mib);
  EXPECT_EQ(capture.nodes[2].cpus, 8);
  EXPECT_THAT(capture.nodes[0].gres, ElementsAre(Gres{"gpu", "", 2}));
}

TEST_F(SinfoTableText, HeadingsNameTheColumns) {
  const auto capture = read(
      "NODELIST|STATECOMPLETE|ACTIVE_FEATURES|VERSION|GRES_USED|USER|\n"
      "n1|mixed+cloud|a,b|25.11.0|gpu:2(IDX:0-1)|root(0)|\n");
  ASSERT_THAT(summary(capture), ElementsAre("n1 MIXED+CLOUD "));
  EXPECT_THAT(capture.nodes[0].active_features, ElementsAre("a", "b"));
  EXPECT_THAT(capture.nodes[0].gres_used, ElementsAre(Gres{"gpu", "", 2, "", "0-1"}));
  EXPECT_THAT(read("STATE\nidle\n").nodes, testing::SizeIs(1));
  EXPECT_THAT(read("NODELIST STATE\n").nodes, IsEmpty());
}

TEST_F(SinfoTableText, AStateAloneIsThatOfAnUnnamedNode) {
  EXPECT_THAT(summary(read("STATE\nmixed\nmixed\n")), ElementsAre(" MIXED ")) << "two partitions";
  const auto two = read("STATE\nmixed\nidle\n");
  EXPECT_THAT(two.not_understood, ElementsAre("node '' has two states, MIXED and IDLE"));
}

TEST_F(SinfoTableText, WhatAWordCanHideIsNotReported) {
  const auto words = read("NODELIST|STATE\nn1|drained\nn2|idle~\nn3|down\n");
  EXPECT_THAT(words.nodes[0].unreported_states, ElementsAre("DOWN", "IDLE"));
  EXPECT_THAT(words.nodes[1].unreported_states, ElementsAre("NOT_RESPONDING"));
  EXPECT_THAT(words.nodes[2].unreported_states, ElementsAre("COMPLETING"));
  const auto complete =
      read("NODELIST|STATE|STATECOMPLETE|CPUS(A/I/O/T)|\nn1|drained|down+drain|3/0/5/8|\n");
  EXPECT_THAT(summary(complete), ElementsAre("n1 DOWN+DRAIN "));
  EXPECT_THAT(complete.nodes[0].unreported_states, IsEmpty());
}

TEST_F(SinfoTableText, CarriesUnknownWordsThroughAndNamesThem) {
  const auto capture = read("NODELIST|STATE\nn1|hibernating\n");
  EXPECT_THAT(summary(capture), ElementsAre("n1 HIBERNATING "));
  EXPECT_THAT(capture.not_understood, ElementsAre("State=hibernating"));
}

TEST_F(SinfoTableText, TheClusterIsReadFromItsLine) {
  const auto capture = read(
      "CLUSTER: a\nNODELIST   NODES PARTITION STATE\nn1 1 p idle\n\nCLUSTER: b\n"
      "NODELIST   NODES PARTITION STATE\nn2 1 p down\n");
  ASSERT_THAT(summary(capture), ElementsAre("n1 IDLE p,", "n2 DOWN p,"));
  EXPECT_EQ(capture.nodes[0].cluster, "a");
  EXPECT_EQ(capture.nodes[1].cluster, "b");
}

TEST_F(SinfoTableText, TwoStatesOfOneNodeAreNamed) {
  const auto capture = read("NODELIST NODES PARTITION STATE\nn1 1 p idle\nn1 1 q down\n");
  EXPECT_THAT(summary(capture), ElementsAre("n1 IDLE p,q,"));
  EXPECT_THAT(capture.not_understood, ElementsAre("node 'n1' has two states, IDLE and DOWN"));
}

TEST_F(SinfoTableText, OtherTextIsNoOutputOfSinfo) {
  for (const char* text :
       {"", "\n", "JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n",
        "PID      JOBID    STEPID   LOCALID GLOBALID\n", "idle\n", "n1 idle\n", "gpu01|idle\n",
        "cpu01|idle|idle|0/8/0/8|4096|22863|(null)|none|Unknown|root|0.62|batch\n", "USER\nidle\n",
        "<html>|idle|0/8/0/8</html>\n"}) {
    EXPECT_FALSE(parse_sinfo_table(text)) << text;
  }
}

TEST_F(SinfoTableText, TheHeadingOfAReservationAloneHasNoRowWithoutOne) {
  for (const char* text : {"RESERVATION\n", "RESER\n", "RESERVATION|\n\n"}) {
    const auto capture = parse_sinfo_table(text);
    EXPECT_TRUE(!capture || capture->nodes.empty()) << text;
  }
}

TEST_F(SinfoTableText, ALongHostListIsNotExpandedForEver) {
  std::string text = "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n";
  for (int i = 0; i < 100; ++i) {
    text += "p up infinite 100000 idle n[1-100000]\n";
  }
  const auto capture = read(text);
  EXPECT_EQ(capture.nodes.size(), 100'000U);
  EXPECT_THAT(capture.not_understood, testing::SizeIs(98));
}

}  // namespace sinfo_table_test
}  // namespace slurmlet::slurm
