#include "yaml/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::yaml {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Value parse_value(const std::string& text) {
  auto document = parse(text, "f.yaml");
  EXPECT_TRUE(document) << text << "\n" << document.error().message;
  return document ? document->root() : Value{};
}

std::string parse_error(const std::string& text) {
  const auto document = parse(text, "f.yaml");
  EXPECT_FALSE(document) << text;
  if (document) {
    return "";
  }
  EXPECT_EQ(document.error().code, Code::kInvalid);
  return document.error().message;
}

TEST(DocumentTest, PlainScalarsAreTypedByTheCoreSchema) {
  struct Row {
    const char* text;
    Kind kind;
  };
  const Row kRows[] = {
      {"", Kind::kNull},         {"~", Kind::kNull},        {"null", Kind::kNull},
      {"NULL", Kind::kNull},     {"nULL", Kind::kString},   {"true", Kind::kBool},
      {"False", Kind::kBool},    {"yes", Kind::kString},    {"off", Kind::kString},
      {"0", Kind::kInt},         {"-17", Kind::kInt},       {"+17", Kind::kInt},
      {"007", Kind::kInt},       {"0o17", Kind::kInt},      {"0x1F", Kind::kInt},
      {"0x", Kind::kString},     {"0x-1", Kind::kString},   {"1.10", Kind::kDouble},
      {"1e3", Kind::kDouble},    {".5", Kind::kDouble},     {"1.", Kind::kDouble},
      {".", Kind::kString},      {"-.inf", Kind::kDouble},  {".NaN", Kind::kDouble},
      {"1e", Kind::kString},     {"1_000", Kind::kString},  {"12:30", Kind::kString},
      {"60s", Kind::kString},    {"1.2.3", Kind::kString},  {"2026-11-20", Kind::kString},
      {"\"17\"", Kind::kString}, {"'true'", Kind::kString}, {"99999999999999999999", Kind::kDouble},
      {"inf", Kind::kString},    {"--1", Kind::kString},    {"+-1.5", Kind::kString},
  };
  for (const auto& row : kRows) {
    const Value root = parse_value(std::string("k: ") + row.text);
    ASSERT_NE(root.find("k"), nullptr) << row.text;
    EXPECT_EQ(root.find("k")->kind(), row.kind) << row.text;
  }
}

TEST(DocumentTest, AccessorsGiveAValueOnlyForTheirOwnKind) {
  const Value root = parse_value("i: 0x1F\nd: 2.5\nb: True\ns: '1'\nn: -9223372036854775808\n");
  EXPECT_EQ(root.find("i")->as_int(), 31);
  EXPECT_EQ(root.find("n")->as_int(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(root.find("d")->text(), "2.5");
  EXPECT_EQ(root.find("d")->as_int(), std::nullopt);
  EXPECT_EQ(root.find("b")->as_bool(), true);
  EXPECT_EQ(root.find("b")->as_string(), std::nullopt);
  EXPECT_EQ(root.find("s")->as_string(), "1");
  EXPECT_EQ(root.find("s")->as_int(), std::nullopt);
  EXPECT_EQ(root.as_string(), std::nullopt);
}

TEST(DocumentTest, TextKeepsWhatStoodInTheFile) {
  EXPECT_EQ(parse_value("version: 1.10").find("version")->text(), "1.10");
  EXPECT_EQ(parse_value("a: |\n  one\n  two\n").find("a")->text(), "one\ntwo\n");
}

TEST(DocumentTest, MapsKeepOrderAndPositions) {
  const Value root = parse_value("b: 1\na:\n  - x\n  -  key: y\n");
  ASSERT_EQ(root.entries().size(), 2U);
  EXPECT_EQ(root.entries()[0].first, "b");
  EXPECT_EQ(root.entries()[1].first, "a");
  const Value& list = root.entries()[1].second;
  EXPECT_EQ(list.key_line(), 2);
  EXPECT_EQ(list.key_column(), 1);
  ASSERT_EQ(list.items().size(), 2U);
  const Value* inner = list.items()[1].find("key");
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->key_line(), 4);
  EXPECT_EQ(inner->key_column(), 6);
  EXPECT_EQ(inner->line(), 4);
  EXPECT_EQ(inner->column(), 11);
  const auto document = parse("a: [7]", "dir/f.yaml");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->where(*document->root().find("a")), "dir/f.yaml:1:4");
  EXPECT_EQ(document->where_key(*document->root().find("a")), "dir/f.yaml:1:1");
  EXPECT_EQ(document->where_key(document->root()), "dir/f.yaml:1:1");
}

