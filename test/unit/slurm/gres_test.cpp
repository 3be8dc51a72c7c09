#include "slurm/answers/gres.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "fixture.h"

namespace slurmlet::slurm {
namespace gres_test {

using node::Gres;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kGi = std::int64_t{1} << 30;

struct Case {
  const char* text;
  std::vector<Gres> expected;
};

TEST(Gres, ReadsEveryFormThatSlurmPrints) {
  const std::vector<Case> cases{
      {"gpu:4", {{"gpu", "", 4}}},
      {"gpu:0", {{"gpu", "", 0}}},
      {"gpu", {{"gpu", "", 1}}},
      {"gpu:a100", {{"gpu", "a100", 1}}},
      {"gpu:a100:4", {{"gpu", "a100", 4}}},
      {"gpu:a100:4(S:0-1)", {{"gpu", "a100", 4, "0-1"}}},
      {"gpu:a100:3(IDX:0,2-3)", {{"gpu", "a100", 3, "", "0,2-3"}}},
      {"gpu:a100:0(IDX:N/A),gpu:v100:0(IDX:N/A),shard:0,mps:0",
       {{"gpu", "a100", 0}, {"gpu", "v100", 0}, {"shard", "", 0}, {"mps", "", 0}}},
      {"gpu:tesla:0(IDX:N/A),shard:tesla:3(3/4,0/4)",
       {{"gpu", "tesla", 0}, {"shard", "tesla", 3, "", "", "3/4,0/4"}}},
      {"gpu:tesla:2,shard:tesla:8", {{"gpu", "tesla", 2}, {"shard", "tesla", 8}}},
      {"gpu:1080:7", {{"gpu", "1080", 7}}},
      {"gpu:h200:2(S:0-1),gpu:h200_3g.71gb:6(S:0-1)",
       {{"gpu", "h200", 2, "0-1"}, {"gpu", "h200_3g.71gb", 6, "0-1"}}},
      {"gpu:a100-40gb:8", {{"gpu", "a100-40gb", 8}}},
      {"gpu:3g.20gb:2", {{"gpu", "3g.20gb", 2}}},
      {"gpu:3g.20gb", {{"gpu", "3g.20gb", 1}}},
      {"gpu:(null):4(IDX:0-3)", {{"gpu", "", 4, "", "0-3"}}},
      {"gpu:(null):4(S:1)", {{"gpu", "", 4, "1"}}},
      {"mps:tesla:50(50/100,0/100)", {{"mps", "tesla", 50, "", "", "50/100,0/100"}}},
      {"gpu:(null):4", {{"gpu", "", 4}}},
      {"gpu:(null)", {{"gpu", "", 1}}},
      {"nic:1,bandwidth:lustre:no_consume:4G",
       {{"nic", "", 1}, {"bandwidth", "lustre", 4 * kGi, "", "", "", true}}},
      {"VramPerGpu:no_consume:32G", {{"VramPerGpu", "", 32 * kGi, "", "", "", true}}},
      {"craynetwork:no_consume", {{"craynetwork", "", 1, "", "", "", true}}},
      {"vmem:2K", {{"vmem", "", 2048}}},
      {"vmem:2m", {{"vmem", "", 2 << 20}}},
      {"vmem:1T,x:1P", {{"vmem", "", 1024 * kGi}, {"x", "", 1024 * 1024 * kGi}}},
      {" gpu:2 , shard:1 ", {{"gpu", "", 2}, {"shard", "", 1}}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_gres(c.text), c.expected) << c.text;
  }
}

TEST(Gres, NothingGivesNothing) {
  for (const char* text : {"", " ", "(null)", "N/A", ",", ":4"}) {
    EXPECT_THAT(parse_gres(text), IsEmpty()) << text;
  }
}

TEST(Gres, AddsUpEntriesOfOneNameAndType) {
  EXPECT_THAT(parse_gres("gpu:a100:2(S:0),gpu:v100:1,gpu:a100:2(S:1)"),
              ElementsAre(Gres{"gpu", "a100", 4, "0,1"}, Gres{"gpu", "v100", 1}));
  EXPECT_THAT(parse_gres("shard:a:3(3/4),shard:a:1(1/4)"),
              ElementsAre(Gres{"shard", "a", 4, "", "", "3/4,1/4"}));
  EXPECT_THAT(parse_gres("gpu:a:1(IDX:0),gpu:a:1(IDX:3)"),
              ElementsAre(Gres{"gpu", "a", 2, "", "0,3"}));
  EXPECT_THAT(parse_gres("nic:1(S:0-1),nic:1(S:0-1)"), ElementsAre(Gres{"nic", "", 2, "0-1"}));
}

TEST(Gres, HoldsHugeCountsAtTheLargestValue) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(parse_gres("a:99999999999999999999"), ElementsAre(Gres{"a", "", kMax}));
  EXPECT_THAT(parse_gres("a:9999999P"), ElementsAre(Gres{"a", "", kMax}));
  EXPECT_THAT(parse_gres("a:9223372036854775807,a:1"), ElementsAre(Gres{"a", "", kMax}));
}

TEST(Gres, UnbalancedParenthesesLoseNoNeighbour) {
  EXPECT_THAT(parse_gres("a:1),b:2"), ElementsAre(Gres{"a", "1)", 1}, Gres{"b", "", 2}));
}

TEST(Gres, GroupsThatAreMalformedTellNothingButLeaveTheCount) {
  const std::vector<Case> cases{
      {"gpu:a100:2(IDX:0,", {{"gpu", "a100", 2}}},
      {"gpu:a100:2(", {{"gpu", "a100", 2}}},
      {"gpu:2()", {{"gpu", "", 2}}},
      {"gpu:2(IDX:)", {{"gpu", "", 2}}},
      {"gpu:2(IDX:N/A)", {{"gpu", "", 2}}},
      {"gpu:2(S:x)", {{"gpu", "", 2}}},
      {"gpu:2(FUTURE:7)", {{"gpu", "", 2}}},
      {"gpu:2(S:0)(IDX:1)", {{"gpu", "", 2, "0", "1"}}},
      {"gpu:2))", {{"gpu", "2))", 1}}},
      {"((((", {{"(((", "", 1}}},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_gres(c.text), c.expected) << c.text;
  }
}

}  // namespace gres_test
}  // namespace slurmlet::slurm
