#include "node/slurm_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include <fmt/format.h>

#include <random>

#include "base/text.h"
#include "node/labels.h"
#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(LabelNameTest, EscapesWhatALabelCannotHold) {
  struct Row {
    std::string name;
    std::string label;
  };
  const Row kRows[] = {
      {"", ""},
      {"batch", "batch"},
      {"gpu_long.v-2", "gpu_long.v-2"},
      {"X_y", "X_y"},
      {"8", "8"},
      {std::string(63, 'a'), std::string(63, 'a')},
      // no label's name
      {"a b", "x_a_20b_x"},
      {"a_b!", "x_a__b_21_x"},
      {"_a", "x___a_x"},
      {"a_", "x_a___x"},
      {"-a", "x_-a_x"},
      {"a.", "x_a._x"},
      {"_", "x____x"},
      {"\xc3\xa4", "x__C3_A4_x"},
      {std::string("a\0b", 3), "x_a_00b_x"},
      // looks escaped
      {"x_", "x_x___x"},
      {"x_a", "x_x__a_x"},
      {"x_a_20b_x", "x_x__a__20b__x_x"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(label_name(row.name), row.label) << row.name;
  }
}

TEST(LabelNameTest, LongNamesEndInAHash) {
  const std::string name(64, 'a');
  EXPECT_EQ(label_name(name),
            "x_" + std::string(42, 'a') + "_h" + fmt::format("{:016x}", stable_hash(name)) + "x");
  // 59 bytes fit between x_ and _x
  EXPECT_EQ(label_name("!" + std::string(56, 'a')), "x__21" + std::string(56, 'a') + "_x");
  EXPECT_EQ(label_name("!" + std::string(57, 'a')).substr(44, 2), "_h");
  // never half an escape: 41 bytes and then one of three
  EXPECT_EQ(label_name(std::string(41, 'a') + "!" + std::string(40, 'b')).substr(0, 45),
            "x_" + std::string(41, 'a') + "_h");
}

// The inverse of escaping, written apart from it.
std::optional<std::string> read_back(const std::string& label) {
  if (!label.starts_with("x_")) {
    return label;
  }
  if (!label.ends_with("_x")) {
    return std::nullopt;  // cut
  }
  std::string name;
  for (std::size_t i = 2; i < label.size() - 2; ++i) {
    if (label[i] != '_') {
      name += label[i];
    } else if (label[i + 1] == '_') {
      name += '_';
      ++i;
    } else {
      name += static_cast<char>(std::stoi(label.substr(i + 1, 2), nullptr, 16));
      i += 2;
    }
  }
  return name;
}

// Names of few letters, so that near misses abound, and of all lengths about the limits.
std::string random_name(std::mt19937& random) {
  static constexpr std::string_view kLetters = "x_h0aA2F.- \xc3";
  std::uniform_int_distribution<std::size_t> short_length{1, 8};
  std::uniform_int_distribution<std::size_t> long_length{55, 70};
  std::uniform_int_distribution<std::size_t> letter{0, kLetters.size() - 1};
  const std::size_t length = random() % 4 == 0 ? long_length(random) : short_length(random);
  std::string name = random() % 3 == 0 ? "x_" : "";
  while (name.size() < length) {
    name += kLetters[letter(random)];
  }
  return random() % 5 == 0 ? name + "_x" : name;
}

TEST(LabelNameTest, IsInjectiveAndAlwaysALabelName) {
  std::mt19937 random{20261121};
  std::map<std::string, std::string> name_of;
  for (int i = 0; i < 100000; ++i) {
    const std::string name = random_name(random);
    const std::string label = label_name(name);
    ASSERT_FALSE(label_value_problem(label)) << label;
    ASSERT_FALSE(label.empty());
    ASSERT_FALSE(label_key_problem("partition.slurmlet.io/" + label)) << label;
    ASSERT_EQ(name_of.try_emplace(label, name).first->second, name) << label;
    if (const auto back = read_back(label)) {
      ASSERT_EQ(*back, name) << label;
    }
    // What is a label already is not sanitised to what another becomes.
    if (label != name) {
      ASSERT_NE(label_name(label), label);
    }
  }
  EXPECT_GT(name_of.size(), 50000U);
}

HostFacts labelled() {
  HostFacts facts = good_facts();
  facts.slurm.record->active_features = {"ib", "avx512"};
  facts.slurm.record->gres = {{"gpu", "a100", 4}, {"shard", "a100", 16}};
  return facts;
}

std::map<std::string, std::string> labels_of(const HostFacts& facts) {
  return slurm_labels(facts, policy_for("n1"));
}

TEST(SlurmLabelsTest, EachKind) {
  EXPECT_THAT(
      labels_of(labelled()),
      UnorderedElementsAre(
          Pair("slurmlet.io/slurm-cluster", "alps"), Pair("slurmlet.io/slurm-version", "22.05.8"),
          Pair("partition.slurmlet.io/batch", "true"), Pair("partition.slurmlet.io/gpu", "true"),
          Pair("feature.slurmlet.io/ib", "true"), Pair("feature.slurmlet.io/avx512", "true"),
          Pair("slurmlet.io/gpu-type", "a100"), Pair("gpu-type.slurmlet.io/a100", "4")));
}

