#include "yaml/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "yaml/document.h"

namespace slurmlet::yaml {
namespace {

using ::testing::AnyOf;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

Json to_json(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBool:
      return *value.as_bool();
    case Kind::kInt:
      return *value.as_int();
    case Kind::kDouble:
      return std::stod(value.text());
    case Kind::kString:
      return value.text();
    case Kind::kList: {
      Json list = Json::array();
      for (const auto& item : value.items()) {
        list.push_back(to_json(item));
      }
      return list;
    }
    case Kind::kMap: {
      Json map = Json::object();
      for (const auto& [key, child] : value.entries()) {
        map[key] = to_json(child);
      }
      return map;
    }
  }
  return nullptr;
}

TEST(EmitTest, NodeLooksAsKubectlPrintsIt) {
  const std::string yaml = emit(Json::parse(R"({
    "kind": "Node", "apiVersion": "v1",
    "metadata": {"name": "n1", "labels": {"metal3.io/uuid": "8b2a2f8a-0001", "type": "x"},
                 "annotations": {}},
    "spec": {"taints": [{"key": "k", "value": "true", "effect": "NoSchedule"}, {"key": "l"}]},
    "status": {"capacity": {"cpu": "64", "pods": "0"}, "empty": [], "port": 10250, "ok": true,
               "none": null, "matrix": [[1, 2], []], "address": "192.0.2.7"}})"));
  EXPECT_EQ(yaml, R"(kind: Node
apiVersion: v1
metadata:
  name: n1
  labels:
    metal3.io/uuid: 8b2a2f8a-0001
    type: x
  annotations: {}
spec:
  taints:
  - key: k
    value: "true"
    effect: NoSchedule
  - key: l
status:
  capacity:
    cpu: "64"
    pods: "0"
  empty: []
  port: 10250
  ok: true
  none: null
  matrix:
  - - 1
    - 2
  - []
  address: 192.0.2.7
)");
}

TEST(EmitTest, StringsThatCouldBeTakenForSomethingElseAreQuoted) {
  struct Row {
    const char* text;
    const char* yaml;
  };
  const Row kRows[] = {
      {"", "\"\""},
      {"yes", "\"yes\""},
      {"Off", "\"Off\""},
      {"y", "\"y\""},
      {"null", "\"null\""},
      {"~", "\"~\""},
      {"1e3", "\"1e3\""},
      {"0x1F", "\"0x1F\""},
      {"0777", "\"0777\""},
      {"12:30", "\"12:30\""},
      {"1_000", "\"1_000\""},
      {"2026-11-20T14:02:11Z", "\"2026-11-20T14:02:11Z\""},
      {"-", "'-'"},
      {"- a", "'- a'"},
      {"*a", "'*a'"},
      {"#a", "'#a'"},
      {"a: b", "'a: b'"},
      {"a #b", "'a #b'"},
      {"a:", "'a:'"},
      {" a", "' a'"},
      {"a ", "'a '"},
      {"a\tb", "\"a\\tb\""},
      {"\x1b", "\"\\e\""},
      {"\x7f", "\"\\x7F\""},
      {"say \"x\"", "say \"x\""},
      {"\"x\"", "'\"x\"'"},
      {"\u2028", "\"\\L\""},
      {"\u0085", "\"\\N\""},
      {"na\u00efve", "\"na\u00efve\""},
      {"plain text", "plain text"},
      {"a:b", "a:b"},
      {"256Gi", "256Gi"},
      {"10.0.0.1", "10.0.0.1"},
      {"MIXED+DRAIN", "MIXED+DRAIN"},
      {"metal3://a/b/c", "metal3://a/b/c"},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(emit(Json(row.text)), std::string(row.yaml) + "\n") << row.text;
    EXPECT_THAT(emit(Json{{row.text, 1}}), AnyOf(StartsWith(row.yaml), StartsWith("? ")))
        << row.text;
  }
}

TEST(EmitTest, LinesBecomeALiteralBlock) {
  EXPECT_EQ(emit(Json{{"a", {{"b", "one\n\n  two: x"}}}}),
            "a:\n  b: |-\n    one\n\n      two: x\n");
  EXPECT_EQ(emit(Json{{"b", "one\n"}}), "b: |\n  one\n");
  EXPECT_EQ(emit(Json{{"b", "one\n\n"}}), "b: |+\n  one\n\n...\n");
  EXPECT_EQ(emit(Json{{"b", "\none"}}), "b: |2-\n\n  one\n");
}

TEST(EmitTest, WhatIsWrittenReadsBackTheSame) {
  const Json kValues[] = {
      Json::parse(R"({"a":[[[1]],{"b":{"c":[{"d":"e\nf"},{"g":[]}]}}],"true":"true","1":1.5})"),
      Json::parse(
          R"(["\u0000\u0001\u00a0\u0085\u2029\ufeff\ud83d\ude00", "trail \nx", "\\", "'"])"),
      Json::parse(R"(["<<", "=", "...", "---", "@x", "`x", "%x", "!x", "|", ">", "?", "x?", ""])"),
      Json("top\n level"),
      Json(-1.5e300),
      Json(nullptr),
  };
  for (const auto& value : kValues) {
    const std::string yaml = emit(value);
    const auto document = parse(yaml, "out");
    ASSERT_TRUE(document) << document.error().message << "\n" << yaml;
    EXPECT_EQ(to_json(document->root()), value) << yaml;
  }
}

TEST(EmitTest, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(emit(Json{{"a", "x\xff"}}), "a: \"x\ufffd\"\n");
}

}  // namespace
}  // namespace slurmlet::yaml
