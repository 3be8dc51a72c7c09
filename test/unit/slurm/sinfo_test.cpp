#include "slurm/answers/sinfo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.h"

namespace slurmlet::slurm {
namespace sinfo_test {

using node::Gres;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kNode = "nid000001";

node::SlurmNodeRecord record_of(const std::string& name) {
  auto record = parse_sinfo(query_answer("22.05.8/query-" + name + ".out"), kNode);
  EXPECT_TRUE(record) << name << ": " << (record ? "" : record.error().message);
  return record ? *record : node::SlurmNodeRecord{};
}

TEST(SinfoQuery, AsksForExactlyOneNode) {
  const auto spec = sinfo_query({}, kNode);
  EXPECT_THAT(spec.argv,
              ElementsAre("sinfo", "-h", "-a", "-N", "-n", kNode, "--local", "-O",
                          "NodeList:|,Partition:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,"
                          "FreeMem:|,CPUsLoad:|,Gres:|,GresUsed:|,Version:|,Features:|,"
                          "features_act:|,Cluster:|,Reservation:|,Timestamp:|,User:|,"
                          "Comment:\x1f,Reason:|"));
  EXPECT_THAT(spec.extra_environment, ElementsAre("SLURM_TIME_FORMAT=%s"));
  EXPECT_EQ(spec.timeout, std::chrono::seconds{15});
}

TEST(SinfoQuery, WithoutTheLookupOfAUserTheRowKeepsItsShape) {
  SinfoSettings settings;
  settings.resolve_user = false;
  const std::string format = sinfo_query(settings, kNode).argv.back();
  EXPECT_THAT(format, Not(HasSubstr("User")));
  EXPECT_EQ(std::count(format.begin(), format.end(), ','),
            std::ranges::count(sinfo_query({}, kNode).argv.back(), ','));
}

TEST(SinfoQuery, TakesTheSettings) {
  const auto spec =
      sinfo_query({"/srv/slurm.conf", "/opt/slurm/bin", std::chrono::seconds{7}}, kNode);
  EXPECT_EQ(spec.argv.front(), "/opt/slurm/bin/sinfo");
  EXPECT_THAT(spec.extra_environment, Contains("SLURM_CONF=/srv/slurm.conf"));
  EXPECT_EQ(spec.timeout, std::chrono::seconds{7});
}

TEST(SinfoQuery, OnlyPlainNamesAreNodeNames) {
  for (const char* name : {"nid000001", "n-1", "a.b_c", "7"}) {
    EXPECT_TRUE(valid_node_name(name)) << name;
  }
  for (const char* name : {"", "-n", "n[1-2]", "a,b", "a b", "a\nb", "ä"}) {
    EXPECT_FALSE(valid_node_name(name)) << name;
  }
}

TEST(Sinfo, ReadsAnIdleNode) {
  const auto record = record_of("idle");
  EXPECT_EQ(record.name, kNode);
  EXPECT_EQ(record.state.raw(), "IDLE");
  EXPECT_EQ(record.cpus, 8);
  EXPECT_EQ(record.real_memory_mib, 21694);
  EXPECT_THAT(record.gres, ElementsAre(Gres{"gpu", "a100", 2}));
  EXPECT_THAT(record.gres_used, ElementsAre(Gres{"gpu", "a100", 0}));
  EXPECT_EQ(record.version, "22.05.8");
  EXPECT_THAT(record.features, ElementsAre("intel", "hdd"));
  EXPECT_THAT(record.partitions, ElementsAre("normal"));
  EXPECT_EQ(record.cluster, "");
  EXPECT_EQ(record.reason, "");
  EXPECT_EQ(record.reason_user, "");
  EXPECT_FALSE(record.reason_time);
}

TEST(Sinfo, ReadsEveryCapturedState) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"mixed", "MIXED"},
      {"allocated", "ALLOCATED"},
      {"draining", "ALLOCATED+DRAIN"},
      {"drained", "IDLE+DRAIN"},
      {"down", "DOWN"},
      {"fail", "IDLE+FAIL"},
      {"failing", "MIXED+FAIL"},
      {"maintenance", "IDLE+MAINTENANCE+RESERVED"},
      {"reserved", "IDLE+RESERVED"},
      {"completing", "IDLE+COMPLETING"},
      {"reboot_requested", "MIXED+REBOOT_REQUESTED"},
      {"reboot_issued", "DOWN+DRAIN+REBOOT_ISSUED"},
      {"not_responding", "IDLE+NOT_RESPONDING"},
      {"planned", "IDLE+PLANNED"},
      {"powering_down", "IDLE+POWERING_DOWN"},
      {"powered_down", "IDLE+POWERED_DOWN"},
      {"powering_up", "IDLE+NOT_RESPONDING+POWERING_UP"},
      {"inval", "UNKNOWN+DRAIN+INVALID_REG"},
  };
  for (const auto& [name, raw] : cases) {
    EXPECT_EQ(record_of(name).state.raw(), raw) << name;
  }
}

