#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

namespace slurmlet::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

using Arguments = std::vector<std::string>;
using Values = std::map<std::string, std::string>;

Result<config::ParsedCommandLine> parse(Arguments arguments) {
  arguments.insert(arguments.begin(), "/usr/sbin/slurmlet");
  return parse_command_line(arguments);
}

config::ParsedCommandLine parsed(const Arguments& arguments) {
  auto result = parse(arguments);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : config::ParsedCommandLine{};
}

std::string parse_error(const Arguments& arguments) {
  const auto result = parse(arguments);
  EXPECT_FALSE(result);
  if (result) {
    return "";
  }
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return result.error().message;
}

TEST(CommandLineTest, MistakesNameTheFlagAndWhatIsMeant) {
  const struct {
    Arguments arguments;
    std::vector<const char*> words;
  } rows[] = {
      {{"--nodname", "n1"}, {"unknown flag --nodname", "did you mean --nodename?"}},
      {{"--slurm-pol-interval=5s", "--prot", "1"},
       {"did you mean --slurm-poll-interval?", "did you mean --port?"}},
      {{"--xyzzyxyzzyxyzzy"}, {"unknown flag --xyzzyxyzzyxyzzy", "slurmlet --help"}},
      {{"-port", "1"}, {"unknown flag -port", "did you mean --port?"}},
      {{"-x"}, {"unknown flag -x", "slurmlet --help"}},
      {{"---"}, {"unknown flag ---"}},
      {{"status", "-hx"}, {"unknown flag -hx"}},
      {{"wait-registered", "--timeot=1"}, {"did you mean --timeout?"}},
      // Flags that --help does not list are not suggested.
      {{"--foo"}, {"unknown flag --foo; \"slurmlet --help\""}},
      {{"--oss"}, {"unknown flag --oss; \"slurmlet --help\""}},
      {{"--name-space"}, {"unknown flag --name-space; \"slurmlet --help\""}},
      {{"--klog.w"}, {"unknown flag --klog.w; \"slurmlet --help\""}},
      // Values.
      {{"--slurm-node", "--port", "1"}, {"missing value", "--slurm-node"}},
      {{"--nodename"}, {"missing value", "--nodename"}},
      {{"print-node", "-o", "xml"}, {"--output is \"xml\"", "json"}},
      // Flags of commands.
      {{"-o", "json", "check"}, {"slurmlet check -o json"}},
      {{"--output", "json", "check"}, {"slurmlet check --output json"}},
      {{"-output", "json", "check"}, {"unknown flag -output", "did you mean --output?"}},
      {{"--timeout=5m", "wait-registered"}, {"slurmlet wait-registered --timeout=5m"}},
      {{"status", "--timeout=1"}, {"--timeout is a flag of \"slurmlet wait-registered\""}},
      {{"-o", "json"}, {"-o is a flag of \"slurmlet status\"", "\"slurmlet print-node\""}},
      {{"run", "-o", "json"}, {"-o is a flag of \"slurmlet status\"", "\"slurmlet check\""}},
      // Commands.
      {{"prnt-node"}, {"unknown command \"prnt-node\"", "did you mean \"print-node\"?"}},
      {{"run", "qqqqqqqq"}, {"unknown command \"qqqqqqqq\""}},
      {{"help", "foo"}, {"unknown command \"foo\""}},
      {{"help", "chek"}, {"did you mean \"check\"?"}},
      {{"foo", "help"}, {"unknown command \"foo\""}},
      {{"status", "check"}, {"one command at a time", "\"check\""}},
      // What was removed in 0.2.
      {{"run", "--slurm-feed=/srv/feed"}, {"--slurm-feed was removed", "slurmlet-operator"}},
      {{"parse-slurm", "a.out"}, {"parse-slurm was removed", "slurmlet print-node"}},
      {{"print-node", "--diff"}, {"--diff was removed", "slurmlet print-node"}},
  };
  for (const auto& row : rows) {
    const std::string message = parse_error(row.arguments);
    for (const char* words : row.words) {
      EXPECT_THAT(message, HasSubstr(words));
    }
  }
}

TEST(CommandLineTest, Values) {
  const std::vector<std::pair<Arguments, Values>> rows = {
      {{"--port", "10251"}, {{"endpoint.port", "10251"}}},
      {{"--port=10251"}, {{"endpoint.port", "10251"}}},
      {{"--metadata=/a=b"}, {{"metal3.instanceData", "/a=b"}}},
      {{"--slurm-node", "-1"}, {{"slurm.nodeName", "-1"}}},
      {{"--slurm-node", "run"}, {{"slurm.nodeName", "run"}}},
      {{"--slurm-node=", "run"}, {{"slurm.nodeName", ""}}},
      {{"--slurm-node=--port"}, {{"slurm.nodeName", "--port"}}},
      {{"--node-unschedulable", "run"}, {{"node.unschedulable", "true"}}},
      {{"--node-publish-hostname=false"}, {{"node.publishHostname", "false"}}},
      // The last of repeated flags counts, but maps add up.
      {{"--port", "1", "--port=2"}, {{"endpoint.port", "2"}}},
      {{"--node-labels", "a=1,b=2", "--node-labels=c=3"}, {{"node.labels", "a=1,b=2,c=3"}}},
      {{"status", "--healthz-port=1"}, {{"endpoint.healthzPort", "1"}}},
  };
  for (const auto& [arguments, values] : rows) {
    EXPECT_EQ(parsed(arguments).values, values) << arguments.front();
  }
  EXPECT_EQ(parsed({"--slurm-node=", "print-node"}).subcommand, "print-node");
  EXPECT_EQ(parsed({"--config", "/c.yaml"}).config_file, "/c.yaml");
}