TEST(SlurmLabelsTest, EachKindCanBeSwitchedOff) {
  const std::map<std::string, std::vector<std::string>> kKeys{
      {"cluster", {"slurmlet.io/slurm-cluster"}},
      {"version", {"slurmlet.io/slurm-version"}},
      {"partitions", {"partition.slurmlet.io/batch", "partition.slurmlet.io/gpu"}},
      {"features", {"feature.slurmlet.io/ib", "feature.slurmlet.io/avx512"}},
      {"gpu", {"slurmlet.io/gpu-type", "gpu-type.slurmlet.io/a100"}}};
  for (const auto& [kind, keys] : kKeys) {
    NodePolicy policy = policy_for("n1");
    policy.slurm_labels.erase(kind);
    auto wanted = labels_of(labelled());
    for (const auto& key : keys) {
      EXPECT_EQ(wanted.erase(key), 1U) << key;
    }
    EXPECT_EQ(slurm_labels(labelled(), policy), wanted) << kind;
  }
  NodePolicy none = policy_for("n1");
  none.slurm_labels = {"none"};
  EXPECT_THAT(slurm_labels(labelled(), none), IsEmpty());
  EXPECT_THAT(unknown_label_prefixes(HostFacts{}, none), IsEmpty());
}

TEST(SlurmLabelsTest, OnlyActiveFeaturesCount) {
  HostFacts facts = labelled();
  facts.slurm.record->features = {"ib", "avx512"};
  facts.slurm.record->active_features = {"ib"};
  EXPECT_TRUE(labels_of(facts).contains("feature.slurmlet.io/ib"));
  EXPECT_FALSE(labels_of(facts).contains("feature.slurmlet.io/avx512"));
  facts.slurm.record->active_features = {};
  EXPECT_FALSE(labels_of(facts).contains("feature.slurmlet.io/ib")) << "none is active";
}

TEST(SlurmLabelsTest, OddNamesAreSanitised) {
  HostFacts facts = good_facts();
  facts.slurm_conf.cluster_name = "alps & more";
  facts.slurm.record->partitions = {"long*", ""};
  facts.slurm.record->active_features = {"cpu=epyc"};
  facts.slurmd.version = "25.11.0-0rc1+git";
  const auto labels = labels_of(facts);
  EXPECT_EQ(labels.at("slurmlet.io/slurm-cluster"), "x_alps_20_26_20more_x");
  EXPECT_EQ(labels.at("slurmlet.io/slurm-version"), "x_25.11.0-0rc1_2Bgit_x");
  EXPECT_EQ(labels.at("partition.slurmlet.io/x_long_2A_x"), "true");
  EXPECT_EQ(labels.at("feature.slurmlet.io/x_cpu_3Depyc_x"), "true");
  EXPECT_EQ(labels.size(), 4U) << "a name that is empty is none";
}

TEST(SlurmLabelsTest, GpuTypes) {
  const std::tuple<const char*, std::map<std::string, std::string>, const char*> kRows[] = {
      {"", {}, ""},
      {"gpu:4", {}, ""},  // what type, nobody knows
      {"gpu:(null):4", {}, ""},
      {"gpu:a100:0", {}, ""},
      {"nic:cx7:4", {}, ""},
      {"gpu:a100:2,gpu:a100:2", {{"a100", "4"}}, "a100"},
      {"gpu:a100:2,gpu:h100:1", {{"a100", "2"}, {"h100", "1"}}, ""},
      {"gpu:a100:2,gpu:1", {{"a100", "2"}}, ""},
      {"gpu:h200_3g.71gb:6", {{"h200_3g.71gb", "6"}}, "h200_3g.71gb"}};
  for (const auto& [gres, counts, only_type] : kRows) {
    HostFacts facts = good_facts();
    facts.slurm.record->gres = gres_of(gres);
    NodePolicy policy = policy_for("n1");
    policy.slurm_labels = {"gpu"};
    std::map<std::string, std::string> wanted;
    for (const auto& [type, count] : counts) {
      wanted["gpu-type.slurmlet.io/" + type] = count;
    }
    if (*only_type != '\0') {
      wanted["slurmlet.io/gpu-type"] = only_type;
    }
    EXPECT_EQ(slurm_labels(facts, policy), wanted);
  }
}

TEST(SlurmLabelsTest, WhatIsUntold) {
  EXPECT_THAT(unknown_label_prefixes(good_facts(), policy_for("n1")), IsEmpty());
  HostFacts facts = good_facts();
  facts.slurm.record->partitions_known = false;
  EXPECT_THAT(unknown_label_prefixes(facts, policy_for("n1")),
              UnorderedElementsAre("partition.slurmlet.io/"));
  EXPECT_FALSE(labels_of(facts).contains("partition.slurmlet.io/batch"));
  facts.slurm.record.reset();
  EXPECT_THAT(unknown_label_prefixes(facts, policy_for("n1")),
              UnorderedElementsAre("partition.slurmlet.io/", "feature.slurmlet.io/",
                                   "gpu-type.slurmlet.io/", "slurmlet.io/gpu-type",
                                   "slurmlet.io/slurm-version", "slurmlet.io/slurm-cluster"));
  NodePolicy policy = policy_for("n1");
  policy.slurm_labels = {"version"};
  EXPECT_THAT(unknown_label_prefixes(facts, policy),
              UnorderedElementsAre("slurmlet.io/slurm-version"));
}

// What slurmd and slurm.conf tell needs no answer of slurmctld's.
TEST(SlurmLabelsTest, LocalFactsSuffice) {
  HostFacts facts = good_facts();
  facts.slurm = {};
  EXPECT_THAT(labels_of(facts), UnorderedElementsAre(Pair("slurmlet.io/slurm-cluster", "alps"),
                                                     Pair("slurmlet.io/slurm-version", "22.05.8")));
}

}  // namespace
}  // namespace slurmlet::node