TEST(DocumentTest, FindOnSomethingElseThanAMapIsNull) {
  EXPECT_EQ(parse_value("[a]").find("a"), nullptr);
  EXPECT_EQ(parse_value("a").find("a"), nullptr);
}

TEST(DocumentTest, EmptyFilesHaveANullRoot) {
  for (const char* text : {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n"}) {
    EXPECT_TRUE(parse_value(text).is_null()) << text;
  }
}

TEST(DocumentTest, JsonParses) {
  const Value root = parse_value(
      "{\r\n\t\"a\" :\t{\"b\":[1,-2.5e3,true,null,\"x\\/y\\u00e9\"]},\n\t\"e\":{},\"f\":[]\n}\n");
  const auto& items = root.find("a")->find("b")->items();
  ASSERT_EQ(items.size(), 5U);
  EXPECT_EQ(items[0].as_int(), 1);
  EXPECT_EQ(items[1].kind(), Kind::kDouble);
  EXPECT_EQ(items[2].as_bool(), true);
  EXPECT_TRUE(items[3].is_null());
  EXPECT_EQ(items[4].as_string(), "x/y\u00e9");
  EXPECT_EQ(root.find("e")->key_line(), 3);
  EXPECT_TRUE(root.find("e")->is_map());
  EXPECT_TRUE(root.find("f")->is_list());
}

TEST(DocumentTest, ATabIsNamed) {
  for (const char* text : {"a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 1\n"}) {
    const auto document = parse(text, "/c.yaml");
    ASSERT_FALSE(document) << text;
    EXPECT_THAT(document.error().message, testing::HasSubstr("a tab; indent with spaces")) << text;
  }
}

// libyaml does not know JSON's way of writing characters beyond U+FFFF.
TEST(DocumentTest, JsonSurrogatePairsAreRejected) {
  EXPECT_EQ(parse_value(R"({"a": "\\ud83d\\ude00"})").find("a")->text(), "\\ud83d\\ude00");
  EXPECT_THAT(parse_error(R"({"a": "\ud83d\ude00"})"), StartsWith("f.yaml:1:"));
}

TEST(DocumentTest, ErrorsNameFileLineAndColumn) {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row kRows[] = {
      {"a: 1\nb: 2\na: 3\n", "f.yaml:3:1: key \"a\" is given twice; first in line 1"},
      {"x:\n  {a: 1, a: 2}\n", "f.yaml:2:10: key \"a\" is given twice; first in line 2"},
      {"a: 1\n---\nb: 2\n", "f.yaml:2:1: a second document starts here; only one is expected"},
      {"? [a]\n: 1\n", "f.yaml:1:3: a key must be plain or quoted text"},

      {"a: 1\nb: *x\n",
       "f.yaml:2:4: aliases are not supported; write out the value that \"*x\" stands for"},
      {"a: &x {k: 1}\nb: *x\n",
       "f.yaml:1:4: anchors are not supported; remove \"&x\", and write the value out where it is "
       "used"},
      {"- &x [1]\n",
       "f.yaml:1:3: anchors are not supported; remove \"&x\", and write the value out where it is "
       "used"},
      {"&k a: 1\n",
       "f.yaml:1:1: anchors are not supported; remove \"&k\", and write the value out where it is "
       "used"},
      {"<<: {a: 1}\n",
       "f.yaml:1:1: merge keys are not supported; write the entries that \"<<\" stands for in its "
       "place"},
      {"a: !!int 1\n", "f.yaml:1:4: tags are not supported; \"!!int\": remove it"},
      {"a: !!int \"1\"\n",
       "f.yaml:1:4: tags are not supported; \"!!int\": remove it and the quotes around the value"},
      {"a: !!str 1\n",
       "f.yaml:1:4: tags are not supported; \"!!str\": remove it, and put the value in quotes"},
      {"a: !!str |\n  1\n", "f.yaml:1:4: tags are not supported; \"!!str\": remove it"},
      {"a: !!binary |\n  YQ==\n",
       "f.yaml:1:4: tags are not supported; \"!!binary\": replace it and its value with what "
       "base64 "
       "-d prints of the value"},
      {"a: !!map {x: 1}\n", "f.yaml:1:4: tags are not supported; \"!!map\": remove it"},
      {"a: !vault |\n  x\n",
       "f.yaml:1:4: tags are not supported; write in the place of \"!vault\" and its value what "
       "they "
       "stand for"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(parse_error(row.text), row.message);
  }
}

TEST(DocumentTest, SyntaxErrorsComeFromTheScannerWithTheirPlace) {
  EXPECT_THAT(parse_error("a: 1\n b: 2\n"), StartsWith("f.yaml:2:3: "));
  EXPECT_THAT(parse_error("a: [1, 2\n"), HasSubstr("while parsing a flow"));
  EXPECT_THAT(parse_error("a:\n\t- 1\n"), StartsWith("f.yaml:2:1: "));
  EXPECT_THAT(parse_error("{{ ds.meta_data.uuid }}"), StartsWith("f.yaml:1:"));
}

TEST(DocumentTest, WhatIsNotUtf8IsRefused) {
  EXPECT_THAT(parse_error("a: 1\nbc: \xff\n"), StartsWith("f.yaml:2:5: not UTF-8 text"));
  EXPECT_THAT(parse_error(std::string("a: \0\n", 5)), StartsWith("f.yaml:1:4: not UTF-8 text"));
}

TEST(DocumentTest, BytesThatNobodySees) {
  EXPECT_EQ(parse_value("\xEF\xBB\xBFk: v\n").find("k")->text(), "v");
  EXPECT_EQ(parse_value("\xEF\xBB\xBF{\"k\": \"v\"}").find("k")->text(), "v");
  EXPECT_TRUE(parse_value("\xEF\xBB\xBF").is_null());
  for (const std::string& text :
       {std::string("\xFF\xFEk\0:\0", 6), std::string("\xFE\xFF\0k\0:", 6),
        std::string("k\0:\0", 4), std::string("\0k\0:", 4)}) {
    EXPECT_THAT(parse_error(text), StartsWith("f.yaml:1:1: the file is UTF-16; save it as UTF-8"));
  }
  for (const char* key : {"\u00a0b", "b\u200b", "\ufeffb", "b\u2060c"}) {
    EXPECT_THAT(parse_error(std::string("a:\n  ") + key + ": 1\n"),
                StartsWith("f.yaml:2:3: an invisible character"));
  }
  EXPECT_EQ(parse_value("k: a\u00a0b\n").find("k")->text(), "a\u00a0b");
}

// What the messages advise, followed to the letter, gives the value that was meant.
TEST(DocumentTest, AdviceAboutTagsWorks) {
  EXPECT_EQ(parse_value("a: \"1\"\n").find("a")->as_string(), "1");  // !!str 1
  EXPECT_EQ(parse_value("a: 1\n").find("a")->as_int(), 1);           // !!int "1"
  EXPECT_EQ(parse_value("a: a\n").find("a")->text(), "a");           // !!binary YQ==
}

TEST(DocumentTest, NestingIsBounded) {
  const std::string deep(kMaxDepth, '[');
  EXPECT_TRUE(parse_value(deep + std::string(kMaxDepth, ']')).is_list());
  EXPECT_THAT(parse_error(deep + "[" + std::string(kMaxDepth + 1, ']')),
              HasSubstr("nested deeper than 64 levels"));
}

TEST(DocumentTest, SizeIsBounded) {
  EXPECT_TRUE(parse_value("# " + std::string(kMaxBytes - 2, 'x')).is_null());
  EXPECT_THAT(parse_error("# " + std::string(kMaxBytes - 1, 'x')), HasSubstr("longer than"));
  std::string many = "[";
  for (std::size_t i = 0; i <= kMaxNodes; ++i) {
    many += "0,";
  }
  EXPECT_THAT(parse_error(many + "]"), HasSubstr("more than 100000 values"));
}

}  // namespace
}  // namespace slurmlet::yaml