TEST(CommandLineTest, CommandsAndTheirOptions) {
  const struct {
    Arguments arguments;
    const char* command;
    Values options = {};
  } rows[] = {
      {{}, "run"},
      {{"run", "--nodename", "n1"}, "run"},
      {{"version"}, "version"},
      {{"--version"}, "version"},
      {{"status"}, "status", {{"output", "text"}}},
      {{"status", "-o=json"}, "status", {{"output", "json"}}},
      {{"check"}, "check", {{"output", "text"}}},
      {{"check", "-o", "json"}, "check", {{"output", "json"}}},
      {{"print-node"}, "print-node", {{"output", "json"}}},
      {{"print-node", "--nodename", "n1", "-o", "json"}, "print-node", {{"output", "json"}}},
      {{"--nodename", "n1", "print-node", "--output=json"}, "print-node", {{"output", "json"}}},
      {{"--nodename=n1", "print-node", "-ojson"}, "print-node", {{"output", "json"}}},
      {{"wait-registered"}, "wait-registered", {{"sentinel", ""}, {"timeout", "300"}}},
      {{"wait-registered", "--timeout=5m", "--sentinel", "/run/done"},
       "wait-registered",
       {{"sentinel", "/run/done"}, {"timeout", "5m"}}},
  };
  for (const auto& row : rows) {
    const auto command = parsed(row.arguments);
    EXPECT_EQ(command.subcommand, row.command);
    EXPECT_EQ(command.options, row.options) << row.command;
    EXPECT_FALSE(command.help);
    EXPECT_THAT(command.warnings, IsEmpty());
  }
}

TEST(CommandLineTest, HelpWinsOverEverythingElse) {
  for (const auto& [arguments, command] :
       std::vector<std::pair<Arguments, std::string>>{{{"--help"}, "run"},
                                                      {{"-h"}, "run"},
                                                      {{"help"}, "run"},
                                                      {{"--no-such-flag", "--help"}, "run"},
                                                      {{"status", "help"}, "status"},
                                                      {{"help", "check"}, "check"},
                                                      {{"print-node", "--help"}, "print-node"}}) {
    EXPECT_TRUE(parsed(arguments).help) << arguments.front();
    EXPECT_EQ(parsed(arguments).subcommand, command) << arguments.front();
  }
}

TEST(CommandLineTest, VirtualKubeletsCommandLineIsAcceptedUnchanged) {
  const auto command = parse_command_line({"virtual-kubelet", "--provider", "mock", "--nodename",
                                           "n1", "--provider-config", "/etc/vk.json",
                                           "--kubeconfig", "/etc/kubernetes/kubelet.conf"});
  ASSERT_TRUE(command) << command.error().message;
  EXPECT_EQ(command->program, "virtual-kubelet");
  EXPECT_EQ(command->subcommand, "run");
  EXPECT_EQ(command->provider, "mock");
  EXPECT_EQ(command->provider_config, "/etc/vk.json");
  EXPECT_THAT(command->values,
              ElementsAre(Pair("kubernetes.kubeconfig", "/etc/kubernetes/kubelet.conf"),
                          Pair("node.name", "n1")));
  EXPECT_THAT(command->warnings, IsEmpty());
}

TEST(CommandLineTest, EachOfVirtualKubeletsOtherFlagsGivesOneWarning) {
  for (const auto& flag : ignored_flags()) {
    const std::string name{flag.flag};
    const Arguments once = flag.takes_value ? Arguments{name, "value"} : Arguments{name};
    for (const auto& arguments : {once, Arguments{name + "=true", name + "=0"}}) {
      const auto command = parsed(arguments);
      ASSERT_EQ(command.warnings.size(), 1U) << name;
      EXPECT_THAT(command.warnings[0], HasSubstr(name + " has no effect")) << name;
      EXPECT_THAT(command.values, IsEmpty()) << name;
    }
  }
}

TEST(CommandLineTest, FlagsOfVirtualKubelet111AreAllKnown) {
  // cmd/virtual-kubelet/internal/commands/root/flag.go of v1.11.0, and klog's own.
  std::istringstream flags{R"(namespace cluster-domain os metrics-addr taint disable-taint
      pod-sync-workers enable-node-lease trace-exporter trace-service-name trace-tag
      trace-sample-rate full-resync-period startup-timeout stream-idle-timeout
      stream-creation-timeout klog.v klog.vmodule klog.logtostderr klog.alsologtostderr
      klog.stderrthreshold klog.log_dir klog.log_file klog.log_file_max_size klog.skip_headers
      klog.skip_log_headers klog.one_output klog.add_dir_header klog.log_backtrace_at kubeconfig
      nodename provider provider-config log-level)"};
  for (std::string flag; flags >> flag;) {
    EXPECT_TRUE(parse({"--" + flag + "=true"})) << flag;
  }
}

TEST(CommandLineTest, OtherProvidersGiveAWarning) {
  EXPECT_THAT(parsed({"--provider=slurm"}).warnings, IsEmpty());
  EXPECT_THAT(parsed({"--provider=azure"}).warnings,
              ElementsAre(HasSubstr("--provider azure has no effect")));
}

}  // namespace
}  // namespace slurmlet::cli
