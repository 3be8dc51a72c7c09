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

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ManualTest, EverySettingIsThereWithFlagEnvironmentAndDefault) {
  std::string page = settings_manual();
  std::erase(page, '\\');
  for (const auto& row : config::settings_table()) {
    const auto begin = page.find(".TP\nfB" + std::string{row.key} + "fR (");
    ASSERT_NE(begin, std::string::npos) << row.key;
    const std::string entry = page.substr(begin, page.find("\n.", begin + 4) - begin);
    for (const std::string& part :
         {std::string{row.help} + ".\n", "Flag fB" + std::string{row.flag},
          std::string{row.environment}, config::default_text(row)}) {
      EXPECT_THAT(entry, HasSubstr(part)) << row.key;
    }
  }
}

TEST(ManualTest, NoLineOfTextIsTakenForARequest) {
  const std::string page = settings_manual();
  for (const auto line : split(page, '\n')) {
    if (line.starts_with('.')) {
      EXPECT_THAT(std::string{line},
                  AnyOf(StartsWith(".\\\""), StartsWith(".TH "), StartsWith(".SH "),
                        StartsWith(".SS "), StartsWith(".B"), StartsWith(".I"), StartsWith(".RB "),
                        ".TP", ".PP", ".EX", ".EE", ".in", ".in +4n"));
    }
    EXPECT_THAT(std::string{line}, Not(StartsWith("'")));
  }
}

TEST(ManualTest, TheExampleIsAConfiguration) {
  const std::string page = settings_manual();
  const auto begin = page.find(".SH EXAMPLE\n.EX\n") + 16;
  std::string example = page.substr(begin, page.find(".EE", begin) - begin);
  std::erase(example, '\\');
  config::Draft draft;
  config::apply_config_file(example, "example", draft);
  EXPECT_THAT(draft.problems(), IsEmpty());
  EXPECT_TRUE(draft.is_set("node.labels"));
}

TEST(ManualTest, PackagedPageIsCurrent) {
  const auto packaged = fixtures() / "../../packaging/man/slurmlet.yaml.5";
  const auto content = read_file(packaged);
  const std::string current = settings_manual();
  if (content && *content == current) {
    return;
  }
  const auto written = std::filesystem::path(::testing::TempDir()) / "slurmlet.yaml.5";
  ASSERT_TRUE(write_file_atomic(written, current, 0644));
  ADD_FAILURE() << "packaging/man/slurmlet.yaml.5 differs from the settings table; cp " << written
                << " " << packaged.lexically_normal();
}

}  // namespace
}  // namespace slurmlet::cli
