#include "base/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(CpuListTest, NamesSingleCpusAndRanges) {
  EXPECT_THAT(parse_cpu_list("0"), Optional(ElementsAre(0)));
  EXPECT_THAT(parse_cpu_list("0,64"), Optional(ElementsAre(0, 64)));
  EXPECT_THAT(parse_cpu_list(" 0-2,8,10-11\n"), Optional(ElementsAre(0, 1, 2, 8, 10, 11)));
  EXPECT_THAT(parse_cpu_list("3,1-3"), Optional(ElementsAre(1, 2, 3)));
  EXPECT_THAT(parse_cpu_list("16383"), Optional(ElementsAre(16383)));
}

TEST(CpuListTest, WhatIsNoListIsRefused) {
  for (const char* text : {"", " ", ",", "0,", ",0", "a", "0-", "-1", "3-1", "0-1-2", "0 1", "0x1",
                           "16384", "0-99999999", "0;1", "4294967296"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

}  // namespace
}  // namespace slurmlet
