#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace slurmlet {
namespace {

using Parts = std::vector<std::string_view>;
using Words = std::vector<std::string>;

TEST(TextTest, Trim) {
  struct Row {
    std::string_view text, wanted;
  };
  const Row kRows[] = {
      {"", ""},           {" \t\r\n", ""}, {"a", "a"}, {"  a b \n", "a b"}, {"\r\nx\ty\t", "x\ty"},
      {"\va\v", "\va\v"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(trim(row.text), row.wanted);
  }
}

TEST(TextTest, Split) {
  EXPECT_EQ(split("", ','), Parts{""});
  EXPECT_EQ(split("a", ','), Parts{"a"});
  EXPECT_EQ(split("a,b", ','), (Parts{"a", "b"}));
  EXPECT_EQ(split(",a,,b,", ','), (Parts{"", "a", "", "b", ""}));
}

TEST(TextTest, WordsStandBetweenWhiteSpace) {
  EXPECT_EQ(words(""), Parts{});
  EXPECT_EQ(words(" \t\r\n"), Parts{});
  EXPECT_EQ(words("a"), Parts{"a"});
  EXPECT_EQ(words("  a \t b,c\r\nd "), (Parts{"a", "b,c", "d"}));
}

TEST(TextTest, ValueBehindAKeyThatBeginsALine) {
  constexpr std::string_view kText = "not Uid:\t1\nUid:\t 2 3 \r\nUid:\t4\nlast=";
  EXPECT_EQ(value_behind("Uid:", kText), "2 3");
  EXPECT_EQ(value_behind("last=", kText), "");
  EXPECT_EQ(value_behind("Gid:", kText), "");
  EXPECT_EQ(value_behind("Uid:", ""), "");
}

TEST(TextTest, OneOfTheWords) {
  EXPECT_TRUE(is_one_of("b", {"a", "b"}));
  EXPECT_TRUE(is_one_of("", {"a", ""}));
  EXPECT_FALSE(is_one_of("ab", {"a", "b"}));
  EXPECT_FALSE(is_one_of("", {}));
}

TEST(TextTest, Counted) {
  EXPECT_EQ(counted(0, "node"), "0 nodes");
  EXPECT_EQ(counted(1, "node"), "1 node");
  EXPECT_EQ(counted(std::size_t{2}, "node"), "2 nodes");
}

TEST(TextTest, Join) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "b"}, ", "), "a, , b");
}

TEST(TextTest, CaseChangesAsciiLettersOnly) {
  EXPECT_EQ(to_lower("AZ[az]09_\xc3\x84"), "az[az]09_\xc3\x84");
  EXPECT_EQ(to_upper("az{AZ}09_\xc3\xa4"), "AZ{AZ}09_\xc3\xa4");
}

TEST(TextTest, AllAlnumIsAsciiAndWhatIsNamed) {
  for (const char* text : {"", "azAZ09", "a"}) {
    EXPECT_TRUE(all_alnum(text)) << text;
  }
  for (const char* text : {"a-b", " ", "@", "[", "`", "{", "/", ":", "\xc3\x84"}) {
    EXPECT_FALSE(all_alnum(text)) << text;
  }
  EXPECT_TRUE(all_alnum("a-b_", "_-"));
  EXPECT_FALSE(all_alnum("a-b.", "_-"));
  EXPECT_FALSE(all_alnum(std::string_view{"a\0", 2}, "_-"));
}

TEST(TextTest, ParseIntTakesTheWholeTextOnly) {
  EXPECT_EQ(parse_int<int>("0"), 0);
  EXPECT_EQ(parse_int<int>("-12"), -12);
  EXPECT_EQ(parse_int<int>("007"), 7);
  EXPECT_EQ(parse_int<std::int64_t>("9223372036854775807"),
            std::numeric_limits<std::int64_t>::max());
  for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "-", "0x10", "99999999999"}) {
    EXPECT_EQ(parse_int<int>(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_int<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(parse_int<int>(std::string_view{}), std::nullopt);
  EXPECT_EQ(parse_int<int>("0a", 16), 10);
  EXPECT_EQ(parse_int<int>("17", 8), 15);
  for (const char* text : {"", "0x10", "g", "+1"}) {
    EXPECT_EQ(parse_int<int>(text, 16), std::nullopt) << text;
  }
}

TEST(TextTest, NearestIsWhatWasMeant) {
  const Words kKeys{"slurm.pollInterval", "slurm.conf", "node.name", "node.labels",
                    "endpoint.port"};
  struct Row {
    const char* word;
    std::optional<std::string> wanted;
  };
  const Row kRows[] = {
      {"slurm.polInterval", "slurm.pollInterval"},
      {"slurm.pollinterval", "slurm.pollInterval"},
      {"slurm.confg", "slurm.conf"},
      {"node.nam", "node.name"},
      {"nodename", "node.name"},
      {"node.name", "node.name"},
      {"kubernetes", std::nullopt},
      {"zzzzzzzzzzzzzzzzzz", std::nullopt},
      {"", std::nullopt},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(nearest(row.word, kKeys), row.wanted) << row.word;
  }
  EXPECT_EQ(nearest("x", {}), std::nullopt);
  // At most half of a short word may be wrong.
  EXPECT_EQ(nearest("foo", {"os"}), std::nullopt);
  EXPECT_EQ(nearest("x", {"os", "y"}), std::nullopt);
  EXPECT_EQ(nearest("prot", {"port"}), "port");
}

// Per-node phases must not move with a release: the published test values of 64-bit FNV-1a.
TEST(TextTest, StableHashIsFixed) {
  EXPECT_EQ(stable_hash(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(stable_hash("a"), 0xaf63dc4c8601ec8cULL);
  EXPECT_EQ(stable_hash("foobar"), 0x85944171f73967e8ULL);
  EXPECT_NE(stable_hash("\xff"), stable_hash("\x7f"));
}

}  // namespace
}  // namespace slurmlet
