#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

Result<config::ParsedCommandLine> parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/usr/sbin/slurmlet");
  return parse_command_line(arguments);
}

config::ParsedCommandLine parsed(const std::vector<std::string>& arguments) {
  auto result = parse(arguments);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : config::ParsedCommandLine{};
}

std::string parse_error(const std::vector<std::string>& arguments) {
  const auto result = parse(arguments);
  EXPECT_FALSE(result);
  if (result) {
    return "";
  }
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return result.error().message;
}

TEST(CommandLineTest, AFlagThatIsGoneNamesWhatTookItsPlace) {
  EXPECT_THAT(parse_error({"run", "--slurm-feed=/srv/feed"}),
              HasSubstr("--slurm-feed was removed in 0.2: run slurmlet-operator"));
  EXPECT_THAT(parse_error({"parse-slurm", "a.out"}),
              HasSubstr("parse-slurm was removed in 0.2: slurmlet print-node"));
  EXPECT_THAT(parse_error({"print-node", "--diff"}),
              HasSubstr("--diff was removed in 0.2: compare the output of slurmlet print-node"));
}

TEST(CommandLineTest, StatusAndCheckPrintTextOrJson) {
  for (const char* name : {"status", "check"}) {
    EXPECT_THAT(parsed({name}).options, ElementsAre(Pair("output", "text")));
    EXPECT_THAT(parsed({name, "-o", "json"}).options, ElementsAre(Pair("output", "json")));
    EXPECT_THAT(parsed({name, "--healthz-port=1"}).values,
                ElementsAre(Pair("endpoint.healthzPort", "1")));
    EXPECT_EQ(parsed({name}).subcommand, name);
    EXPECT_EQ(parse_error({name, "-o", "yaml"}), "--output is \"yaml\"; it must be text or json");
    EXPECT_THAT(parse_error({name, "--outptu", "json"}), HasSubstr("did you mean --output?"));
    EXPECT_THAT(parse_error({name, "extra"}), HasSubstr("unknown command \"extra\""));
  }
}

TEST(CommandLineTest, WaitRegisteredTakesATimeAndASentinel) {
  EXPECT_THAT(parsed({"wait-registered"}).options,
              ElementsAre(Pair("sentinel", ""), Pair("timeout", "300")));
  EXPECT_THAT(parsed({"wait-registered", "--timeout=5m", "--sentinel", "/run/done"}).options,
              ElementsAre(Pair("sentinel", "/run/done"), Pair("timeout", "5m")));
  EXPECT_THAT(parse_error({"wait-registered", "--timeot=1"}), HasSubstr("did you mean --timeout?"));
}

TEST(CommandLineTest, AFlagOfACommandFollowsIt) {
  EXPECT_EQ(parse_error({"-o", "json", "check"}),
            "-o must follow the command: slurmlet check -o json");
  EXPECT_EQ(parse_error({"-output", "json", "check"}),
            "unknown flag -output; did you mean --output?");
  EXPECT_EQ(parse_error({"--output", "json", "check"}),
            "--output must follow the command: slurmlet check --output json");
  EXPECT_EQ(parse_error({"--timeout=5m", "wait-registered"}),
            "--timeout must follow the command: slurmlet wait-registered --timeout=5m");
}

TEST(CommandLineTest, AFlagOfOtherCommandsNamesThem) {
  EXPECT_EQ(parse_error({"status", "--timeout=1"}),
            "--timeout is a flag of \"slurmlet wait-registered\"");
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"-o", "json"}, {"run", "-o", "json"}}) {
    EXPECT_EQ(parse_error(arguments),
              "-o is a flag of \"slurmlet status\", \"slurmlet check\", \"slurmlet print-node\"");
  }
}

