#include "cli/join_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"

namespace slurmlet::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kToken = "abcdef.0123456789abcdef";
const std::string kHash = "sha256:" + std::string(64, 'a');

Result<JoinPlan> plan_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"slurmlet", "join"});
  const auto command = parse_command_line(arguments);
  EXPECT_TRUE(command) << command.error().message;
  return join_plan(*command);
}

TEST(JoinPlan, OfWhatKubeadmPrints) {
  const auto plan =
      plan_of({"10.0.0.1:6443", "--token", kToken, "--discovery-token-ca-cert-hash", kHash});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->server, "https://10.0.0.1:6443");
  EXPECT_EQ(plan->files.config, "/etc/slurmlet/config.d/20-join.yaml");
  EXPECT_EQ(plan->files.token, "/etc/slurmlet/bootstrap-token");
  const std::string text = join_config(*plan);
  EXPECT_THAT(text, HasSubstr("server: https://10.0.0.1:6443\n"));
  EXPECT_THAT(text, HasSubstr(kHash));
  EXPECT_EQ(text.find(kToken), std::string::npos) << "every user may read it";
}

TEST(JoinPlan, EachProblemIsNamed) {
  const struct {
    std::vector<std::string> arguments;
    const char* says;
  } rows[] = {
      {{"--token", kToken, "--discovery-token-ca-cert-hash", kHash}, "HOST:PORT"},
      {{"10.0.0.1", "--token", kToken, "--discovery-token-ca-cert-hash", kHash}, "HOST:PORT"},
      {{"h:1/path", "--token", kToken, "--discovery-token-ca-cert-hash", kHash}, "HOST:PORT"},
      {{"h:1", "--token", "short", "--discovery-token-ca-cert-hash", kHash}, "--token"},
      {{"h:1", "--token", kToken}, "--discovery-token-ca-cert-hash"},
      {{"h:1", "--token", kToken, "--discovery-token-ca-cert-hash", kHash, "--node-labels=a=b"},
       "node.labels"},
      {{"h:1", "--token", kToken, "--discovery-token-ca-cert-hash", kHash, "--timeout=abc"},
       "--timeout"},
  };
  for (const auto& row : rows) {
    const auto plan = plan_of(row.arguments);
    ASSERT_FALSE(plan) << row.says;
    EXPECT_THAT(plan.error().message, HasSubstr(row.says));
    EXPECT_EQ(plan.error().message.find(kToken), std::string::npos);
  }
}

}  // namespace
}  // namespace slurmlet::cli
