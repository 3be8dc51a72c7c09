#include "slurm/answers/scontrol_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "fixture.h"
#include "utc_test.h"

namespace slurmlet::slurm {
namespace scontrol_text_test {

using node::Gres;
using node::SlurmNodeRecord;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

WallTime at(std::int64_t seconds) { return WallTime{std::chrono::seconds{seconds}}; }

class ScontrolText : public UtcTest {};

// One node in the long form; `extra` stands behind AveWatts.
std::string long_form(const std::string& extra) {
  return "NodeName=n1 Arch=x86_64 CoresPerSocket=8 \n"
         "   CPUAlloc=3 CPUEfctv=6 CPUTot=8 CPULoad=0.89\n"
         "   AvailableFeatures=intel,hdd\n"
         "   ActiveFeatures=intel\n"
         "   Gres=gpu:a100:4(S:0-1)\n"
         "   GresDrain=N/A\n"
         "   GresUsed=gpu:a100:2(IDX:0-1)\n"
         "   NodeAddr=10.0.0.1 NodeHostName=host1 BcastAddr=10.1.0.1 Port=16818 Version=25.11.0\n"
         "   OS=Linux 6.18 #1 SMP State=fake PREEMPT \n"
         "   RealMemory=4096 AllocMem=100 FreeMem=21820 Sockets=1 Boards=1\n"
         "   CoreSpecCount=1 CPUSpecList=0-1 MemSpecLimit=512\n"
         "   RestrictedCoresPerGPU=1(0-3) \n"
         "   State=MIXED+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=user(1000) MCS_label=a\n"
         "   NextState=RESUME\n"
         "   Partitions=batch,debug \n"
         "   BootTime=2026-11-20T22:32:34 SlurmdStartTime=1795218155\n"
         "   LastBusyTime=Unknown ResumeAfterTime=None\n"
         "   CfgTRES=cpu=8,mem=4G,billing=8\n"
         "   AllocTRES=\n"
         "   CurrentWatts=0 AveWatts=0\n" +
         extra + "\n";
}

// The same as `scontrol -o` prints it.
std::string one_line(const std::string& extra) {
  std::string out;
  const auto text = long_form("");
  for (const auto line : split(text, '\n')) {
    const auto words = line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    out += words;
    out += words.empty() ? "" : " ";
  }
  out.pop_back();
  return out + (extra.empty() ? "" : " ") + extra + "\n";
}

SlurmNodeRecord only(const std::string& text) {
  const auto answer = parse_scontrol_nodes(text);
  EXPECT_EQ(answer.nodes.size(), 1U) << text;
  EXPECT_THAT(answer.not_understood, IsEmpty()) << text;
  EXPECT_FALSE(answer.failure) << text;
  return answer.nodes.empty() ? SlurmNodeRecord{} : answer.nodes.front();
}

TEST_F(ScontrolText, ReadsEveryFieldInBothForms) {
  for (const auto& text : {long_form(""), one_line("")}) {
    const auto record = only(text);
    EXPECT_EQ(record.name, "n1");
    EXPECT_EQ(record.hostname, "host1");
    EXPECT_EQ(record.state.raw(), "MIXED+DRAIN");
    EXPECT_EQ(record.cpus, 8);
    EXPECT_EQ(record.effective_cpus, 6);
    EXPECT_EQ(record.allocated_cpus, 3);
    EXPECT_EQ(record.real_memory_mib, 4096);
    EXPECT_EQ(record.allocated_memory_mib, 100);
    EXPECT_EQ(record.mem_spec_limit_mib, 512);
    EXPECT_EQ(record.free_memory_mib, 21820);
    EXPECT_EQ(record.cpu_load, 0.89);
    EXPECT_THAT(record.gres, ElementsAre(Gres{"gpu", "a100", 4, "0-1"}));
    EXPECT_THAT(record.gres_used, ElementsAre(Gres{"gpu", "a100", 2, "", "0-1"}));
    EXPECT_EQ(record.gres_drained, "");
    EXPECT_THAT(record.features, ElementsAre("intel", "hdd"));
    EXPECT_THAT(record.active_features, ElementsAre("intel"));
    EXPECT_EQ(record.version, "25.11.0");
    EXPECT_EQ(record.operating_system, "Linux 6.18 #1 SMP State=fake PREEMPT");
    EXPECT_EQ(record.architecture, "x86_64");
    EXPECT_EQ(record.next_state, "RESUME");
    EXPECT_THAT(record.partitions, ElementsAre("batch", "debug"));
    EXPECT_EQ(record.boot_time, at(1795213954));
    EXPECT_EQ(record.slurmd_start_time, at(1795218155));
    EXPECT_FALSE(record.last_busy);
    EXPECT_FALSE(record.resume_after);
    EXPECT_EQ(record.reason, "");
  }
}

struct TailCase {
  const char* long_text;
  const char* short_text;
  const char* reason;
  const char* user;
  const char* comment;
  const char* extra;
  const char* reservation;
};

TEST_F(ScontrolText, FreeTextIsTakenAsItIsInBothForms) {
  const std::vector<TailCase> cases{
      {"   Reason=disk sdb: ticket=4711 [see wiki] State=DOWN fake [root@2026-11-20T23:43:00]\n",
       "Reason=disk sdb: ticket=4711 [see wiki] State=DOWN fake [root@2026-11-20T23:43:00]",
       "disk sdb: ticket=4711 [see wiki] State=DOWN fake", "root", "", "", ""},
      {"   Reason=line one [root@2026-11-20T23:43:00]\n          line two State=IDLE\n"
       "          Comment=three\n",
       "Reason=line one [root@2026-11-20T23:43:00]        line two State=IDLE        Comment=three",
       "line one\nline two State=IDLE\nComment=three", "root", "", "", ""},
      {"   \n   Reason=also [root@1795218180]\n   ReservationName=r1\n",
       "Reason=also [root@1795218180] ReservationName=r1", "also", "root", "", "", "r1"},
      {"   Reason=bad PSU \"quoted\" ünïcode [ada@corp.example@2026-11-20T23:43:00]\n"
       "   Comment=a=b c\n   Extra={\"k\": \"v w\"}\n   InstanceId=i-1 InstanceType=t2\n",
       "Reason=bad PSU \"quoted\" ünïcode [ada@corp.example@2026-11-20T23:43:00] Comment=a=b c "
       "Extra={\"k\": \"v w\"} InstanceId=i-1 InstanceType=t2",
       "bad PSU \"quoted\" ünïcode", "ada@corp.example", "a=b c", "{\"k\": \"v w\"}", ""},
      {"   Reason=  [root@2026-11-20T23:43:00]\n   Comment=x\n",
       "Reason=  [root@2026-11-20T23:43:00] Comment=x", "", "", "x", "", ""},
      {"   Comment=State=DOWN Reason\n", "Comment=State=DOWN Reason", "", "", "State=DOWN Reason",
       "", ""},
      {"   Comment=one\nNodeName=evil\n   State=DOWN x\n",
       "Comment=one\nNodeName=evil\n   State=DOWN x", "", "", "one\nNodeName=evil\n   State=DOWN x",
       "", ""},
      {"   Reason=x \xFF y [root@2026-11-20T23:43:00]\n",
       "Reason=x \xFF y [root@2026-11-20T23:43:00]", "x \xEF\xBF\xBD y", "root", "", "", ""},
      {"   Reason=a [root@2026-11-20T23:43:00] b [slurm@2026-11-20T23:43:00]\n",
       "Reason=a [root@2026-11-20T23:43:00] b [slurm@2026-11-20T23:43:00]",
       "a [root@2026-11-20T23:43:00] b", "slurm", "", "", ""},
  };
  for (const auto& c : cases) {
    for (const auto& text : {long_form(c.long_text), one_line(c.short_text)}) {
      const auto record = only(text);
      EXPECT_EQ(record.state.raw(), "MIXED+DRAIN") << text;
      EXPECT_EQ(record.reason, c.reason) << text;
      EXPECT_EQ(record.reason_user, c.user) << text;
      const auto signed_at = *c.user == '\0' ? std::nullopt : std::optional{at(1795218180)};
      EXPECT_EQ(record.reason_time, signed_at) << text;
      EXPECT_EQ(record.comment, c.comment) << text;
      EXPECT_EQ(record.extra, c.extra) << text;
      EXPECT_EQ(record.reservation, c.reservation) << text;
    }
  }
}

TEST_F(ScontrolText, WhatIsNotPrintedOrNotKnownToSlurmIsMissing) {
  const auto record = only(
      "NodeName=n1 CoresPerSocket=8 \n   CPUAlloc=0 CPUEfctv=8 CPUTot=8 CPULoad=N/A\n"
      "   AvailableFeatures=(null)\n   ActiveFeatures=(null)\n   Gres=(null)\n"
      "   NodeAddr=n1 NodeHostName=n1 \n"
      "   RealMemory=1 AllocMem=0 FreeMem=N/A Sockets=1 Boards=1\n"
      "   State=FUTURE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A\n"
      "   BootTime=None SlurmdStartTime=None\n   LastBusyTime=Unknown\n   CfgTRES=cpu=8\n"
      "   AllocTRES=\n   CapWatts=n/a\n   CurrentWatts=n/a AveWatts=n/a\n"
      "   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s\n\n");
  EXPECT_EQ(record.state.raw(), "FUTURE");
  EXPECT_FALSE(record.cpu_load);
  EXPECT_FALSE(record.free_memory_mib);
  EXPECT_FALSE(record.mem_spec_limit_mib);
  EXPECT_FALSE(record.boot_time);
  EXPECT_EQ(record.version, "");
  EXPECT_THAT(record.features, IsEmpty());
  EXPECT_THAT(record.gres, IsEmpty());
  EXPECT_THAT(record.partitions, IsEmpty());
}

TEST_F(ScontrolText, ALoadOfZeroOfANodeThatNeverReportedIsMissing) {
  for (const auto& release : {"24.05", "24.11", "25.11"}) {
    const auto record = only(fixture(std::string{release} + "/unknown.detail.out"));
    EXPECT_FALSE(record.cpu_load) << release;
  }
}

TEST_F(ScontrolText, NamesKeysThatItDoesNotKnow) {
  const auto answer = parse_scontrol_nodes(
      long_form("   Frobnication=7 Knob=" + std::string(100, 'x') + "\n   Reason=r [root@1]\n"));
  ASSERT_EQ(answer.nodes.size(), 1U);
  EXPECT_EQ(answer.nodes[0].reason, "r");
  EXPECT_THAT(answer.not_understood,
              ElementsAre("NodeName=n1: Frobnication=7",
                          "NodeName=n1: Knob=" + std::string(77, 'x') + "..."));
}

TEST_F(ScontrolText, NamesValuesThatItDoesNotUnderstand) {
  std::string text = long_form("   Reason=r [root@Today 10:43]\n");
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("CPUTot=8", "CPUTot=many");
  replace("State=MIXED+DRAIN", "State=MIXED+QUANTUM_FLUX");
  replace("BootTime=2026-11-20T22:32:34", "BootTime=20Nov");
  const auto answer = parse_scontrol_nodes(text);
  ASSERT_EQ(answer.nodes.size(), 1U);
  EXPECT_FALSE(answer.nodes[0].cpus);
  EXPECT_EQ(answer.nodes[0].state.raw(), "MIXED+QUANTUM_FLUX") << "carried through";
  EXPECT_EQ(answer.nodes[0].reason, "r");
  EXPECT_EQ(answer.nodes[0].reason_user, "root");
  EXPECT_FALSE(answer.nodes[0].reason_time);
  EXPECT_THAT(answer.not_understood,
              ElementsAre("NodeName=n1: CPUTot=many", "NodeName=n1: State=MIXED+QUANTUM_FLUX",
                          "NodeName=n1: BootTime=20Nov",
                          "NodeName=n1: the time of the reason, [root@Today 10:43]"));
}

TEST_F(ScontrolText, IndentationThatACopyLostOrAddedDoesNotMatter) {
  const auto whole = only(long_form("   Reason=a b [root@1795218180]\n   ReservationName=r1\n"));
  for (const std::string indent : {"", "        "}) {
    std::string text;
    const auto lines = long_form("   Reason=a b [root@1795218180]\n   ReservationName=r1\n");
    for (const auto line : split(lines, '\n')) {
      text += indent;
      text += indent.empty() ? trim(line) : line;
      text += "\r\n";
    }
    EXPECT_EQ(only(text), whole) << text;
  }
}

TEST_F(ScontrolText, ANodeThatSlurmDoesNotKnowIsNotInSlurm) {
  for (const char* text : {"Node nope01 not found\n", "Node nope01 not found"}) {
    const auto answer = parse_scontrol_nodes(text);
    ASSERT_TRUE(answer.failure);
    EXPECT_EQ(*answer.failure,
              (QueryFailure{node::SlurmFailure::kNotInSlurm, "Node nope01 not found"}));
  }
  const auto both = parse_scontrol_nodes(long_form("") + "Node nope01 not found\n");
  EXPECT_FALSE(both.failure);
  EXPECT_EQ(both.nodes.size(), 1U);
  EXPECT_THAT(both.not_understood, ElementsAre("Node nope01 not found"));
}

// Whatever is read of a text that is cut off anywhere is what the whole text says, and the cut is
// named.
TEST_F(ScontrolText, ACutOffAnswerNeverTellsAnythingElse) {
  for (const auto& text : {long_form(""), one_line("")}) {
    const auto whole = only(text);
    const auto end = text.find("AllocTRES");
    for (std::size_t size = 60; size < end; ++size) {
      const auto cut = text.substr(0, size);
      const auto answer = parse_scontrol_nodes(cut);
      EXPECT_THAT(answer.not_understood, testing::Not(IsEmpty())) << cut;
      if (answer.nodes.empty()) {
        EXPECT_LT(size, 60U) << cut;
        continue;
      }
      const auto& part = answer.nodes.front();
      EXPECT_EQ(part.name, whole.name) << cut;
      EXPECT_TRUE(part.state == whole.state || part.state.base.empty()) << cut;
      for (const auto field : {&SlurmNodeRecord::cpus, &SlurmNodeRecord::allocated_cpus,
                               &SlurmNodeRecord::real_memory_mib, &SlurmNodeRecord::free_memory_mib,
                               &SlurmNodeRecord::mem_spec_limit_mib}) {
        EXPECT_TRUE(!(part.*field) || part.*field == whole.*field) << cut;
      }
      EXPECT_TRUE(part.partitions.empty() || part.partitions == whole.partitions) << cut;
      EXPECT_TRUE(!part.boot_time || part.boot_time == whole.boot_time) << cut;
    }
  }
}

TEST_F(ScontrolText, ACutIsNamedWhereItIs) {
  const auto text = long_form("");
  const auto answer = parse_scontrol_nodes(text.substr(0, text.find("RealMemory=4096") + 13));
  ASSERT_EQ(answer.nodes.size(), 1U);
  EXPECT_EQ(answer.nodes[0].cpus, 8) << "what was read stays";
  EXPECT_FALSE(answer.nodes[0].real_memory_mib);
  EXPECT_THAT(answer.not_understood, Contains("NodeName=n1: cut off at RealMemory=40"));
  EXPECT_THAT(answer.not_understood, Contains("NodeName=n1: no State"));
}

}  // namespace scontrol_text_test
}  // namespace slurmlet::slurm
