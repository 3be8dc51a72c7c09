#include "config/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace slurmlet::config {
namespace config_file_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

constexpr const char* kHead = "apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n";

Draft apply(const std::string& body) {
  Draft draft;
  apply_config_file(kHead + body, "c.yaml", draft);
  return draft;
}

TEST(ConfigFileTest, EverySettingOfAFullFileIsTaken) {
  const Draft draft = apply(R"(
logLevel: warn
stateDir: /srv/slurmlet
kubernetes: {kubeconfig: /k, leaseDuration: 1m, statusReportInterval: 600}
node:
  name: hpc-1
  labels: {rack: r1, "example.org/row": 7}
  providerID: metal3://metal3/node-0/hpc-x
  ip: 2001:db8::1
  publishHostname: false
  kubeletVersion: 1.10
  gpuResources: {gpu: nvidia.com/gpu, "gpu:a100": nvidia.com/a100}
  readyFollows: slurm
  notReadyGracePeriod: 0
  excludeFromDisruption: false
  unschedulable: true
  recreate: never
  recreateAfter: 10m
  taints: "site.example/hpc=yes:NoSchedule"
  metal3UUID: 8b2a2f8a-0001
slurm:
  nodeName: cpu_01
  conf: /etc/slurm/slurm.conf
  binDir: /opt/slurm/bin
  pollInterval: 1m30s
  commandTimeout: 500ms
metal3: {instanceData: /run/x.json}
pods: {maxBackoff: 10s}
endpoint: {port: 10251, healthzPort: 0, clientCAFile: /ca}
)");
  EXPECT_THAT(draft.problems(), IsEmpty());
  const Settings& s = draft.settings;
  EXPECT_EQ(s.log_level, log::Level::kWarning);
  EXPECT_EQ(s.state_dir, "/srv/slurmlet");
  EXPECT_EQ(s.kubernetes.kubeconfig, "/k");
  EXPECT_EQ(s.kubernetes.lease_duration, Milliseconds{60'000});
  EXPECT_EQ(s.kubernetes.status_report_interval, Milliseconds{600'000});
  EXPECT_EQ(s.node.name, "hpc-1");
  EXPECT_THAT(s.node.labels, ElementsAre(Pair("example.org/row", "7"), Pair("rack", "r1")));
  EXPECT_EQ(s.node.provider_id, "metal3://metal3/node-0/hpc-x");
  EXPECT_EQ(s.node.ip, "2001:db8::1");
  EXPECT_FALSE(s.node.publish_hostname);
  EXPECT_EQ(s.node.kubelet_version, "1.10");
  EXPECT_THAT(s.node.gpu_resources,
              ElementsAre(Pair("gpu", "nvidia.com/gpu"), Pair("gpu:a100", "nvidia.com/a100")));
  EXPECT_EQ(s.node.ready_follows, node::ReadyFollows::kSlurm);
  EXPECT_EQ(s.node.not_ready_grace, Milliseconds{0});
  EXPECT_FALSE(s.node.exclude_from_disruption);
  EXPECT_TRUE(s.node.unschedulable);
  EXPECT_EQ(s.node.recreate, Recreate::kNever);
  EXPECT_EQ(s.node.recreate_after, Milliseconds{600'000});
  EXPECT_EQ(s.node.taints, "site.example/hpc=yes:NoSchedule");
  EXPECT_EQ(s.node.metal3_uuid, "8b2a2f8a-0001");
  EXPECT_EQ(s.slurm.node_name, "cpu_01");
  EXPECT_EQ(s.slurm.bin_dir, "/opt/slurm/bin");
  EXPECT_EQ(s.slurm.poll_interval, Milliseconds{90'000});
  EXPECT_EQ(s.slurm.command_timeout, Milliseconds{500});
  EXPECT_EQ(s.metal3.instance_data, "/run/x.json");
  EXPECT_EQ(s.pods.max_backoff, Milliseconds{10'000});
  EXPECT_EQ(s.endpoint.port, 10251);
  EXPECT_EQ(s.endpoint.healthz_port, 0);
  EXPECT_EQ(s.endpoint.client_ca_file, "/ca");
  EXPECT_EQ(draft.name_of("slurm.pollInterval"), "c.yaml:27:17: slurm.pollInterval");
}

TEST(ConfigFileTest, JsonIsAccepted) {
  Draft draft;
  apply_config_file(
      "{\n\t\"apiVersion\": \"slurmlet.io/v1alpha1\",\n\t\"kind\": "
      "\"SlurmletConfiguration\",\n\t\"slurm\": {\"pollInterval\": \"2m\"}\n}\n",
      "c.json", draft);
  EXPECT_THAT(draft.problems(), IsEmpty());
  EXPECT_EQ(draft.settings.slurm.poll_interval, Milliseconds{120'000});
}

TEST(ConfigFileTest, EmptyGroupsAndValuesMeanTheDefault) {
  const Draft draft = apply("slurm:\nnode:\n  name:\n  ip: \"\"\n  labels: {}\nstateDir: ''\n");
  EXPECT_THAT(draft.problems(), IsEmpty());
  EXPECT_EQ(draft.settings.state_dir, Settings{}.state_dir);
  EXPECT_FALSE(draft.is_set("node.name"));
}

// Line of the file => the column of its value, the key and the words of the problem, all of them.
constexpr const char* kProblems = R"(
sluurm: {} => 1 & "sluurm" & did you mean "slurm"?
xyzzyxyzzyxyzzy: 1 => 1 & unknown key "xyzzyxyzzyxyzzy"
slurm: {polInterval: 5s} => 9 & "slurm.polInterval" & did you mean "slurm.pollInterval"?
slurm: fast => 8 & slurm is text & map
logLevel: verbose => 11 & logLevel is "verbose" & debug, info, warning, error
logLevel: inof => 11 & logLevel is "inof" & did you mean "info"?
logLevel: [info] => 11 & logLevel is a list & text
stateDir: var => 11 & stateDir is "var" & absolute path
node: {name: Node_1} => 14 & node.name is "Node_1" & lower-case
node: {name: true} => 14 & node.name is true & write "true" in quotes
node: {ip: 10.0.0.1/24} => 12 & node.ip is "10.0.0.1/24" & IPv4 or IPv6
node: {ip: "192.0.2.1,192.0.2.2"} => 12 & node.ip is "192.0.2.1,192.0.2.2" & the other IPv6
node: {ip: "192.0.2.1,2001:db8::1,2001:db8::2"} => 12 & the other IPv6
node: {taints: "hpc=yes"} => 16 & node.taints & "hpc=yes" & KEY=VALUE:EFFECT
node: {recreateAfter: soon} => 23 & node.recreateAfter is "soon" & never, or a duration
node: {publishHostname: yes} => 25 & node.publishHostname is text & true or false
node: {readyFollows: slurmctld} => 22 & daemon, slurmd, slurm; & did you mean "slurmd"?
node: {recreate: no} => 18 & node.recreate is "no" & always, never
node: {notReadyGracePeriod: -5s} => 29 & node.notReadyGracePeriod is -5s & at least 0s
slurm: {pollInterval: 500ms} => 23 & slurm.pollInterval is 500ms & at least 1s
slurm: {pollInterval: soon} => 23 & slurm.pollInterval is "soon" & auto, or a duration
slurm: {pollInterval: 'it must be a day'} => 23 & slurm.pollInterval is "it must be a day" & auto, or a duration
slurm: {pollInterval: true} => 23 & slurm.pollInterval is true or false & a duration
slurm: {nodeName: 'cpu[01-10]'} => 19 & slurm.nodeName is "cpu[01-10]" & brackets
kubernetes: {leaseDuration: 9s} => 29 & kubernetes.leaseDuration is 9s & at least 10s
endpoint: {port: 65536} => 18 & endpoint.port is 65536 & at most 65535
endpoint: {port: -1} => 18 & endpoint.port is -1 & at least 0
endpoint: {port: "10250"} => 18 & endpoint.port is text & whole number
endpoint: {port: 1.5} => 18 & endpoint.port is a number & whole number
node: {labels: [a]} => 16 & node.labels is a list & map
node: {labels: {a: true}} => 17 & node.labels & "a" & quote it
node: {gpuResources: {"gpu:": nvidia.com/gpu}} => 23 & node.gpuResources has "gpu:" & gpu:a100
node: {gpuResources: {gpu: gpus}} => 23 & node.gpuResources has "gpus" & nvidia.com/gpu
node: {metal3UUID: CI_MISSING_JINJA_VAR/uuid} => 20 & node.metal3UUID & Metal3DataTemplate
)";

TEST(ConfigFileTest, ProblemsHavePlaceKeyAndCure) {
  for (const auto line : split(kProblems, '\n')) {
    const auto arrow = line.find(" => ");
    if (arrow == line.npos) {
      continue;
    }
    SCOPED_TRACE(line);
    const auto problems = apply(std::string{line.substr(0, arrow)} + "\n").problems();
    ASSERT_EQ(problems.size(), 1U);
    auto words = split(line.substr(arrow + 4), '&');
    EXPECT_THAT(problems.front(), StartsWith(fmt::format("c.yaml:3:{}: ", trim(words.front()))));
    for (const auto word : words) {
      EXPECT_THAT(problems.front(), HasSubstr(std::string{trim(word)}));
    }
  }
  EXPECT_THAT(apply("slurm: {conf: /a}\nslurm: {}\n").problems(),
              ElementsAre(StartsWith("c.yaml:4:1: key \"slurm\" is given twice")));
}

TEST(ConfigFileTest, AddressesThatLeadNowhereAreNoAddressesOfANode) {
  const std::pair<const char*, const char*> kRows[] = {
      {"the unspecified address", "0.0.0.0 ::"},
      {"a loopback address", "127.0.0.1 127.255.0.9 ::1"},
      {"a link-local address", "169.254.1.2 fe80::1 febf::1"},
      {"a multicast address", "224.0.0.1 239.255.255.255 ff02::1"},
      {"the broadcast address", "255.255.255.255"},
      {"an IPv4 address in IPv6 form", "::ffff:192.0.2.1"},
      {"",
       "192.0.2.1 10.0.0.1 100.64.0.1 169.253.1.2 169.255.1.2 223.255.255.255 240.0.0.1 fd00::1 "
       "fec0::1 2001:db8::1 64:ff9b::192.0.2.1"}};
  for (const auto& [kind, addresses] : kRows) {
    for (const auto ip : split(addresses, ' ')) {
      const bool is_ipv6 = ip.find(':') != ip.npos;
      const std::string both = fmt::format("{}, {}", is_ipv6 ? "192.0.2.9" : "2001:db8::9", ip);
      for (const std::string& setting : {std::string{ip}, both}) {
        const auto problems = apply(fmt::format("node: {{ip: \"{}\"}}\n", setting)).problems();
        if (*kind == '\0') {
          EXPECT_THAT(problems, IsEmpty()) << setting;
        } else {
          EXPECT_THAT(problems, ElementsAre(HasSubstr(fmt::format("{} is {}", ip, kind))));
        }
      }
    }
  }
  // To listen at all addresses, or on loopback, is another matter.
  for (const char* address : {"0.0.0.0", "::", "127.0.0.1"}) {
    EXPECT_THAT(apply(fmt::format("endpoint: {{address: \"{}\"}}\n", address)).problems(),
                IsEmpty());
  }
}

TEST(ConfigFileTest, ProviderIds) {
  for (const char* id : {"metal3://metal3/node-0/hpc-x7k2p", "aws:///eu-west-1/i-0123"}) {
    EXPECT_THAT(apply(fmt::format("node: {{providerID: \"{}\"}}\n", id)).problems(), IsEmpty());
  }
  const std::pair<const char*, const char*> kRows[] = {
      {"metal3://8b2a2f8a-0001-4d2f-9f5e-000000000000", "is no longer supported"},
      {"metal3://metal3/node-0", "exactly three parts"},
      {"metal3://metal3/node-0/x/y", "exactly three parts"},
      {"metal3://metal3//x", "exactly three parts"},
      {"metal3:///", "exactly three parts"},
      {"metal3://", "SCHEME://ID"},
      {"hpc-x7k2p", "SCHEME://ID"},
      {"x://a b", "SCHEME://ID"}};
  for (const auto& [id, words] : kRows) {
    EXPECT_THAT(apply(fmt::format("node: {{providerID: \"{}\"}}\n", id)).problems(),
                ElementsAre(HasSubstr(words)));
  }
}

TEST(ConfigFileTest, ServerAddresses) {
  const auto problems = [](std::string_view server) {
    return apply(fmt::format("kubernetes: {{server: \"{}\"}}\n", server)).problems();
  };
  for (const char* good : {"https://192.0.2.10:6443", "https://api.example.org",
                           "https://[2001:db8::1]:6443", "https://[2001:db8::1]"}) {
    EXPECT_THAT(problems(good), IsEmpty()) << good;
  }
  for (const char* bad :
       {"http://192.0.2.10:6443", "192.0.2.10:6443", "https://", "https://:6443", "https://a:70000",
        "https://a:0", "https://a:6443/x", "https://me:secret@a:6443"}) {
    EXPECT_THAT(problems(bad), ElementsAre(Not(HasSubstr("secret")))) << bad;
  }
}

TEST(ConfigFileTest, EveryForbiddenLabelIsNamed) {
  const std::pair<const char*, const char*> kRows[] = {
      {"rack: r1", ""},
      {"myslurmlet.io/x: y", ""},
      {"node-role.kubernetes.io/slurm: \"\"", "node-role.kubernetes.io/slurm"},
      {"example.org/x: \"a b\"", "the value must be"},
      {"metal3.io/uuid: 8b2a", "node.metal3UUID"},
      {"kubernetes.io/hostname: n1", "slurmlet sets it"},
      {"slurmlet.io/x: y", "reserved for slurmlet"},
      {"partition.slurmlet.io/batch: \"true\"", "slurmlet.io"},
      {"node-restriction.kubernetes.io/x: y", "node-restriction.kubernetes.io/x"},
      {"type: hpc", "slurmlet always sets it"},
      {"node.kubernetes.io/exclude-disruption: \"true\"", "node.excludeFromDisruption"},
      {"-bad: x", "the key must be"},
  };
  for (const auto& [label, words] : kRows) {
    const auto problems = apply(fmt::format("node:\n  labels:\n    {}\n", label)).problems();
    if (*words == '\0') {
      EXPECT_THAT(problems, IsEmpty()) << label;
    } else {
      EXPECT_THAT(problems,
                  ElementsAre(AllOf(StartsWith("c.yaml:5:5: node.labels"), HasSubstr(words))));
    }
  }
}

TEST(ConfigFileTest, AllProblemsAreReportedTogether) {
  const Draft draft = apply("endpoint: {port: x}\nslurm: {pollInterval: 0s, konf: /x}\nnode: 3\n");
  EXPECT_EQ(draft.problems().size(), 4U);
}

TEST(ConfigFileTest, ApiVersionAndKindAreRequired) {
  const auto problems = [](const std::string& text) {
    Draft draft;
    apply_config_file(text, "c.yaml", draft);
    return draft.problems();
  };
  EXPECT_THAT(problems("logLevel: info\n"),
              ElementsAre("c.yaml:1:1: \"apiVersion: slurmlet.io/v1alpha1\" is missing",
                          "c.yaml:1:1: \"kind: SlurmletConfiguration\" is missing"));
  EXPECT_THAT(problems("apiVersion: slurmlet.io/v2\nkind: SlurmletConfiguration\n"),
              ElementsAre(AllOf(StartsWith("c.yaml:1:13: apiVersion is \"slurmlet.io/v2\""),
                                HasSubstr("\"slurmlet.io/v1alpha1\""))));
  EXPECT_THAT(problems("apiVersion: slurmlet.io/v1alpha1\nkind: KubeletConfiguration\n"),
              ElementsAre(HasSubstr("kind is \"KubeletConfiguration\"")));
  EXPECT_THAT(problems(""), ElementsAre(HasSubstr("c.yaml:1:1: the file is empty; it must be")));
  EXPECT_THAT(problems("- a\n"), ElementsAre(HasSubstr("the file is a list")));
  EXPECT_THAT(problems("a: [\n"), ElementsAre(HasSubstr("c.yaml:2:1: ")));
}

}  // namespace config_file_test
}  // namespace slurmlet::config