TEST(Sinfo, ReadsReasonUserAndTime) {
  const auto record = record_of("drained");
  EXPECT_EQ(record.reason, "slurmcluster: drained");
  EXPECT_EQ(record.reason_user, "root");
  EXPECT_EQ(record.reason_time, WallTime{std::chrono::seconds{1795223704}});
}

TEST(Sinfo, MergesOneRowPerPartition) {
  EXPECT_THAT(record_of("two-partitions").partitions, ElementsAre("normal", "debug"));
}

TEST(Sinfo, ReasonMayHoldAnything) {
  const auto record = record_of("reason-odd");
  EXPECT_EQ(record.reason, "a|b \"quoted\" ünïcode\nsecond line | State=IDLE");
  EXPECT_THAT(record.partitions, ElementsAre("normal", "debug"));
  EXPECT_EQ(record.state.raw(), "IDLE+DRAIN");
}

std::string row(const std::string& node, const std::string& version, const std::string& user,
                const std::string& reason, const std::string& cluster = "N/A") {
  return node + "|p|idle|0/8/0/8|100|0|N/A|N/A|(null)|gpu:0|" + version + "|(null)|(null)|" +
         cluster + "||Unknown|" + user + "|(null)\x1f" + reason + "|\n";
}

// Made by test/fixtures/slurm/own-query/record.sh.
TEST(Sinfo, ReadsTheAnswersOfTwoReleases) {
  for (const char* release : {"22.05", "24.11"}) {
    const auto record = parse_sinfo(fixture(std::string{"own-query/"} + release + ".out"), "n1");
    ASSERT_TRUE(record) << release << record.error().message;
    EXPECT_THAT(record->features, ElementsAre("bios_a", "bios_b")) << release;
    EXPECT_THAT(record->active_features, ElementsAre("bios_b")) << release;
    EXPECT_EQ(record->comment, "rack 7 | see\nState=IDLE") << release;
    EXPECT_EQ(record->reason, "disk | swap\nn1|normal|idle") << release;
    EXPECT_EQ(record->reason_user, "root") << release;
    EXPECT_EQ(record->reservation, std::string{release} == "22.05" ? "" : "repair") << release;
    EXPECT_THAT(record->partitions, ElementsAre("normal")) << release;
    EXPECT_TRUE(record->state.has("DRAIN"));
  }
}

TEST(Sinfo, AnUnknownReservationColumnIsNoFailure) {
  CommandOutput output;
  output.out = fixture("own-query/22.05.out");
  output.err = fixture("own-query/22.05.err");
  EXPECT_THAT(output.err, HasSubstr("Invalid job format specification: Reservation"));
  EXPECT_TRUE(interpret(output, "n1").record);
  output.err += "sinfo: error: Invalid job format specification: Comment\n";
  EXPECT_FALSE(interpret(output, "n1").record) << "the rows would not be what was asked for";
}

TEST(Sinfo, RowsOfTwoClustersAreNoAnswer) {
  const std::string ours = row("n1", "25.11.0", "root", "none", "alps");
  EXPECT_EQ(parse_sinfo(ours, "n1")->cluster, "alps");
  EXPECT_FALSE(parse_sinfo(ours + row("n1", "25.11.0", "root", "none", "jura"), "n1"));
}

TEST(Sinfo, RowsThatContradictEachOtherAreNoAnswer) {
  const std::string down = row("n1", "25.11.0", "root", "none");
  std::string idle = down;
  idle.replace(idle.find("idle"), 4, "down");
  EXPECT_TRUE(parse_sinfo(down + down, "n1"));
  EXPECT_FALSE(parse_sinfo(down + idle, "n1"));
  EXPECT_FALSE(parse_sinfo(idle + down, "n1"));
}

TEST(Sinfo, NothingPrintedForAValueStaysEmpty) {
  const auto record = parse_sinfo(row("n1", "N/A", "root", "none"), "n1");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->version, "");
  EXPECT_THAT(record->gres, IsEmpty());
  EXPECT_THAT(record->features, IsEmpty());
  EXPECT_EQ(record->reason_user, "") << "newer releases print root without a reason";
  EXPECT_FALSE(record->reason_time);
}

