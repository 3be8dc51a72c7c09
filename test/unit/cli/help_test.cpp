#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "cli/packaged_texts.h"
#include "config/settings_table.h"
#include "config/sources.h"
#include "fixtures.h"

namespace slurmlet::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(HelpTest, EveryFlagIsListedWithTypeMeaningAndDefault) {
  const std::string help = help_text("slurmlet", "run");
  for (const auto& row : config::settings_table()) {
    EXPECT_THAT(help, HasSubstr("\n      " + std::string(row.flag) + " ")) << row.key;
    EXPECT_THAT(help, HasSubstr(std::string(row.help))) << row.key;
  }
  for (const auto& flag : config::command_flags()) {
    EXPECT_THAT(help, HasSubstr(std::string(flag.name) + " "));
  }
  EXPECT_THAT(help, ContainsRegex("      --port int  +port .* \\(default 10250\\)"));
  EXPECT_THAT(help, HasSubstr("(default /etc/slurmlet/config.yaml)"));
}

TEST(HelpTest, OfEachCommand) {
  const std::string help = help_text("slurmlet", "run");
  EXPECT_THAT(help, HasSubstr("\n  slurmlet help [COMMAND] "));
  EXPECT_THAT(help, Not(HasSubstr("  -o, --output")));
  EXPECT_THAT(help_text("virtual-kubelet", "run"),
              HasSubstr("\n  virtual-kubelet [run] [flags]\n"));
  for (const auto& command : commands()) {
    const std::string name{command.name};
    EXPECT_THAT(help, HasSubstr("\n  slurmlet " + (name == "run" ? "[run]" : name) + " "));
    const std::string own = help_text("slurmlet", name);
    EXPECT_THAT(own, HasSubstr("Usage:\n  slurmlet "));
    const bool reports = name == "status" || name == "check" || name == "wait-registered";
    EXPECT_EQ(own.find("\nExit code: 0 ") != std::string::npos, reports) << name;
    const bool prints = name == "status" || name == "check" || name == "print-node";
    EXPECT_EQ(own.find("  -o, --output string") != std::string::npos, prints) << name;
    EXPECT_EQ(own.find("--sentinel string ") != std::string::npos, name == "wait-registered");
  }
}

TEST(HelpTest, ExampleConfigMeansTheDefaults) {
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

TEST(HelpTest, PackagedExampleIsCurrent) {
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
