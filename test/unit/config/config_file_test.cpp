#include "config/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::config {
namespace config_file_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

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

TEST(ConfigFileTest, ProblemsHavePlaceKeyAndCure) {
  struct Row {
    const char* body;
    const char* problem;
  };
  const Row kRows[] = {
      {"slurm:\n  polInterval: 5s\n",
       "c.yaml:4:3: unknown key \"slurm.polInterval\"; did you mean \"slurm.pollInterval\"?"},
      {"sluurm: {}\n", "c.yaml:3:1: unknown key \"sluurm\"; did you mean \"slurm\"?"},
      {"xyzzyxyzzyxyzzy: 1\n", "c.yaml:3:1: unknown key \"xyzzyxyzzyxyzzy\""},
      {"slurm: fast\n", "c.yaml:3:8: slurm is text; it must be a map"},
      {"logLevel: verbose\n",
       "c.yaml:3:11: logLevel is \"verbose\"; it must be one of debug, info, warning, error"},
      {"logLevel: inof\n",
       "c.yaml:3:11: logLevel is \"inof\"; it must be one of debug, info, warning, error; did you "
       "mean \"info\"?"},
      {"logLevel: [info]\n", "c.yaml:3:11: logLevel is a list; it must be text"},
      {"stateDir: var\n", "c.yaml:3:11: stateDir is \"var\"; it must be an absolute path"},
      {"node: {name: Node_1}\n",
       "c.yaml:3:14: node.name is \"Node_1\"; a Node name is lower-case letters, digits, '-' and "
       "'.', with a letter or digit at both ends of each part"},
      {"node: {name: true}\n",
       "c.yaml:3:14: node.name is true; it must be text: write \"true\" in quotes"},
      {"node: {ip: 10.0.0.1/24}\n",
       "c.yaml:3:12: node.ip is \"10.0.0.1/24\"; it must be one IPv4 or IPv6 address, or "
       "one of each with a comma between"},
      {"node: {ip: \"192.0.2.1,192.0.2.2\"}\n",
       "c.yaml:3:12: node.ip is \"192.0.2.1,192.0.2.2\"; of several addresses one must be IPv4 and "
       "the other IPv6"},
      {"node: {ip: \"192.0.2.1,2001:db8::1,2001:db8::2\"}\n",
       "c.yaml:3:12: node.ip is \"192.0.2.1,2001:db8::1,2001:db8::2\"; of several addresses one "
       "must be IPv4 and the other IPv6"},
      {"node: {taints: \"hpc=yes\"}\n",
       "c.yaml:3:16: node.taints has the taint \"hpc=yes\": it must be KEY=VALUE:EFFECT or "
       "KEY:EFFECT"},
      {"node: {recreateAfter: soon}\n",
       "c.yaml:3:23: node.recreateAfter is \"soon\"; it must be never, or a duration like 90s, "
       "1m30s or 500ms"},
      {"node: {publishHostname: yes}\n",
       "c.yaml:3:25: node.publishHostname is text; it must be true or false"},
      {"node: {readyFollows: slurmctld}\n",
       "c.yaml:3:22: node.readyFollows is \"slurmctld\"; it must be one of daemon, slurmd, slurm; "
       "did you mean \"slurmd\"?"},
      {"node: {recreate: no}\n",
       "c.yaml:3:18: node.recreate is \"no\"; it must be one of always, never"},
      {"node: {notReadyGracePeriod: -5s}\n",
       "c.yaml:3:29: node.notReadyGracePeriod is -5s; it must be at least 0s"},
      {"slurm: {pollInterval: 500ms}\n",
       "c.yaml:3:23: slurm.pollInterval is 500ms; it must be at least 1s"},
      {"slurm: {pollInterval: soon}\n",
       "c.yaml:3:23: slurm.pollInterval is \"soon\"; it must be auto, or a duration like 90s, "
       "1m30s or "
       "500ms"},
      {"slurm: {pollInterval: 'it must be a day'}\n",
       "c.yaml:3:23: slurm.pollInterval is \"it must be a day\"; it must be auto, or a duration "
       "like "
       "90s, 1m30s or 500ms"},
      {"slurm: {pollInterval: true}\n",
       "c.yaml:3:23: slurm.pollInterval is true or false; it must be a duration like 90s, "
       "1m30s or "
       "500ms"},
      {"slurm: {nodeName: 'cpu[01-10]'}\n",
       "c.yaml:3:19: slurm.nodeName is \"cpu[01-10]\"; it must be one NodeName as in slurm.conf, "
       "without brackets, commas or spaces"},
      {"kubernetes: {leaseDuration: 9s}\n",
       "c.yaml:3:29: kubernetes.leaseDuration is 9s; it must be at least 10s"},
      {"endpoint: {port: 65536}\n",
       "c.yaml:3:18: endpoint.port is 65536; it must be at most 65535"},
      {"endpoint: {port: -1}\n", "c.yaml:3:18: endpoint.port is -1; it must be at least 0"},
      {"endpoint: {port: \"10250\"}\n",
       "c.yaml:3:18: endpoint.port is text; it must be a whole number"},
      {"endpoint: {port: 1.5}\n",
       "c.yaml:3:18: endpoint.port is a number; it must be a whole number"},
      {"node: {labels: [a]}\n", "c.yaml:3:16: node.labels is a list; it must be a map"},
      {"node: {labels: {a: true}}\n",
       "c.yaml:3:17: node.labels has a value for \"a\" that is true or false; it must be text: "
       "quote it"},
      {"node: {gpuResources: {\"gpu:\": nvidia.com/gpu}}\n",
       "c.yaml:3:23: node.gpuResources has \"gpu:\"; the left side must be a Gres name or "
       "name:type, e.g. gpu:a100"},
      {"node: {gpuResources: {gpu: gpus}}\n",
       "c.yaml:3:23: node.gpuResources has \"gpus\" for \"gpu\"; it must be an extended resource "
       "like nvidia.com/gpu, outside kubernetes.io"},
      {"node: {metal3UUID: CI_MISSING_JINJA_VAR/uuid}\n",
       "c.yaml:3:20: node.metal3UUID is \"CI_MISSING_JINJA_VAR/uuid\"; cloud-init had no value for "
       "this template variable; give the metadata this key (Metal3DataTemplate spec.metaData) or "
       "leave the setting out"},
      {"slurm: {conf: /a}\nslurm: {}\n",
       "c.yaml:4:1: key \"slurm\" is given twice; first in line 3"},
  };
  for (const auto& row : kRows) {
    EXPECT_THAT(apply(row.body).problems(), ElementsAre(row.problem)) << row.body;
  }
}

