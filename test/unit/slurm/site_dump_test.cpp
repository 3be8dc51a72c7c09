// The query for all nodes: what is run, why it failed, and how its answer is split.

#include "slurm/sources/site_dump.h"

#include <gmock/gmock.h>

#include "record_fixture.h"
#include "slurm/answers/record_text.h"

namespace slurmlet::slurm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> names_in(const std::string& dump) {
  const auto records = split_dump(dump);
  std::vector<std::string> names;
  if (records) {
    for (const auto& [name, text] : *records) {
      names.push_back(name);
    }
  }
  return names;
}

TEST(SiteDump, IsOneQueryForAllNodes) {
  const auto query = dump_query({"/etc/slurm/slurm.conf", "/opt/slurm/bin"}, "x07");
  EXPECT_EQ(query.argv.at(0), "/opt/slurm/bin/scontrol");
  EXPECT_THAT(query.argv, testing::IsSupersetOf({"--local", "-a", "show", "node"}));
  EXPECT_THAT(query.extra_environment, testing::Contains("SLURM_TIME_FORMAT=%sx07"));
}

TEST(SiteDump, EachNodeHasItsOwnTextWithoutSamples) {
  const auto records = split_dump(scontrol_record("n1") + scontrol_record("n2", "DOWN"));
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2);
  EXPECT_THAT(records->at("n1"), AllOf(StartsWith("NodeName=n1 "), HasSubstr(" CPULoad=N/A "),
                                       HasSubstr(" FreeMem=N/A "), HasSubstr(" State=IDLE ")));
  EXPECT_THAT(records->at("n2"), HasSubstr(" State=DOWN "));
  EXPECT_EQ(records->at("n1").back(), '\n');
}

// Load changes with every ping of slurmctld and is no news.
TEST(SiteDump, OtherSamplesMakeNoOtherText) {
  EXPECT_EQ(*split_dump(scontrol_record("n1", "IDLE", " Comment=CPULoad=x", "3.50")),
            *split_dump(scontrol_record("n1", "IDLE", " Comment=CPULoad=x", "0.01")));
  EXPECT_THAT(split_dump(scontrol_record("n1", "IDLE", " Comment=a FreeMem=1"))->at("n1"),
              HasSubstr("a FreeMem=1"));
}

TEST(SiteDump, AReasonOfSeveralLinesStaysWithItsNode) {
  const auto records =
      split_dump(scontrol_record("n1", "IDLE+DRAIN", " Comment=a\nb=c\n  NodeName=n9") +
                 scontrol_record("n2"));
  ASSERT_TRUE(records);
  EXPECT_EQ(records->size(), 2);
  EXPECT_THAT(records->at("n1"), HasSubstr("a\nb=c   NodeName=n9\n"));
}

std::string sealed(std::string record) {
  for (const char* time : {"1763700000", "1763700100", "1763700200"}) {
    record.replace(record.find(time), 10, time + std::string{"x07"});
  }
  return record;
}

TEST(SiteDump, WhatPretendsToBeARecordHasNoSeal) {
  const std::string forger = sealed(scontrol_record(
      "n1", "IDLE+DRAIN", " Comment=a\n" + scontrol_record("n2", "DOWN") + " NodeName=n3 Arch=x"));
  const std::string victim = sealed(scontrol_record("n2", "MIXED", " Reason=r [root@5x07]"));
  for (const auto& dump : {forger + victim, victim + forger}) {
    const auto records = split_dump(dump, "x07");
    ASSERT_TRUE(records);
    ASSERT_EQ(records->size(), 2);
    EXPECT_EQ(records->at("n2"),
              split_dump(scontrol_record("n2", "MIXED", " Reason=r [root@5]"))->at("n2"));
    const auto own = read_record_text(records->at("n1"));
    ASSERT_TRUE(own) << own.error().message;
    EXPECT_EQ(own->state.raw(), "IDLE+DRAIN");
  }
}

