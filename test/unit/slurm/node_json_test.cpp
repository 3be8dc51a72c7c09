#include "slurm/answers/node_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/rfc3339.h"
#include "rest_capture.h"

namespace slurmlet::slurm {
namespace node_json_test {

using Json = nlohmann::json;
using node::SlurmFailure;
using testing::ElementsAre;
using testing::IsEmpty;

NodesAnswer of_rest(const std::string& name) {
  const auto capture = rest_capture(name);
  return parse_nodes_json(capture.body, capture.status);
}

node::SlurmNodeRecord only(const NodesAnswer& answer) {
  EXPECT_FALSE(answer.failure) << answer.failure->detail;
  EXPECT_EQ(answer.nodes.size(), 1U);
  return answer.nodes.empty() ? node::SlurmNodeRecord{} : answer.nodes.front();
}

std::int64_t seconds(const std::optional<WallTime>& time) {
  return time ? std::chrono::duration_cast<std::chrono::seconds>(time->time_since_epoch()).count()
              : -1;
}

// Of the same node with the same job in every form that slurmrestd has had, what expected.tsv does
// not have (captures_test.cpp).
TEST(NodeJson, ReadsEveryApiVersion) {
  struct Case {
    const char* file;
    const char* api;
    const char* slurm;
    const char* cluster;
  };
  const std::vector<Case> cases{
      {"22.05.8/rest-v0.0.36-node-idle-gpu01.out", "v0.0.36", "22.05.8", ""},
      {"22.05.8/rest-v0.0.37-node-idle-gpu01.out", "v0.0.37", "22.05.8", ""},
      {"22.05.8/mixed-gpu.rest.out", "v0.0.38", "22.05.8", ""},
      {"23.02/apiver.v0.0.37.mixed-gpu.out", "v0.0.37", "23.02.8", ""},
      {"23.02/apiver.v0.0.38.mixed-gpu.out", "v0.0.38", "23.02.8", ""},
      {"24.05/apiver.v0.0.39.mixed-gpu.out", "v0.0.39", "24.05.8", ""},
      {"24.05/apiver.v0.0.40.mixed-gpu.out", "v0.0.40", "24.05.8", "lab"},
      {"24.11/apiver.v0.0.41.mixed-gpu.out", "v0.0.41", "24.11.7", "lab"},
      {"24.11/apiver.v0.0.42.mixed-gpu.out", "v0.0.42", "24.11.7", "lab"},
      {"25.11/apiver.v0.0.43.mixed-gpu.out", "v0.0.43", "25.11.8-0pre1", "lab"},
      {"25.11/apiver.v0.0.44.mixed-gpu.out", "v0.0.44", "25.11.8-0pre1", "lab"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.file);
    const auto answer = of_rest(c.file);
    EXPECT_EQ(answer.api_version, c.api);
    EXPECT_EQ(answer.slurm_version, c.slurm);
    EXPECT_EQ(answer.cluster, c.cluster);
    const auto record = only(answer);
    EXPECT_EQ(record.cluster, c.cluster);
    EXPECT_GT(record.cpu_load, 0.1);
    EXPECT_LT(record.cpu_load, 4.0);
    EXPECT_THAT(record.active_features, ElementsAre("a100"));
    EXPECT_EQ(record.gres_drained, "");
    EXPECT_EQ(record.operating_system, "Linux 6.18.44-fc-v657 #1 SMP PREEMPT_DYNAMIC @0");
    EXPECT_EQ(record.architecture, "x86_64");
    EXPECT_GT(seconds(record.boot_time), 1795000000);
    EXPECT_GT(seconds(record.slurmd_start_time), 1795000000);
    EXPECT_FALSE(record.resume_after);
    EXPECT_EQ(record.next_state, "");
  }
  const auto unregistered = only(of_rest("25.11/cloud-unregistered.rest.out"));
  EXPECT_FALSE(unregistered.cpu_load || unregistered.boot_time);
}

TEST(NodeJson, NextStateIsThatOfTheText) {
  EXPECT_EQ(only(of_rest("22.05.8/reboot-issued.rest.out")).next_state, "RESUME");
  EXPECT_EQ(only(of_rest("25.11/reboot-issued.rest.out")).next_state, "RESUME");
  EXPECT_EQ(only(of_rest("25.11/idle.rest.out")).next_state, "");
}

TEST(NodeJson, AVersionInPartsCountsLikeItsRelease) {
  Json document = Json::parse(rest_capture("25.11/mixed-gpu.rest.out").body);
  document["meta"]["slurm"].erase("release");
  auto answer = parse_nodes_json(document.dump(), 200);
  EXPECT_EQ(answer.slurm_version, "25.11.8");

  document = Json::parse(rest_capture("22.05.8/mixed-gpu.rest.out").body);
  document["meta"]["Slurm"].erase("release");
  answer = parse_nodes_json(document.dump(), 200);
  EXPECT_EQ(answer.slurm_version, "22.05.08");
}

TEST(NodeJson, AFormWithoutPartitionsKnowsNone) {
  Json document = Json::parse(rest_capture("22.05.8/rest-v0.0.36-node-idle-gpu01.out").body);
  Json other = document["nodes"][0];
  other["name"] = "zz99";
  document["nodes"].push_back(other);
  EXPECT_FALSE(parse_nodes_json(document.dump(), 200).nodes.at(1).partitions_known);
}

// ---- what is not known

Json small() {
  return Json::parse(R"({"nodes": [{"name": "n1", "state": ["IDLE"]}], "errors": [],
    "meta": {"command": ["show", "node"], "slurm": {"release": "26.05.1", "cluster": "c"}}})");
}

NodesAnswer with(const std::string& key, const Json& value) {
  Json document = small();
  document["nodes"][0][key] = value;
  return parse_nodes_json(document.dump(), 0);
}

TEST(NodeJson, NumbersInEveryShape) {
  struct Case {
    const char* text;
    std::optional<std::int64_t> value;
    bool noted;
  };
  const std::vector<Case> cases{
      {"4096", 4096, false},
      {"0", 0, false},
      {"4096.0", 4096, false},
      {"4.0961e3", 4096, false},
      {R"({"set": true, "infinite": false, "number": 7})", 7, false},
      {R"({"set": true, "number": 7})", 7, false},
      {R"({"set": false, "infinite": false, "number": 7})", {}, false},
      {R"({"set": true, "infinite": true, "number": 7})", {}, false},
      {"-2", {}, false},                    // NO_VAL64, written as signed
      {"4294967294", {}, false},            // NO_VAL
      {"18446744073709551614", {}, false},  // NO_VAL64
      {"-3", {}, true},
      {"-0.7", {}, false},  // rounds to -1
      {"9223372036854775808", {}, true},
      {"99999999999999999999999", {}, true},
      {"1e300", {}, true},
      {R"("4096")", {}, true},
      {"null", {}, true},
      {"true", {}, true},
      {"[4096]", {}, true},
      {"{}", {}, true},
      {R"({"set": 1, "number": 7})", {}, true},
      {R"({"set": true, "number": {"set": true, "number": 7}})", {}, true},
      {R"({"set": true, "number": "7"})", {}, true},
  };
  for (const auto& c : cases) {
    const auto answer = with("real_memory", Json::parse(c.text));
    EXPECT_EQ(only(answer).real_memory_mib, c.value) << c.text;
    EXPECT_EQ(!answer.not_understood.empty(), c.noted) << c.text;
    if (c.noted) {
      EXPECT_THAT(answer.not_understood[0], testing::StartsWith("nodes[0].real_memory: "));
    }
  }
}

TEST(NodeJson, TimesInEveryShape) {
  EXPECT_EQ(seconds(only(with("boot_time", 1795213954)).boot_time), 1795213954);
  const auto object = [](std::int64_t number) {
    return Json{{"set", true}, {"infinite", false}, {"number", number}};
  };
  EXPECT_EQ(seconds(only(with("boot_time", object(1795213954))).boot_time), 1795213954);
  EXPECT_FALSE(only(with("boot_time", object(0))).boot_time) << "set to 0 is none";
  EXPECT_FALSE(only(with("boot_time", 0)).boot_time);
  EXPECT_FALSE(only(with("boot_time", 4294967294)).boot_time);
  const auto far = with("boot_time", 99999999999);
  EXPECT_FALSE(only(far).boot_time);
  EXPECT_THAT(far.not_understood, ElementsAre("nodes[0].boot_time: out of range"));
}

TEST(NodeJson, BothNamesOfAFieldInAnyVersion) {
  EXPECT_EQ(only(with("free_memory", 5)).free_memory_mib, 5);
  EXPECT_EQ(only(with("free_mem", 5)).free_memory_mib, 5);
  EXPECT_EQ(only(with("version", "26.05.1")).version, "26.05.1");
  EXPECT_EQ(only(with("slurmd_version", "22.05.8")).version, "22.05.8");
  EXPECT_THAT(only(with("features", "a,b")).features, ElementsAre("a", "b"));
  EXPECT_THAT(only(with("features", {"a", "b"})).features, ElementsAre("a", "b"));
  EXPECT_EQ(only(with("specialized_memory", 512)).mem_spec_limit_mib, 512);
  EXPECT_EQ(only(with("reservation", "r1")).reservation, "r1");
  EXPECT_FALSE(only(with("cpus", 65534)).cpus) << "NO_VAL16";
  EXPECT_EQ(only(with("instance_id", "i-7")).instance_id, "i-7");
  EXPECT_THAT(with("suspend_time", {{"set", false}}).not_understood, IsEmpty()) << "v0.0.45";
}

TEST(NodeJson, StatesInEveryShape) {
  struct Case {
    const char* state;
    const char* raw;
    std::vector<std::string> notes;
  };
  const std::vector<Case> cases{
      {R"(["MIXED", "DRAIN", "NOT_RESPONDING"])", "MIXED+DRAIN+NOT_RESPONDING", {}},
      {R"(["DRAIN", "IDLE"])", "IDLE+DRAIN", {}},
      {R"("idle")", "IDLE", {}},
      {R"("IDLE+DRAIN")", "IDLE+DRAIN", {}},
      {R"(["IDLE", "EXTERNAL", "POWER_DOWN_ASAP"])", "IDLE+EXTERNAL+POWER_DOWN_ASAP", {}},
      {R"(["IDLE", "FROBNICATED"])", "IDLE+FROBNICATED", {"nodes[0].state: FROBNICATED"}},
      {R"(["HIBERNATING"])",
       "+HIBERNATING",
       {"nodes[0].state: HIBERNATING", "nodes[0].state: none"}},
      {R"(["IDLE", 7])", "IDLE", {"nodes[0].state: number instead of a string"}},
      {R"(7)", "", {"nodes[0].state: number instead of a list", "nodes[0].state: none"}},
      {R"(null)", "", {"nodes[0].state: none"}},
      {R"([])", "", {"nodes[0].state: none"}},
  };
  for (const auto& c : cases) {
    const auto answer = with("state", Json::parse(c.state));
    EXPECT_EQ(only(answer).state.raw(), c.raw) << c.state;
    EXPECT_EQ(answer.not_understood, c.notes) << c.state;
  }
}

TEST(NodeJson, NamesWhatItDoesNotKnow) {
  EXPECT_THAT(with("newthing", 1).not_understood, ElementsAre("nodes[0].newthing"));
  EXPECT_THAT(with("reason", {{"text", "x"}}).not_understood,
              ElementsAre("nodes[0].reason: object instead of a string"));
  EXPECT_THAT(with("features", 7).not_understood,
              ElementsAre("nodes[0].features: number instead of a list"));
  const auto odd = with(std::string(300, 'k') + "\n", 1);
  EXPECT_LE(odd.not_understood.at(0).size(), 120U);
}

TEST(NodeJson, SaysOnlySoOftenWhatItDoesNotKnow) {
  Json document = small();
  const Json node = document["nodes"][0];
  for (int i = 2; i < 400; ++i) {
    document["nodes"].push_back(node);
    document["nodes"].back()["name"] = fmt::format("n{}", i);
    document["nodes"].back()["newthing"] = 1;
  }
  const auto answer = parse_nodes_json(document.dump(), 0);
  EXPECT_EQ(answer.nodes.size(), 399U);
  EXPECT_EQ(answer.not_understood.size(), 101U);
  EXPECT_EQ(answer.not_understood.back(), "and more");
}

TEST(NodeJson, RecordsWithoutANameAreLeftOut) {
  Json document = small();
  for (const char* name : {R"("")", "null", R"("-x")", R"("a b")", "7"}) {
    document["nodes"].push_back({{"name", Json::parse(name)}, {"state", {"DOWN"}}});
  }
  document["nodes"].push_back(7);
  const auto answer = parse_nodes_json(document.dump(), 0);
  EXPECT_EQ(only(answer).name, "n1");
  EXPECT_EQ(answer.not_understood.size(), 6U);

  document["nodes"].erase(0);
  EXPECT_EQ(parse_nodes_json(document.dump(), 0).failure->cause, SlurmFailure::kInvalidResponse)
      << "an answer with records that cannot be told apart does not say that the node is gone";
}

// ---- text that is no good

TEST(NodeJson, BytesThatAreNotUtf8AreReplaced) {
  std::string body = rest_capture("25.11/drained-idle.rest.out").body;
  const auto at = body.find("\"reason\": \"");
  ASSERT_NE(at, std::string::npos);
  body.insert(at + 11, "fan \xFF\xC3");
  EXPECT_THAT(only(parse_nodes_json(body, 200)).reason,
              testing::StartsWith("fan \xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(NodeJson, EveryCutOffAnswerIsGarbage) {
  const auto whole = rest_capture("25.11/mixed-gpu.rest.out").body;
  for (std::size_t size = 0; size + 1 < whole.size(); size += 29) {
    const auto result = parse_nodes_json(whole.substr(0, size), 200);
    ASSERT_TRUE(result.failure) << size;
    EXPECT_EQ(result.failure->cause, SlurmFailure::kInvalidResponse) << size;
  }
}

TEST(NodeJson, ATowerOfBracketsCostsNothing) {
  const std::string tower(std::size_t{1} << 18, '[');
  EXPECT_EQ(parse_nodes_json("{\"nodes\": " + tower, 200).failure->cause,
            SlurmFailure::kInvalidResponse);
  EXPECT_EQ(parse_nodes_json(tower, 200).failure->cause, SlurmFailure::kInvalidResponse);
  // Brackets within a string are none.
  EXPECT_EQ(only(with("reason", "\\\"" + std::string(99, '['))).reason.size(), 101U);
}

// Every member, and every object that holds one, once.
std::set<std::string> places(const Json& document) {
  std::set<std::string> places;
  const Json flat = document.flatten();
  for (const auto& [leaf, unused] : flat.items()) {
    for (Json::json_pointer at{leaf}; !at.empty(); at = at.parent_pointer()) {
      places.insert(at.to_string());
    }
  }
  return places;
}

const std::vector<Json>& shapes() {
  static const std::vector<Json> all{nullptr,
                                     true,
                                     -7,
                                     1.5e308,
                                     "x,y\n+",
                                     Json::object(),
                                     {1, nullptr, "a", {2}},
                                     {{"set", true}, {"infinite", "no"}, {"number", nullptr}}};
  return all;
}

// Any member in any shape: a record or a failure, never a crash.
TEST(NodeJson, SurvivesEveryMemberInEveryShape) {
  for (const std::string file : {"22.05.8/mixed-gpu.rest.out", "25.11/mixed-gpu.rest.out"}) {
    const Json whole = Json::parse(rest_capture(file).body);
    const auto all = places(whole);
    EXPECT_GT(all.size(), 50U);
    for (const auto& place : all) {
      for (const auto& shape : shapes()) {
        Json changed = whole;
        changed[Json::json_pointer{place}] = shape;
        const auto result = parse_nodes_json(changed.dump(), 200);
        ASSERT_EQ(result.nodes.empty(), result.failure.has_value()) << place;
      }
    }
  }
}

}  // namespace node_json_test
}  // namespace slurmlet::slurm