// As the kubelet's --node-ip.
TEST(ConfigFileTest, AddressesThatLeadNowhereAreNoAddressesOfANode) {
  const struct {
    const char* ip;
    const char* kind;  // "" = fine
  } kRows[] = {
      {"0.0.0.0", "the unspecified address"},
      {"127.0.0.1", "a loopback address"},
      {"127.255.0.9", "a loopback address"},
      {"169.254.1.2", "a link-local address"},
      {"224.0.0.1", "a multicast address"},
      {"239.255.255.255", "a multicast address"},
      {"255.255.255.255", "the broadcast address"},
      {"::", "the unspecified address"},
      {"::1", "a loopback address"},
      {"fe80::1", "a link-local address"},
      {"febf::1", "a link-local address"},
      {"ff02::1", "a multicast address"},
      {"::ffff:192.0.2.1", "an IPv4 address in IPv6 form"},
      {"192.0.2.1", ""},
      {"10.0.0.1", ""},
      {"100.64.0.1", ""},
      {"169.253.1.2", ""},
      {"169.255.1.2", ""},
      {"223.255.255.255", ""},
      {"240.0.0.1", ""},
      {"fd00::1", ""},
      {"fec0::1", ""},
      {"2001:db8::1", ""},
      {"64:ff9b::192.0.2.1", ""},
  };
  for (const auto& row : kRows) {
    for (const std::string other : {"", "192.0.2.9", "2001:db8::9"}) {
      const std::string ip{row.ip};
      if (!other.empty() && (ip.find(':') == ip.npos) == (other.find(':') == other.npos)) {
        continue;  // two of one family are another matter
      }
      const std::string both = other.empty() ? ip : other + ", " + ip;
      const Draft draft = apply(fmt::format("node: {{ip: \"{}\"}}\n", both));
      if (*row.kind == '\0') {
        EXPECT_THAT(draft.problems(), IsEmpty()) << both;
      } else {
        EXPECT_THAT(draft.problems(),
                    ElementsAre(fmt::format(
                        "c.yaml:3:12: node.ip is \"{}\"; {} is {}; use an address at which other "
                        "machines reach this node, or leave the setting out to have one chosen",
                        both, ip, row.kind)));
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
  struct Row {
    const char* id;
    const char* problem;  // "" = fine
  };
  const Row kRows[] = {
      {"metal3://metal3/node-0/hpc-x7k2p", ""},
      {"aws:///eu-west-1/i-0123", ""},
      {"metal3://8b2a2f8a-0001-4d2f-9f5e-000000000000", "is no longer supported"},
      {"metal3://metal3/node-0", "exactly three parts"},
      {"metal3://metal3/node-0/x/y", "exactly three parts"},
      {"metal3://metal3//x", "exactly three parts"},
      {"metal3:///", "exactly three parts"},
      {"metal3://", "SCHEME://ID"},
      {"hpc-x7k2p", "SCHEME://ID"},
      {"x://a b", "SCHEME://ID"},
  };
  for (const auto& row : kRows) {
    const Draft draft = apply(std::string("node: {providerID: \"") + row.id + "\"}\n");
    if (*row.problem == '\0') {
      EXPECT_THAT(draft.problems(), IsEmpty()) << row.id;
    } else {
      EXPECT_THAT(draft.problems(), ElementsAre(HasSubstr(row.problem))) << row.id;
    }
  }
}

TEST(ConfigFileTest, ServerAddresses) {
  struct Row {
    const char* server;
    bool valid;
  };
  const Row kRows[] = {
      {"https://192.0.2.10:6443", true},
      {"https://api.example.org", true},
      {"https://[2001:db8::1]:6443", true},
      {"https://[2001:db8::1]", true},
      {"http://192.0.2.10:6443", false},
      {"192.0.2.10:6443", false},
      {"https://", false},
      {"https://:6443", false},
      {"https://a:70000", false},
      {"https://a:0", false},
      {"https://a:6443/x", false},
      {"https://me:secret@a:6443", false},
  };
  for (const auto& row : kRows) {
    const Draft draft = apply(std::string("kubernetes: {server: \"") + row.server + "\"}\n");
    EXPECT_EQ(draft.problems().empty(), row.valid) << row.server;
    for (const auto& problem : draft.problems()) {
      EXPECT_THAT(problem, Not(HasSubstr("secret")));
    }
  }
}

TEST(ConfigFileTest, EveryForbiddenLabelIsNamed) {
  const Draft draft = apply(R"(node:
  labels:
    rack: r1
    node-role.kubernetes.io/slurm: ""
    example.org/x: "a b"
    metal3.io/uuid: 8b2a
    kubernetes.io/hostname: n1
    slurmlet.io/x: y
    partition.slurmlet.io/batch: "true"
    myslurmlet.io/x: y
    node-restriction.kubernetes.io/x: y
    type: hpc
    node.kubernetes.io/exclude-disruption: "true"
    -bad: x
)");
  EXPECT_THAT(
      draft.problems(),
      ElementsAre(
          HasSubstr("c.yaml:6:5: node.labels has the label \"node-role.kubernetes.io/slurm\": "
                    "Kubernetes does not allow a node to give itself a role"),
          HasSubstr("c.yaml:7:5: node.labels has the label \"example.org/x\": the value must be"),
          HasSubstr("has the label \"metal3.io/uuid\": set node.metal3UUID instead"),
          HasSubstr("has the label \"kubernetes.io/hostname\": slurmlet sets it"),
          HasSubstr(
              "has the label \"slurmlet.io/x\": labels of slurmlet.io are reserved for slurmlet"),
          HasSubstr("has the label \"partition.slurmlet.io/batch\": labels of slurmlet.io are"),
          HasSubstr("has the label \"node-restriction.kubernetes.io/x\": Kubernetes does not allow "
                    "a node to"),
          HasSubstr("has the label \"type\": slurmlet always sets it"),
          HasSubstr("set node.excludeFromDisruption instead"),
          HasSubstr("has the label \"-bad\": the key must be")));
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
              ElementsAre("c.yaml:1:13: apiVersion is \"slurmlet.io/v2\"; this version knows only "
                          "\"slurmlet.io/v1alpha1\""));
  EXPECT_THAT(problems("apiVersion: slurmlet.io/v1alpha1\nkind: KubeletConfiguration\n"),
              ElementsAre(HasSubstr("kind is \"KubeletConfiguration\"")));
  EXPECT_THAT(problems(""), ElementsAre(HasSubstr("c.yaml:1:1: the file is empty; it must be")));
  EXPECT_THAT(problems("- a\n"), ElementsAre(HasSubstr("the file is a list")));
  EXPECT_THAT(problems("a: [\n"), ElementsAre(HasSubstr("c.yaml:2:1: ")));
}

}  // namespace config_file_test
}  // namespace slurmlet::config
