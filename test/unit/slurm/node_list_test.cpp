// slurmrestd's answer about all nodes, as it comes in pieces, and what pretends to be one.

#include "slurm/answers/node_list.h"

#include <gmock/gmock.h>

#include "rest_capture.h"
#include "slurm/answers/node_json.h"

namespace slurmlet::slurm {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kFrame = R"({"meta":{"a":["}",{"nodes":[1]}]},"nodes":[)";

// In pieces of that size; nothing when it was rejected.
std::optional<NodeListReader> fed(std::string_view text, std::size_t piece = 4096) {
  NodeListReader reader;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (!reader.feed(text.substr(0, piece))) {
      return std::nullopt;
    }
  }
  return reader;
}

TEST(NodeList, IsTheSameHoweverItIsCut) {
  for (const char* release : {"22.05", "24.11"}) {
    const std::string body = fixture(std::string{"dump/"} + release + ".rest.out");
    auto whole = fed(body, body.size());
    ASSERT_TRUE(whole);
    const auto records = whole->take_records();
    ASSERT_EQ(records.size(), 3U) << release;
    for (const std::size_t piece : {1U, 2U, 7U, 1000U}) {
      auto reader = fed(body, piece);
      ASSERT_TRUE(reader);
      EXPECT_EQ(reader->take_records(), records) << release << " " << piece;
      EXPECT_EQ(reader->frame(), whole->frame());
    }
    const auto frame = parse_nodes_json(whole->frame(), 200);
    EXPECT_TRUE(frame.no_nodes);
    EXPECT_TRUE(frame.slurm_version.starts_with(release));
    EXPECT_EQ(frame.last_update.has_value(), release != std::string{"22.05"});
  }
}

TEST(NodeList, EachRecordIsOneLineWithoutSamples) {
  auto reader = fed(kFrame + std::string{R"( {"name":"n1","cpu_load":3,"free_mem":{"number":7},)"
                                         R"("energy":{"x":[1]},"new_in_2031":5,"state":["IDLE"],)"
                                         R"("comment":"a\"}]\nb\\"} ],"last_update":9})"});
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->take_records().at("n1"),
            R"({"comment":"a\"}]\nb\\","name":"n1","state":["IDLE"]})"
            "\n");
  EXPECT_EQ(reader->frame(), kFrame + std::string{R"(],"last_update":9})"});
  EXPECT_EQ(parse_nodes_json(reader->frame(), 200).last_update, 9);
}

TEST(NodeList, BytesThatAreNoTextMakeNoBrokenRecord) {
  auto reader = fed(kFrame + std::string{"{\"name\":\"n1\",\"reason\":\"\xff\xfe\"}]}"});
  ASSERT_TRUE(reader);
  EXPECT_TRUE(parse_node_json(reader->take_records().at("n1")));
}

TEST(NodeList, TwoOfOneNameStandBesideEachOther) {
  auto reader = fed(kFrame + std::string{R"({"name":"n1"},{"name":"n2"},{"name":"n1"}]})"});
  ASSERT_TRUE(reader);
  const auto records = reader->take_records();
  EXPECT_EQ(records.size(), 2U);
  EXPECT_EQ(records.at("n1"), "{\"name\":\"n1\"}\n{\"name\":\"n1\"}\n");
}

TEST(NodeList, WhatIsNoNodeNameIsLeftOut) {
  for (const char* name : {"../escaped", "..", "/tmp/x", ".hidden", "-rf", "a/b", ""}) {
    auto reader = fed(kFrame + std::string{R"({"name":")"} + name + R"("},{"name":"n1"},{}]})");
    ASSERT_TRUE(reader) << name;
    EXPECT_EQ(reader->take_records().size(), 1U) << name;
    EXPECT_TRUE(reader->has_nodes());
  }
}

TEST(NodeList, WhatIsNoneIsRejected) {
  const std::string big(NodeListReader::kMaxElement + 2, 'x');
  for (const std::string& text : {std::string{"1]}"}, std::string{"\"n1\"]}"}, std::string{"[]]}"},
                                  std::string{"{\"name\":}]}"}, std::string(100, '['),
                                  "{\"name\":\"" + big + "\"}]}", "],\"x\":\"" + big + "\"}"}) {
    EXPECT_FALSE(fed(kFrame + text)) << text.substr(0, 40);
  }
  EXPECT_FALSE(fed(std::string(100, '{')));
  EXPECT_TRUE(fed("<html>}}]]\"<"));  // its frame tells
}

TEST(NodeList, OneThatNeverEndsIsEnded) {
  NodeListReader reader{100'000};
  const std::string node = R"({"name":"n1","x":")" + std::string(1000, 'x') + "\"},";
  ASSERT_TRUE(reader.feed(kFrame));
  int fed = 0;
  while (reader.feed(node)) {
    ASSERT_LT(++fed, 100);
  }
  EXPECT_GT(fed, 90);
}

}  // namespace
}  // namespace slurmlet::slurm