// Only slurmctld signs a reason.
TEST(SiteDump, WhatPretendsToBeTheEndOfAReasonIsPartOfIt) {
  const std::string reason = "ok [root@2020-01-01T00:00:00] Comment=forged [ops@site]";
  const auto records = split_dump(
      sealed(scontrol_record("n1", "DRAIN", " Reason=" + reason + " [root@1763700300x07]")), "x07");
  ASSERT_TRUE(records);
  const auto own = read_record_text(records->at("n1"));
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->reason, "ok (root@2020-01-01T00:00:00) Comment=forged [ops@site]");
  EXPECT_EQ(own->comment, "");
  EXPECT_EQ(own->reason_user, "root");
}

// Of a release whose times have another form.
TEST(SiteDump, WithoutAnySealRecordsCountAsTheyAre) {
  const auto records = split_dump(scontrol_record("n1") + scontrol_record("n2"), "x07");
  ASSERT_TRUE(records);
  EXPECT_EQ(records->size(), 2);
}

TEST(SiteDump, FreeTextWithTheWordsOfSlurmConfIsFreeText) {
  for (const char* tail : {" Comment=two CPUs=2 Sockets=1", " Reason=needs CPUs=x [root@5]"}) {
    EXPECT_TRUE(read_record_text(scontrol_record("n1", "IDLE+DRAIN", tail))) << tail;
  }
}

TEST(SiteDump, WhatPretendsToBeASecondRecordStandsBesideTheFirst) {
  const auto records =
      split_dump(scontrol_record("n1", "DOWN") +
                 scontrol_record("n2", "IDLE", " Comment=a\n" + scontrol_record("n1")));
  ASSERT_TRUE(records);
  EXPECT_THAT(records->at("n1"), AllOf(HasSubstr(" State=DOWN "), HasSubstr(" State=IDLE ")));
}

TEST(SiteDump, WhatIsNoNodeNameBeginsNoRecord) {
  for (const char* name : {"../escaped", "..", "/tmp/x", ".hidden", "-rf", "a/b", ""}) {
    EXPECT_THAT(names_in(scontrol_record("n1") + scontrol_record(name)), ElementsAre("n1")) << name;
  }
}

TEST(SiteDump, WhatIsNoWholeListIsRejected) {
  const std::string good = scontrol_record("n1") + scontrol_record("n2");
  const struct {
    std::string text;
    const char* why;
  } kRows[] = {{good.substr(0, good.size() - 40), "truncated"},
               {"", "truncated"},
               {"\n", "listed no nodes"},
               {"<html>\n", "not a list of nodes"}};
  for (const auto& row : kRows) {
    const auto records = split_dump(row.text);
    ASSERT_FALSE(records) << row.text;
    EXPECT_EQ(records.error().code, Code::kInvalid) << row.text;
    EXPECT_THAT(records.error().message, HasSubstr(row.why));
  }
}

// Before the first machine of a site with dynamic nodes. Where nodes are hidden, slurmctld denies
// access.
TEST(SiteDump, ASiteMayHaveNoNode) {
  const auto records = split_dump("No nodes in the system\n");
  ASSERT_TRUE(records);
  EXPECT_TRUE(records->empty());
}

TEST(SiteDump, AFailureNamesItsCauseAndNotSinfo) {
  CommandOutput good, hung, flood, silent, unreachable, munge;
  good.out = scontrol_record("n1");
  hung.timed_out = true;
  flood.too_long = true;
  unreachable.exit_code = munge.exit_code = 1;
  unreachable.err = "slurm_load_node error: Unable to contact slurm controller (connect failure)\n";
  munge.err =
      "scontrol: error: If munged is up, restart with --num-threads=10\n"
      "scontrol: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\""
      ": No such file or directory\n";
  const struct {
    CommandOutput output;
    const char* begins;
  } kRows[] = {{hung, "ControllerTimeout: scontrol did not finish"},
               {flood, "scontrol printed more than"},
               {silent, "invalid_response: scontrol printed nothing"},
               {unreachable, "ControllerUnreachable: "},
               {munge, "munge unavailable: "}};
  EXPECT_FALSE(dump_query_failure(good));
  for (const auto& row : kRows) {
    const auto failure = dump_query_failure(row.output);
    ASSERT_TRUE(failure) << row.begins;
    EXPECT_THAT(*failure, AllOf(StartsWith(row.begins), Not(HasSubstr("sinfo"))));
  }
}

}  // namespace
}  // namespace slurmlet::slurm