TEST(CommandLineTest, NothingMeansRun) {
  const auto command = parsed({});
  EXPECT_EQ(command.program, "slurmlet");
  EXPECT_EQ(command.subcommand, "run");
  EXPECT_FALSE(command.help);
  EXPECT_THAT(command.values, IsEmpty());
  EXPECT_THAT(command.warnings, IsEmpty());
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

TEST(CommandLineTest, ValuesComeAfterASpaceOrAnEqualsSign) {
  EXPECT_THAT(parsed({"--port", "10251"}).values, ElementsAre(Pair("endpoint.port", "10251")));
  EXPECT_THAT(parsed({"--port=10251"}).values, ElementsAre(Pair("endpoint.port", "10251")));
  EXPECT_THAT(parsed({"--metadata=/a=b"}).values, ElementsAre(Pair("metal3.instanceData", "/a=b")));
  EXPECT_THAT(parsed({"--slurm-node", "-1"}).values, ElementsAre(Pair("slurm.nodeName", "-1")));
  EXPECT_THAT(parsed({"--slurm-node", "run"}).values, ElementsAre(Pair("slurm.nodeName", "run")));
  EXPECT_THAT(parsed({"--slurm-node=", "run"}).values, ElementsAre(Pair("slurm.nodeName", "")));
  EXPECT_EQ(parsed({"--slurm-node=", "print-node"}).subcommand, "print-node");
  EXPECT_EQ(parsed({"--config", "/c.yaml"}).config_file, "/c.yaml");
}

TEST(CommandLineTest, TheLastOfRepeatedFlagsCountsAndMapsAddUp) {
  EXPECT_THAT(parsed({"--port", "1", "--port=2"}).values, ElementsAre(Pair("endpoint.port", "2")));
  EXPECT_THAT(parsed({"--node-labels", "a=1,b=2", "--node-labels=c=3"}).values,
              ElementsAre(Pair("node.labels", "a=1,b=2,c=3")));
}

TEST(CommandLineTest, BooleansNeedNoValue) {
  EXPECT_THAT(parsed({"--node-unschedulable", "run"}).values,
              ElementsAre(Pair("node.unschedulable", "true")));
  EXPECT_THAT(parsed({"--node-publish-hostname=false"}).values,
              ElementsAre(Pair("node.publishHostname", "false")));
}

TEST(CommandLineTest, SubcommandsTakeFlagsOnEitherSide) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"print-node", "--nodename", "n1", "-o", "json"},
                                             {"--nodename", "n1", "print-node", "--output=json"},
                                             {"--nodename=n1", "print-node", "-ojson"}}) {
    const auto command = parsed(arguments);
    EXPECT_EQ(command.subcommand, "print-node");
    EXPECT_THAT(command.options, ElementsAre(Pair("output", "json")));
    EXPECT_THAT(command.values, ElementsAre(Pair("node.name", "n1")));
  }
  EXPECT_THAT(parsed({"print-node"}).options, ElementsAre(Pair("output", "json")));
  EXPECT_EQ(parsed({"run", "--nodename", "n1"}).subcommand, "run");
  EXPECT_EQ(parsed({"version"}).subcommand, "version");
  EXPECT_EQ(parsed({"--version"}).subcommand, "version");
}

TEST(CommandLineTest, AnArgumentThatLooksLikeAFlagIsNoValue) {
  EXPECT_EQ(parse_error({"--slurm-node", "--port", "1"}), "missing value for flag --slurm-node");
  EXPECT_EQ(parse_error({"--nodename"}), "missing value for flag --nodename");
  EXPECT_THAT(parsed({"--slurm-node=--port"}).values,
              ElementsAre(Pair("slurm.nodeName", "--port")));
}

TEST(CommandLineTest, ShortFlagsAndSwitches) {
  EXPECT_EQ(parsed({"status", "-o=json"}).options.at("output"), "json");
  EXPECT_THAT(parse_error({"status", "-hx"}), HasSubstr("unknown flag -hx"));
  EXPECT_THAT(parse_error({"status", "check"}),
              HasSubstr("one command at a time: unexpected argument \"check\""));
}

TEST(CommandLineTest, HelpWinsOverEverythingElse) {
  EXPECT_TRUE(parsed({"--help"}).help);
  EXPECT_TRUE(parsed({"-h"}).help);
  EXPECT_TRUE(parsed({"help"}).help);
  EXPECT_TRUE(parsed({"--no-such-flag", "--help"}).help);
  EXPECT_TRUE(parsed({"status", "help"}).help);
  EXPECT_EQ(parsed({"help", "check"}).subcommand, "check");
  const auto command = parsed({"print-node", "--help"});
  EXPECT_TRUE(command.help);
  EXPECT_EQ(command.subcommand, "print-node");
}

TEST(CommandLineTest, HelpOnAnUnknownCommandIsAMistake) {
  EXPECT_EQ(parse_error({"help", "foo"}), "unknown command \"foo\"");
  EXPECT_EQ(parse_error({"help", "chek"}), "unknown command \"chek\"; did you mean \"check\"?");
  EXPECT_EQ(parse_error({"foo", "help"}), "unknown command \"foo\"");
}

