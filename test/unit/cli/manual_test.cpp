// packaging/man/slurmlet.yaml.5, whose section of settings is made from settings_table.h.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/file.h"
#include "base/text.h"
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

constexpr std::string_view kSettings = ".SH SETTINGS\n", kExample = ".SH EXAMPLE\n";

// For running text: what roff would take for its own.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  // A control character at the beginning of a line.
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", escaped(text)); }

std::string type_text(const config::Row& row) {
  if (config::is_bool(row)) {
    return "true or false";
  }
  if (const auto names = config::choices(row); !names.empty()) {
    return join(names, ", ");
  }
  if (config::type_name(row) == "int" && row.maximum != std::numeric_limits<int>::max()) {
    return fmt::format("{} to {}", row.minimum, row.maximum);
  }
  return std::string{config::type_name(row)};
}

std::string entry(const config::Row& row) {
  const std::string fallback = config::default_text(row);
  std::string out = fmt::format(".TP\n{} ({}", bold(row.key), escaped(type_text(row)));
  out += fallback.empty() ? ")\n" : fmt::format("; default {})\n", bold(fallback));
  out += fmt::format("{}.\n", escaped(row.help));
  if (fallback.empty() && !row.when_unset.empty()) {
    out += fmt::format("Default: {}.\n", escaped(row.when_unset));
  }
  out += fmt::format("Flag {}", bold(row.flag));
  if (!row.environment.empty()) {
    out += fmt::format(", environment variable {}", bold(row.environment));
  }
  return out + ".\n";
}

std::string settings_section() {
  std::string out{kSettings};
  std::string_view section;
  for (const auto& row : config::settings_table()) {
    if (config::section_of(row) != section) {
      section = config::section_of(row);
      out += fmt::format(".SS {}\n", section);
    }
    out += entry(row);
  }
  return out;
}

class ManualTest : public ::testing::Test {
 protected:
  const std::filesystem::path path_ = fixtures() / "../../packaging/man/slurmlet.yaml.5";
  const std::string page_ = *read_file(path_);
};

TEST_F(ManualTest, PackagedPageIsCurrent) {
  const auto begin = page_.find(kSettings);
  const auto end = page_.find(kExample);
  ASSERT_TRUE(begin < end && end != std::string::npos) << path_;
  const std::string current = page_.substr(0, begin) + settings_section() + page_.substr(end);
  if (page_ != current) {
    const auto written = std::filesystem::path(::testing::TempDir()) / "slurmlet.yaml.5";
    ASSERT_TRUE(write_file_atomic(written, current, 0644));
    ADD_FAILURE() << "packaging/man/slurmlet.yaml.5 differs from the settings table; cp " << written
                  << " " << path_.lexically_normal();
  }
  for (const auto text : {config::kDefaultConfigFile, config::kApiVersion, config::kKind}) {
    EXPECT_THAT(page_, HasSubstr(std::string{text}));
  }
}

TEST_F(ManualTest, EverySettingIsThereWithFlagEnvironmentAndDefault) {
  std::string page = page_;
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

TEST_F(ManualTest, NoLineOfTextIsTakenForARequest) {
  for (const auto line : split(page_, '\n')) {
    if (line.starts_with('.')) {
      EXPECT_THAT(std::string{line},
                  AnyOf(StartsWith(".\\\""), StartsWith(".TH "), StartsWith(".SH "),
                        StartsWith(".SS "), StartsWith(".B"), StartsWith(".I"), StartsWith(".RB "),
                        ".TP", ".PP", ".EX", ".EE", ".in", ".in +4n"));
    }
    EXPECT_THAT(std::string{line}, Not(StartsWith("'")));
  }
}

TEST_F(ManualTest, TheExampleIsAConfiguration) {
  const auto begin = page_.find(".SH EXAMPLE\n.EX\n") + 16;
  std::string example = page_.substr(begin, page_.find(".EE", begin) - begin);
  std::erase(example, '\\');
  config::Draft draft;
  config::apply_config_file(example, "example", draft);
  EXPECT_THAT(draft.problems(), IsEmpty());
  EXPECT_TRUE(draft.is_set("node.labels"));
}

}  // namespace
}  // namespace slurmlet::cli
