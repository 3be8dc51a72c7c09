#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/settings_table.h"

namespace slurmlet::cli {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
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
    const bool always_succeeds = name == "run" || name == "print-node" || name == "version";
    EXPECT_EQ(own.find("\nExit code: 0 ") == std::string::npos, always_succeeds) << name;
    const bool prints = name == "status" || name == "check" || name == "print-node";
    EXPECT_EQ(own.find("  -o, --output string") != std::string::npos, prints) << name;
    EXPECT_EQ(own.find("--sentinel string ") != std::string::npos,
              name == "wait-registered" || name == "join");
  }
}

}  // namespace
}  // namespace slurmlet::cli