TEST(CommandLineTest, UnknownFlagsAreAllNamedWithASuggestion) {
  EXPECT_EQ(parse_error({"--nodname", "n1"}), "unknown flag --nodname; did you mean --nodename?");
  EXPECT_EQ(parse_error({"--slurm-pol-interval=5s", "--prot", "1"}),
            "unknown flag --slurm-pol-interval; did you mean --slurm-poll-interval?\n"
            "unknown flag --prot; did you mean --port?");
  EXPECT_EQ(parse_error({"--xyzzyxyzzyxyzzy"}),
            "unknown flag --xyzzyxyzzyxyzzy; \"slurmlet --help\" lists all flags");
  EXPECT_EQ(parse_error({"-port", "1"}), "unknown flag -port; did you mean --port?");
  EXPECT_EQ(parse_error({"-x"}), "unknown flag -x; \"slurmlet --help\" lists all flags");
  EXPECT_THAT(parse_error({"---"}), HasSubstr("unknown flag ---"));
}

TEST(CommandLineTest, OnlyFlagsThatHelpListsAreSuggested) {
  for (const char* flag : {"--foo", "--oss", "--name-space", "--klog.w"}) {
    EXPECT_EQ(parse_error({flag}),
              "unknown flag " + std::string{flag} + "; \"slurmlet --help\" lists all flags");
  }
}

TEST(CommandLineTest, OtherMistakes) {
  EXPECT_EQ(parse_error({"prnt-node"}),
            "unknown command \"prnt-node\"; did you mean \"print-node\"?");
  EXPECT_EQ(parse_error({"run", "qqqqqqqq"}), "unknown command \"qqqqqqqq\"");
  EXPECT_EQ(parse_error({"print-node", "-o", "xml"}), "--output is \"xml\"; it must be json");
  EXPECT_THAT(parse_error({"--nodename"}), HasSubstr("--nodename"));
}

TEST(CommandLineTest, EachOfVirtualKubeletsOtherFlagsGivesOneWarning) {
  for (const auto& flag : ignored_flags()) {
    const std::string name{flag.flag};
    std::vector<std::string> once = {name};
    std::vector<std::string> twice = {name + "=1", name + "=0"};
    if (flag.takes_value) {
      once.emplace_back("value");
    } else {
      twice = {name + "=true", name};
    }
    for (const auto& arguments : {once, twice}) {
      const auto command = parsed(arguments);
      ASSERT_EQ(command.warnings.size(), 1U) << name;
      EXPECT_THAT(command.warnings[0], HasSubstr(name + " has no effect")) << name;
      EXPECT_THAT(command.values, IsEmpty()) << name;
    }
  }
}

TEST(CommandLineTest, FlagsOfVirtualKubelet111AreAllKnown) {
  // cmd/virtual-kubelet/internal/commands/root/flag.go of v1.11.0, and klog's own.
  for (const char* flag : {"--namespace",
                           "--cluster-domain",
                           "--os",
                           "--metrics-addr",
                           "--taint",
                           "--disable-taint",
                           "--pod-sync-workers",
                           "--enable-node-lease",
                           "--trace-exporter",
                           "--trace-service-name",
                           "--trace-tag",
                           "--trace-sample-rate",
                           "--full-resync-period",
                           "--startup-timeout",
                           "--stream-idle-timeout",
                           "--stream-creation-timeout",
                           "--klog.v",
                           "--klog.vmodule",
                           "--klog.logtostderr",
                           "--klog.alsologtostderr",
                           "--klog.stderrthreshold",
                           "--klog.log_dir",
                           "--klog.log_file",
                           "--klog.log_file_max_size",
                           "--klog.skip_headers",
                           "--klog.skip_log_headers",
                           "--klog.one_output",
                           "--klog.add_dir_header",
                           "--klog.log_backtrace_at",
                           "--kubeconfig",
                           "--nodename",
                           "--provider",
                           "--provider-config",
                           "--log-level"}) {
    EXPECT_TRUE(parse({std::string(flag) + "=true"})) << flag;
  }
}

TEST(CommandLineTest, OtherProvidersGiveAWarning) {
  EXPECT_THAT(parsed({"--provider=slurm"}).warnings, IsEmpty());
  const auto command = parsed({"--provider=azure"});
  ASSERT_EQ(command.warnings.size(), 1U);
  EXPECT_THAT(command.warnings[0], HasSubstr("--provider azure has no effect"));
}

}  // namespace
}  // namespace slurmlet::cli
