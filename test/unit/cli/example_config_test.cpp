// packaging/config.yaml, made from settings_table.h: every key, commented out, with its default.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "config/settings_table.h"
#include "config/sources.h"
#include "fixtures.h"

namespace slurmlet::cli {
namespace {

using ::testing::IsEmpty;

// How the default looks in the file: maps and empty texts in YAML's own form.
std::string yaml_default(const config::Row& row) {
  std::string text = config::default_text(row);
  if (!text.empty()) {
    return text;
  }
  return config::is_map(row) ? "{}" : row.decides_trust ? "null" : "\"\"";
}

// A comment of the example file, broken between words so that no line is longer than 100.
std::string comment(std::string_view indent, std::string_view text) {
  constexpr std::size_t kMaxWidth = 100;
  std::string out;
  std::string line;
  for (const auto word : split(text, ' ')) {
    if (!line.empty() && indent.size() + 2 + line.size() + 1 + word.size() > kMaxWidth) {
      out += fmt::format("{}# {}\n", indent, line);
      line.clear();
    }
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
  }
  return out + fmt::format("{}# {}\n", indent, line);
}

void add_example_entry(const config::Row& row, std::string_view indent, std::string_view name,
                       std::string& out) {
  out += comment(indent, row.help);
  if (config::default_text(row).empty() && !row.when_unset.empty()) {
    out += comment(indent, fmt::format("Default: {}", row.when_unset));
  }
  out += fmt::format("{}#{}: {}\n", indent, name, yaml_default(row));
}

std::string example_config() {
  std::string out = fmt::format(
      "# Every setting of slurmlet with its default. What a site changes stands without the '#' "
      "in\n"
      "# /etc/slurmlet/config.d/10-site.yaml, below apiVersion and kind. Flags and environment\n"
      "# variables override files. Durations: 90s, 1m30s, 500ms.\n"
      "apiVersion: {}\n"
      "kind: {}\n",
      config::kApiVersion, config::kKind);
  std::string_view group;
  for (const auto& row : config::settings_table()) {
    const auto dot = row.key.find('.');
    out += '\n';
    if (dot == std::string_view::npos) {
      add_example_entry(row, "", row.key, out);
      continue;
    }
    if (row.key.substr(0, dot) != group) {
      group = row.key.substr(0, dot);
      out += fmt::format("{}:\n", group);
    }
    add_example_entry(row, "  ", row.key.substr(dot + 1), out);
  }
  return out;
}

TEST(ExampleConfig, MeansTheDefaults) {
  config::Draft draft;
  config::apply_config_file(example_config(), "example", draft);
  EXPECT_THAT(draft.problems(), IsEmpty());

  // With every "#key:" uncommented too.
  const std::string example = example_config();
  std::vector<std::string> lines;
  for (const auto line : split(example, '\n')) {
    EXPECT_LE(line.size(), 100U) << line;
    std::string text{line};
    const auto hash = text.find('#');
    if (hash != std::string::npos && text.substr(hash, 2) != "# ") {
      text.erase(hash, 1);
    }
    lines.push_back(text);
  }
  config::Draft full;
  config::apply_config_file(join(lines, "\n"), "example", full);
  EXPECT_THAT(full.problems(), IsEmpty());
  for (const auto& row : config::settings_table()) {
    EXPECT_EQ(config::value_text(row, full.settings), config::default_text(row)) << row.key;
    if (!config::default_text(row).empty()) {
      EXPECT_TRUE(full.is_set(row.key)) << row.key;
    }
  }
}

TEST(ExampleConfig, PackagedIsCurrent) {
  const auto packaged = fixtures() / "../../packaging/config.yaml";
  const auto content = read_file(packaged);
  const std::string current = example_config();
  if (content && *content == current) {
    return;
  }
  const auto written = std::filesystem::path(::testing::TempDir()) / "slurmlet-config.yaml";
  ASSERT_TRUE(write_file_atomic(written, current, 0644));
  ADD_FAILURE() << "packaging/config.yaml differs from the settings table; cp " << written << " "
                << packaged.lexically_normal();
}

}  // namespace
}  // namespace slurmlet::cli
