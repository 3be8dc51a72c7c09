// The two forms of a record tell the same of the same node.

#include "slurm/answers/record_text.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "fixture.h"
#include "record_fixture.h"
#include "rest_capture.h"
#include "slurm/answers/node_json.h"
#include "slurm/answers/node_list.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::slurm {
namespace {

using testing::HasSubstr;

DumpRecords listed(const std::string& body) {
  NodeListReader reader;
  EXPECT_TRUE(reader.feed(body));
  return reader.take_records();
}

// Of all three nodes of a site: one is drained by a reason with traps in it and has a job and a
// GPU, one is full, one is in a reservation with a comment.
TEST(RecordText, BothFormsOfOneNodeTellTheSame) {
  for (const std::string release : {"22.05", "24.11"}) {
    const auto by_scontrol = split_dump(fixture("dump/" + release + ".scontrol.out"));
    const auto by_rest = listed(fixture("dump/" + release + ".rest.out"));
    ASSERT_TRUE(by_scontrol);
    ASSERT_EQ(by_rest.size(), by_scontrol->size());
    for (const auto& [name, text] : *by_scontrol) {
      const auto told = read_record_text(text);
      auto json = read_record_text(by_rest.at(name));
      ASSERT_TRUE(told && json) << release << " " << name;
      EXPECT_EQ(json->name, told->name);
      EXPECT_EQ(json->hostname, told->hostname);
      EXPECT_EQ(json->address, told->address);
      EXPECT_EQ(json->address, "127.0.0.1");
      EXPECT_EQ(json->state.raw(), told->state.raw()) << release << " " << name;
      EXPECT_EQ(json->cpus, told->cpus);
      EXPECT_EQ(json->allocated_cpus, told->allocated_cpus) << release << " " << name;
      EXPECT_EQ(json->real_memory_mib, told->real_memory_mib);
      EXPECT_EQ(json->allocated_memory_mib, told->allocated_memory_mib);
      EXPECT_EQ(json->gres, told->gres);
      EXPECT_EQ(json->gres_used, told->gres_used) << release << " " << name;
      EXPECT_EQ(json->reason, told->reason);
      EXPECT_EQ(json->reason_user, told->reason_user);
      EXPECT_EQ(json->reason_time, told->reason_time);
      EXPECT_EQ(json->partitions, told->partitions);
      EXPECT_EQ(json->partitions_known, told->partitions_known);
      EXPECT_EQ(json->features, told->features);
      EXPECT_EQ(json->active_features, told->active_features);
      EXPECT_EQ(json->comment, told->comment);
      EXPECT_EQ(json->version, told->version);
      EXPECT_EQ(json->boot_time, told->boot_time);
      EXPECT_EQ(json->slurmd_start_time, told->slurmd_start_time);
      EXPECT_EQ(json->last_busy, told->last_busy);
      EXPECT_EQ(json->operating_system, told->operating_system);
      EXPECT_EQ(json->architecture, told->architecture);
      EXPECT_EQ(json->free_memory_mib, std::nullopt);
      EXPECT_EQ(json->cpu_load, std::nullopt);
    }
    EXPECT_EQ(read_record_text(by_rest.at("gpu01"))->state.raw(), "MIXED+DRAIN");
    EXPECT_EQ(read_record_text(by_rest.at("gpu01"))->reason, "dimm \"3\" State=IDLE é");
    EXPECT_EQ(read_record_text(by_rest.at("cpu03"))->comment, "two words");
  }
}

// What is dropped for publishing is nothing that is read.
TEST(RecordText, LosesNothingOfAnyRelease) {
  int nodes = 0;
  for (const char* release : {"22.05.8", "23.02", "24.05", "24.11", "25.11"}) {
    for (const auto& file : std::filesystem::directory_iterator(fixture_path(release))) {
      const std::string name = release + ("/" + file.path().filename().string());
      if (!name.ends_with(".rest.out")) {
        continue;
      }
      const auto answer = rest_capture(name);
      const auto parsed = parse_nodes_json(answer.body, answer.status);
      for (auto expected : parsed.nodes) {
        const auto texts = listed(answer.body);
        auto record = read_record_text(texts.at(expected.name));
        ASSERT_TRUE(record) << name;
        expected.cpu_load.reset();
        expected.free_memory_mib.reset();
        expected.cluster = record->cluster;
        EXPECT_EQ(*record, expected) << name;
        ++nodes;
      }
    }
  }
  EXPECT_GT(nodes, 100);
}

TEST(RecordText, WhatIsNoSingleRecordIsRejected) {
  const std::string json = R"({"name":"n1","state":["IDLE"]})";
  ASSERT_TRUE(read_record_text(json + "\n"));
  ASSERT_TRUE(read_record_text(scontrol_record("n1")));
  const struct {
    std::string text;
    const char* why;
  } kRows[] = {{json, "is cut off"},
               {json + "\n" + json + "\n", "more than one record"},
               {scontrol_record("n1") + scontrol_record("n1"), "more than one record"},
               {json.substr(0, 20) + "\n", "no node record"},
               {"{\"name\":\"../n1\",\"state\":[\"IDLE\"]}\n", "no node record"},
               {"{\"name\":\"n1\"}\n", "no node record"},
               {"{}\n", "no node record"},
               {"NodeName=n1 State=IDLE\n " + scontrol_record("n2"), "no node record"},
               {" " + scontrol_record("n2"), "no node record"},
               {scontrol_record("../n1"), "no node record"},
               {"[]\n", "no node record"},
               {"\n", "no node record"},
               {"", "is cut off"}};
  for (const auto& row : kRows) {
    const auto record = read_record_text(row.text);
    ASSERT_FALSE(record) << row.text;
    EXPECT_THAT(record.error().message, HasSubstr(row.why)) << row.text;
  }
}

}  // namespace
}  // namespace slurmlet::slurm
