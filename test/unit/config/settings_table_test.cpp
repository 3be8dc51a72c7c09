#include "config/settings_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/commands.h"

namespace slurmlet::config {
namespace {

// slurm.pollInterval → --slurm-poll-interval, node.metal3UUID → --node-metal3-uuid.
std::string generated_flag(std::string_view key) {
  std::string flag = "--";
  const auto is_upper = [&key](std::size_t i) {
    return i < key.size() && key[i] >= 'A' && key[i] <= 'Z';
  };
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool ends_word = is_upper(i) && i + 1 < key.size() && !is_upper(i + 1);
    if (is_upper(i) && (!is_upper(i - 1) || ends_word)) {
      flag += '-';
    }
    flag += key[i] == '.' ? '-' : is_upper(i) ? static_cast<char>(key[i] - 'A' + 'a') : key[i];
  }
  return flag;
}

TEST(SettingsTableTest, KeysFlagsAndVariablesAreUnique) {
  std::set<std::string_view> seen;
  for (const auto& row : settings_table()) {
    EXPECT_EQ(find_row(row.key), &row);
    EXPECT_TRUE(seen.insert(row.key).second) << row.key;
    EXPECT_TRUE(seen.insert(row.flag).second) << row.flag;
    EXPECT_TRUE(row.environment.empty() || seen.insert(row.environment).second) << row.environment;
  }
  EXPECT_EQ(find_row("slurm"), nullptr);
  EXPECT_EQ(find_row(""), nullptr);
  for (const auto& flag : command_flags()) {
    EXPECT_TRUE(seen.insert(flag.name).second) << flag.name;
  }
  for (const auto& flag : cli::ignored_flags()) {
    EXPECT_TRUE(seen.insert(flag.flag).second) << flag.flag;
  }
}

TEST(SettingsTableTest, FlagsFollowTheirKeysButForTheWellKnownOnes) {
  const std::map<std::string_view, std::string_view> kWellKnown = {
      {"kubernetes.kubeconfig", "--kubeconfig"},
      {"kubernetes.bootstrapKubeconfig", "--bootstrap-kubeconfig"},
      {"kubernetes.bootstrapTokenFile", "--bootstrap-token-file"},
      {"kubernetes.caCertHashes", "--discovery-token-ca-cert-hash"},
      {"kubernetes.certDir", "--cert-dir"},
      {"kubernetes.rotateCertificates", "--rotate-certificates"},
      {"endpoint.address", "--address"},
      {"node.name", "--nodename"},
      {"endpoint.port", "--port"},
      {"metal3.instanceData", "--metadata"},
      {"slurm.nodeName", "--slurm-node"},
      {"slurm.publishJobIDs", "--slurm-publish-job-ids"},
      {"endpoint.healthzPort", "--healthz-port"}};
  for (const auto& row : settings_table()) {
    const auto known = kWellKnown.find(row.key);
    EXPECT_EQ(row.flag, known == kWellKnown.end() ? generated_flag(row.key) : known->second);
  }
}

TEST(SettingsTableTest, EveryRowHasItsOwnField) {
  for (const auto& row : settings_table()) {
    Settings settings;
    std::visit(
        [&settings](auto field) {
          auto&& value = field(settings);
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, TextMap>) {
            value["changed"] = "x";
          } else if constexpr (std::is_same_v<T, std::string>) {
            value = "changed";
          } else if constexpr (std::is_same_v<T, bool>) {
            value = !value;
          } else if constexpr (std::is_same_v<T, int> || std::is_same_v<T, std::optional<int>>) {
            value = 7;
          } else if constexpr (std::is_same_v<T, Milliseconds> ||
                               std::is_same_v<T, std::optional<Milliseconds>>) {
            value = Milliseconds{7};
          } else {
            value = static_cast<T>(static_cast<int>(value) == 0 ? 1 : 0);
          }
        },
        row.field);
    for (const auto& other : settings_table()) {
      EXPECT_EQ(value_text(other, settings) != default_text(other), &other == &row)
          << row.key << " changes " << other.key;
    }
  }
}

TEST(SettingsTableTest, DefaultsAreWithinTheirLimitsAndExplained) {
  for (const auto& row : settings_table()) {
    EXPECT_FALSE(row.help.empty()) << row.key;
    EXPECT_FALSE(row.help.ends_with('.')) << row.key;
    EXPECT_EQ(row.entry_rule != nullptr, is_map(row)) << row.key;
    if (const auto* duration = std::get_if<Milliseconds& (*)(Settings&)>(&row.field)) {
      Settings settings;
      const auto value = (*duration)(settings).count();
      EXPECT_GE(value, row.minimum) << row.key;
      EXPECT_LE(value, row.maximum) << row.key;
    }
    const bool is_choice = std::visit(
        [](auto field) {
          return std::is_enum_v<
              std::remove_reference_t<decltype(field(std::declval<Settings&>()))>>;
        },
        row.field);
    if (is_choice) {
      EXPECT_THAT(choices(row), ::testing::Contains(default_text(row))) << row.key;
    }
  }
}

}  // namespace
}  // namespace slurmlet::config
