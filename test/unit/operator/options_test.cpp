// The settings of slurmlet-operator that depend on each other.

#include "operator/options.h"

#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "base/file.h"
#include "fixtures.h"

namespace slurmlet::op {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(OperatorOptions, AcceptSlurmrestdAddresses) {
  EXPECT_EQ(parse_operator_command_line({})->options.slurm_source, Options::Source::kCli);
  for (const std::vector<std::string>& rest : std::vector<std::vector<std::string>>{
           {"--slurm-rest-url=unix:/run/slurmrestd.socket"},
           {"--slurm-rest-url=https://head:6820", "--slurm-jwt-file=/etc/jwt",
            "--slurm-rest-ca-file=/etc/ca.crt"}}) {
    auto flags = rest;
    flags.emplace_back("--slurm-source=rest");
    const auto command = parse_operator_command_line(flags);
    ASSERT_TRUE(command) << rest.front() << ": " << command.error().message;
    EXPECT_EQ(command->options.slurm_source, Options::Source::kRest);
    EXPECT_THAT(describe(command->options), HasSubstr("slurmSource=rest slurmRestURL="));
  }
}

TEST(OperatorOptions, NameTheProblemAndItsFix) {
  const struct {
    std::vector<std::string> flags;
    const char* text;
  } kRows[] = {
      {{"--slurm-source=file"}, "\"file\"; it must be cli or rest"},
      {{"--slurm-source=rest"}, "slurmRestURL is not set"},
      {{"--slurm-rest-url=unix:/x"}, "slurmRestURL is set, but slurmSource is cli"},
      {{"--slurm-source=rest", "--slurm-rest-url=head"}, "\"head\"; it must be unix:/PATH"},
      {{"--slurm-source=rest", "--slurm-rest-url=http://head:6820"}, "or https://"},
      {{"--slurm-source=rest", "--slurm-rest-url=CI_MISSING_JINJA_VAR/url"}, "cloud-init"},
      {{"--slurm-source=rest", "--slurm-rest-url=https://head:6820"}, "set slurmJwtFile"},
      {{"--slurm-source=rest", "--slurm-rest-url=unix:/x", "--slurm-rest-ca-file=/ca"},
       "slurmRestURL is not https://"},
      {{"--slurm-rest-ca-file="}, "--slurm-rest-ca-file is empty"},
      {{"--slurm-source=rest", "--slurm-rest-url=unix:/x", "--slurm-rest-ca-file=ca"},
       "\"ca\"; it must be an absolute path"},
      {{"--drain-on=GPUHealthy"}, "it must be TYPE=STATUS:DURATION"},
      {{"--drain-on=GPUHealthy=false:2m"}, "must be True, False or Unknown"},
      {{"--max-unhealthy=10"}, "between 1% and 100%"},
  };
  for (const auto& row : kRows) {
    const auto command = parse_operator_command_line(row.flags);
    ASSERT_FALSE(command) << row.text;
    EXPECT_THAT(command.error().message, HasSubstr(row.text));
  }
}

TEST(OperatorOptions, DrainOnIsAListInTheFile) {
  const std::string head = "apiVersion: slurmlet.io/v1alpha1\nkind: OperatorConfiguration\n";
  const auto parsed = [&](const std::string& text) {
    const std::string path = testing::TempDir() + "operator-drain-on.yaml";
    EXPECT_TRUE(write_file_atomic(path, head + text, 0600));
    return parse_operator_command_line({"--config=" + path});
  };
  const auto command = parsed(
      "maxUnhealthy: 25%\ndrainOn:\n  - {type: GPUHealthy, status: \"False\", for: 2m}\n"
      "  - {type: KernelDeadlock, status: True, for: 0s}\n");
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_THAT(describe(command->options),
              HasSubstr("drainOn=GPUHealthy=False:2m,KernelDeadlock=True:0s maxUnhealthy=25%"));
  const auto same = parse_operator_command_line(
      {"--max-unhealthy=25%", "--drain-on=GPUHealthy=False:2m,KernelDeadlock=True:0s"});
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->options.health, command->options.health);
  const auto none = parsed("drainOn: []\n");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->options.health.drain_on.empty());
  for (const char* wrong : {"drainOn: [{type: A, status: \"True\"}]\n", "drainOn: [A]\n",
                            "drainOn: [{type: A, status: \"True\", after: 2m}]\n"}) {
    const auto failed = parsed(wrong);
    ASSERT_FALSE(failed) << wrong;
    EXPECT_THAT(failed.error().message, HasSubstr(":3:"));
  }
}

TEST(OperatorOptions, AnAdministratorsFlagsAreNotTheServices) {
  const auto command = parse_operator_command_line(
      {"uninstall", "--kubeconfig=admin.conf", "--dry-run", "--no-service", "--slurm-conf=/s"});
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->action, CommandLine::Action::kUninstall);
  EXPECT_EQ(command->admin.kubeconfig, "admin.conf");
  EXPECT_TRUE(command->admin.dry_run && command->admin.no_service);
  EXPECT_EQ(command->options.kubeconfig, "");
  EXPECT_FALSE(command->options.dry_run);
  EXPECT_EQ(command->options.slurm_conf, "/s");
  EXPECT_EQ(parse_operator_command_line({"init"})->action, CommandLine::Action::kInit);
  EXPECT_FALSE(parse_operator_command_line({"--no-service"}));
}

std::set<std::string> flags_in(const std::string& text, const char* form) {
  const std::regex flag{form};
  std::set<std::string> out;
  for (auto at = std::sregex_iterator{text.begin(), text.end(), flag}; at != std::sregex_iterator{};
       ++at) {
    out.insert((*at)[1]);
  }
  return out;
}

TEST(OperatorOptions, ManualPageHasEachFlag) {
  const auto page = read_file(fixtures() / "../../packaging/man/slurmlet-operator.8");
  ASSERT_TRUE(page);
  const std::string text = std::regex_replace(*page, std::regex{R"(\\-)"}, "-");
  EXPECT_EQ(flags_in(text, R"(\n\.TP\n\.BI? (--[a-z-]+))"), flags_in(help_text(), "(--[a-z-]+)"));
}

}  // namespace
}  // namespace slurmlet::op
