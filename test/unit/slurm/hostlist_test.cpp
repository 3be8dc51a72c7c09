#include "slurm/answers/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::slurm {
namespace {

using testing::ElementsAre;
using Names = std::vector<std::string>;

TEST(Hostlist, ExpandsWhatSlurmConfHolds) {
  const std::vector<std::pair<const char*, Names>> cases{
      {"", {}},
      {"node1", {"node1"}},
      {"node[01-03,15],login1", {"node01", "node02", "node03", "node15", "login1"}},
      {"n[9-11]", {"n9", "n10", "n11"}},
      {"n[098-101]", {"n098", "n099", "n100", "n101"}},
      {"rack[1-2]n[1-2]-ib", {"rack1n1-ib", "rack1n2-ib", "rack2n1-ib", "rack2n2-ib"}},
      {"[1-2]", {"1", "2"}},
      {"a, b ,", {"a", "b"}},
      {"/dev/nvidia[0-1]", {"/dev/nvidia0", "/dev/nvidia1"}},
  };
  for (const auto& [text, expected] : cases) {
    const auto names = expand_hostlist(text);
    ASSERT_TRUE(names) << text;
    EXPECT_EQ(*names, expected) << text;
  }
}

TEST(Hostlist, RefusesMalformedAndHugeLists) {
  for (const char* text : {"n[1-2", "n1-2]", "n[a-b]", "n[5-3]", "n[]", "n[1-]", "n[-1]",
                           "n[0-99999999]", "n[1-1000]m[1-1000]", "n[0-18446744073709551615]"}) {
    const auto names = expand_hostlist(text);
    ASSERT_FALSE(names) << text;
    EXPECT_EQ(names.error().code, Code::kInvalid) << text;
  }
  EXPECT_TRUE(expand_hostlist("n[1-4]", 4));
  EXPECT_FALSE(expand_hostlist("n[1-4]", 3));
  EXPECT_FALSE(expand_hostlist("a,b,c,d", 3));
}

TEST(Hostlist, ContainsAgreesWithExpand) {
  for (const char* text : {"node[01-10,15],login1", "n[8-12]", "n[098-101]", "r[1-2]n[1-4]-ib",
                           "n[1-20]5", "n[0-3]", "n[00-03]"}) {
    const auto names = expand_hostlist(text);
    ASSERT_TRUE(names) << text;
    for (std::size_t i = 0; i < names->size(); ++i) {
      EXPECT_TRUE(hostlist_contains(text, (*names)[i])) << text << " " << (*names)[i];
    }
  }
  const std::vector<std::pair<const char*, const char*>> outside{
      {"node[01-10]", "node1"},
      {"node[01-10]", "node001"},
      {"node[1-10]", "node01"},
      {"node[1-10]", "node11"},
      {"node[1-10]", "node"},
      {"node[1-10]", "node1x"},
      {"node[1-10]", "xnode1"},
      {"r[1-2]n[1-4]", "r1n5"},
      {"login1", "login"},
      {"login1", "login10"},
      {"", ""},
      {"n[098-101]", "n98"},
      {"n[00-03]", "n0"},
      {"n[1-2", "n1"},
      {"n[1-5]", "n99999999999999999999"},
  };
  for (const auto& [list, name] : outside) {
    EXPECT_FALSE(hostlist_contains(list, name)) << list << " " << name;
  }
}

TEST(Hostlist, ContainsDoesNotExpandMillions) {
  EXPECT_TRUE(hostlist_contains("n[0-9999999999]m[0-9999999999]", "n123456789m42"));
  EXPECT_FALSE(hostlist_contains("n[0-9999999999]m[0-9999999999]", "n123456789m42x"));
}

TEST(Hostlist, CountAgreesWithExpand) {
  for (const char* list : {"n1", "n[1-10]", "n[01-10,15],login1", "rack[1-2]n[1-4]-ib", "a,b,,c"}) {
    EXPECT_EQ(count_hostlist(list), expand_hostlist(list)->size()) << list;
  }
  EXPECT_EQ(count_hostlist("n[1-"), 0U);
  EXPECT_EQ(count_hostlist(""), 0U);
  EXPECT_EQ(count_hostlist("n[0-9999999999]m[0-9999999999],x[0-9999999999]"), kMaxExpandedHosts);
}

TEST(Hostlist, ElementsKeepBracketsTogether) {
  EXPECT_THAT(hostlist_elements("n[1,3],x,"), ElementsAre("n[1,3]", "x"));
}

}  // namespace
}  // namespace slurmlet::slurm