// scontrol update nodename=n1 state=down reason=none: the time tells it from no reason.
TEST(Sinfo, AReasonMayBeAWordForNothing) {
  for (const char* reason : {"none", "None", "Unknown", "N/A"}) {
    std::string text = row("n1", "24.11.5", "root", reason);
    EXPECT_FALSE(parse_sinfo(text, "n1")->reason_time) << reason;
    text.replace(text.find("Unknown"), 7, "1795223704");
    const auto record = parse_sinfo(text, "n1");
    ASSERT_TRUE(record) << reason;
    EXPECT_EQ(record->reason, "") << "since 24.05 a time may be left over without a reason";
    EXPECT_EQ(record->reason_user, "") << reason;
    EXPECT_EQ(record->reason_time, WallTime{std::chrono::seconds{1795223704}}) << reason;
  }
}

TEST(Sinfo, ReasonOddities) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"State=DOWN fake", "State=DOWN fake"}, {"ends with bar|", "ends with bar|"},
      {"disk [see wiki]", "disk [see wiki]"}, {"bad \xFF byte", "bad \xEF\xBF\xBD byte"},
      {"one\n\ntwo", "one\n\ntwo"},           {"tail newline\n", "tail newline"},
  };
  for (const auto& [reason, expected] : cases) {
    const auto record = parse_sinfo(row("n1", "25.11.0", "root", reason), "n1");
    ASSERT_TRUE(record) << reason;
    EXPECT_EQ(record->reason, expected);
  }
}

TEST(Sinfo, NothingPrintedIsNotFound) {
  const auto empty = parse_sinfo(fixture("22.05.8/query-unknown-node.out"), kNode);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Code::kNotFound);
}

TEST(Sinfo, RefusesWhatIsNoAnswerForThisNode) {
  const std::string good = query_answer("22.05.8/query-idle.out");
  const std::vector<std::pair<const char*, std::string>> cases{
      {"another node", row("n2", "25.11.0", "root", "none")},
      {"another node behind ours",
       row("n1", "25.11.0", "root", "none") + row("n2", "25.11.0", "root", "none")},
      {"fields are missing", fixture("22.05.8/query-bad-field.out")},
      {"a web page", "<html><body>Please log in</body></html>\n"},
      {"a web page that ends like a row", "<html>|\n"},
      {"another format", fixture("25.11/idle-gpu.sinfo.out")},
      {"cut off in a field", good.substr(0, good.size() / 2)},
      {"cut off before the end", good.substr(0, good.size() - 2)},
      {"CPUs are words", "n1|p|idle|x/y/z/w|1|0|0|0|||v|||Unknown||r|\n"},
      {"no state", "n1|p||0/8/0/8|1|0|0|0|||v|||Unknown||r|\n"},
      {"control bytes", std::string("\0\1\2|\n", 5)},
  };
  for (const auto& [what, text] : cases) {
    const auto record = parse_sinfo(text, "n1");
    ASSERT_FALSE(record) << what;
    EXPECT_EQ(record.error().code, Code::kInvalid) << what;
  }
}

TEST(Sinfo, EveryPrefixOfAnAnswerIsRefusedOrWhole) {
  const std::string text = query_answer("22.05.8/query-reason-odd.out");
  const auto whole = parse_sinfo(text, kNode);
  ASSERT_TRUE(whole);
  for (std::size_t size = 1; size < text.size(); ++size) {
    if (const auto record = parse_sinfo(text.substr(0, size), kNode)) {
      EXPECT_EQ(record->state, whole->state) << size;
      EXPECT_EQ(record->reason, whole->reason) << size;
    }
  }
}

TEST(Sinfo, InterpretGivesARecordOrAFailure) {
  CommandOutput output;
  output.out = query_answer("22.05.8/query-idle.out");
  auto result = interpret(output, kNode);
  EXPECT_TRUE(result.record);
  EXPECT_FALSE(result.failure);

  output.out = row("n2", "25.11.0", "root", "none");
  result = interpret(output, kNode);
  EXPECT_FALSE(result.record);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->cause, node::SlurmFailure::kGarbage);
  EXPECT_THAT(result.failure->detail, HasSubstr("n2"));
  EXPECT_THAT(result.failure->detail, Not(HasSubstr("\n")));
}

TEST(Sinfo, ASignWithoutAStateIsNoRow) {
  std::string text = query_answer("22.05.8/query-idle.out");
  const auto at = text.find("|idle|");
  ASSERT_NE(at, std::string::npos);
  text.replace(at, 6, "|+|");
  EXPECT_FALSE(parse_sinfo(text, kNode));
}

}  // namespace sinfo_test
}  // namespace slurmlet::slurm
