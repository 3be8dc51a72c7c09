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

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HelpTest, EveryFlagIsListedWithTypeMeaningAndDefault) {
  const std::string help = help_text("slurmlet", "run");
  for (const auto& row : config::settings_table()) {
    EXPECT_THAT(help, HasSubstr("\n      " + std::string(row.flag) + " ")) << row.key;
    EXPECT_THAT(help, HasSubstr(std::string(row.help))) << row.key;
  }
  for (const auto& flag : config::command_flags()) {
    EXPECT_THAT(help, HasSubstr(std::string(flag.name) + " "));
  }
  EXPECT_THAT(help, HasSubstr("\nSlurm flags:\n\n"));
  EXPECT_THAT(help,
              ContainsRegex(
                  "      --port int  +port of the kubelet API; 0 disables it \\(default 10250\\)"));
  EXPECT_THAT(help,
              ContainsRegex("      --slurm-poll-interval duration  +interval .* \\(default 1m\\)"));
  EXPECT_THAT(help, ContainsRegex("  -h, --help  +show this help"));
  EXPECT_THAT(help, HasSubstr("--config string"));
  EXPECT_THAT(help, HasSubstr("(default /etc/slurmlet/config.yaml)"));
}

TEST(HelpTest, UsageNamesTheProgramAndTheSubcommand) {
  EXPECT_THAT(help_text("virtual-kubelet", "run"),
              HasSubstr("\n  virtual-kubelet [run] [flags]\n"));
  EXPECT_THAT(help_text("slurmlet", "run"), Not(HasSubstr("  -o, --output")));
  const std::string print = help_text("slurmlet", "print-node");
  EXPECT_THAT(print, StartsWith("Prints the Node"));
  EXPECT_THAT(print, HasSubstr("  -o, --output string"));
  for (const char* name : {"status", "check"}) {
    EXPECT_THAT(help_text("slurmlet", name),
                AllOf(HasSubstr(" [-o text|json] [flags]\n"), HasSubstr("\nExit code: 0 "),
                      HasSubstr("  -o, --output string"), Not(HasSubstr("--sentinel"))));
  }
  EXPECT_THAT(help_text("slurmlet", "wait-registered"),
              AllOf(HasSubstr("--sentinel string "), HasSubstr("--timeout duration "),
                    HasSubstr("\nExit code: 0 ")));
  EXPECT_EQ(help_text("slurmlet", "version"), "Print the version.\n\nUsage:\n  slurmlet version\n");
}

TEST(HelpTest, EveryCommandIsListedHelpToo) {
  const std::string help = help_text("slurmlet", "run");
  for (const auto& command : commands()) {
    EXPECT_THAT(help, HasSubstr("\n  slurmlet " +
                                std::string(command.name == "run" ? "[run]" : command.name) + " "));
  }
  EXPECT_THAT(help, HasSubstr("\n  slurmlet help [COMMAND] "));
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
