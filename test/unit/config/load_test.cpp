#include "config/load.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "config/fake_sources.h"
#include "config/settings_table.h"
#include "fakes/temp_tree.h"
#include "fixtures.h"

namespace slurmlet::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kHead = "apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n";
constexpr const char* kFile = "/etc/slurmlet/config.yaml";

std::string file(const std::string& body) { return kHead + body; }

TEST(LoadTest, VirtualKubeletsCommandLineIsEnough) {
  FakeSources sources;
  sources.files["/etc/vk.json"] =
      R"({"n1": {"cpu": "0", "memory": "0Gi", "pods": "0", "labels": {"metal3.io/uuid": "8b2a"}}})";
  const Settings settings =
      loaded(sources, {"--provider", "mock", "--nodename", "n1", "--provider-config",
                       "/etc/vk.json", "--kubeconfig", "/etc/kubernetes/admin.conf"});
  EXPECT_EQ(settings.node.name, "n1");
  EXPECT_EQ(settings.node.metal3_uuid, "8b2a");
  EXPECT_EQ(settings.kubernetes.kubeconfig, "/etc/kubernetes/admin.conf");
  EXPECT_EQ(settings.config_file, "");
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(LoadTest, FlagsWinOverEnvironmentOverFileOverDefaults) {
  FakeSources sources;
  const std::vector<std::string> plain = {"print-node"};
  EXPECT_EQ(loaded(sources, plain).endpoint.port, 10250);
  sources.files[kFile] = file("endpoint: {port: 1}\nnode: {ip: 192.0.2.1}\n");
  EXPECT_EQ(loaded(sources, plain).endpoint.port, 1);
  EXPECT_EQ(loaded(sources, plain).config_file, kFile);
  sources.environment["KUBELET_PORT"] = "2";
  EXPECT_EQ(loaded(sources, plain).endpoint.port, 2);
  EXPECT_EQ(loaded(sources, {"print-node", "--port", "3"}).endpoint.port, 3);
  EXPECT_EQ(loaded(sources, {"print-node", "--port", "3"}).node.ip, "192.0.2.1");
}

TEST(LoadTest, DropInsFollowTheFileInTheOrderOfTheirNames) {
  FakeSources sources;
  sources.files[kFile] =
      file("endpoint: {port: 1}\nnode: {ip: 192.0.2.1, labels: {rack: r1, row: \"1\"}}\n");
  sources.files["/etc/slurmlet/config.d/20-b.yaml"] =
      file("endpoint: {port: 3}\nnode: {labels: {row: \"3\"}, recreateAfter: never}\n");
  sources.files["/etc/slurmlet/config.d/10-a.yaml"] =
      file("endpoint: {port: 2}\nnode: {labels: {row: \"2\", hall: h1}, recreateAfter: 10m}\n");
  sources.files["/etc/slurmlet/config.d/.hidden.yaml"] = "broken";
  sources.files["/etc/slurmlet/config.d/30-c.yaml.orig"] = "broken";
  sources.files["/etc/slurmlet/config.d/40-d.yml"] = "broken";
  const Settings settings = loaded(sources, {"print-node"});
  EXPECT_EQ(settings.endpoint.port, 3);
  EXPECT_EQ(settings.node.ip, "192.0.2.1");
  EXPECT_EQ(settings.node.recreate_after, std::nullopt);
  EXPECT_EQ(settings.node.labels, (TextMap{{"rack", "r1"}, {"row", "3"}, {"hall", "h1"}}));
  EXPECT_THAT(settings.drop_ins,
              ElementsAre("/etc/slurmlet/config.d/10-a.yaml", "/etc/slurmlet/config.d/20-b.yaml"));
  EXPECT_THAT(settings.warnings,
              ElementsAre(HasSubstr("/etc/slurmlet/config.d/40-d.yml is not read")));
  // Whoever names another file means its drop-ins too.
  sources.files["/srv/x.yaml"] = kHead;
  sources.files["/srv/x.d/a.yaml"] = file("endpoint: {port: 7}\n");
  EXPECT_EQ(loaded(sources, {"print-node", "--config", "/srv/x.yaml"}).endpoint.port, 7);
  sources.files.erase(kFile);  // may be absent
  EXPECT_EQ(loaded(sources, {"print-node"}).endpoint.port, 3);
}

TEST(LoadTest, NullInADropInIsTheDefaultAgain) {
  FakeSources sources;
  const std::string head = kHead;
  sources.files["/etc/slurmlet/config.yaml"] =
      head +
      "stateDir: /srv\nendpoint: {port: 1}\nslurm: {commandTimeout: 5s, pollInterval: 10s}\n"
      "node: {ip: 192.0.2.1, labels: {rack: r1}, recreateAfter: 10m, publishHostname: false}\n";
  const auto with = [&](const std::string& body) {
    sources.files["/etc/slurmlet/config.d/a.yaml"] = head + body;
    return loaded(sources, {"print-node"});
  };
  const Settings reset = with(
      "stateDir: ~\nendpoint: {port: null}\nslurm: {commandTimeout: null}\n"
      "node: {ip: null, labels: ~, recreateAfter: , publishHostname: Null}\n");
  const Settings defaults;
  EXPECT_EQ(reset.state_dir, defaults.state_dir);
  EXPECT_EQ(reset.endpoint.port, defaults.endpoint.port);
  EXPECT_EQ(reset.node.ip, "");
  EXPECT_THAT(reset.node.labels, IsEmpty());
  EXPECT_EQ(reset.node.recreate_after, std::nullopt);
  EXPECT_TRUE(reset.node.publish_hostname);
  // Left alone again, so it follows the poll interval.
  EXPECT_EQ(reset.slurm.command_timeout, std::chrono::milliseconds{7500});
  // A group whose keys are all commented out, and an empty text, say nothing.
  const Settings kept = with("stateDir: ''\nendpoint:\nnode: {ip: \"\", labels: {}}\n");
  EXPECT_EQ(kept.state_dir, "/srv");
  EXPECT_EQ(kept.endpoint.port, 1);
  EXPECT_EQ(kept.node.ip, "192.0.2.1");
  EXPECT_EQ(kept.node.labels, (TextMap{{"rack", "r1"}}));
  // A later one may set it once more.
  sources.files["/etc/slurmlet/config.d/b.yaml"] = head + "node: {labels: {hall: h1}}\n";
  EXPECT_EQ(with("node: {labels: null}\n").node.labels, (TextMap{{"hall", "h1"}}));
}

TEST(LoadTest, AnEmptyTextIsAnErrorWhereItDecidesTrust) {
  const std::pair<const char*, const char*> kKeys[] = {{"kubernetes", "caFile"},
                                                       {"kubernetes", "caData"},
                                                       {"kubernetes", "caCertHashes"},
                                                       {"endpoint", "clientCAFile"}};
  for (const auto& [group, key] : kKeys) {
    const std::string full = fmt::format("{}.{}", group, key);
    FakeSources sources;
    for (const char* value : {"\"\"", "''", ""}) {
      sources.files[kFile] = file(fmt::format("{}:\n  {}: {}\n", group, key, value));
      EXPECT_THAT(sources.error_with({"print-node"}), HasSubstr(full + " is empty"));
    }
    sources.files[kFile] = file(fmt::format("{}: {{{}: null}}\n", group, key));
    EXPECT_EQ(sources.error_with({"print-node"}), "") << "the documented word for its default";
    const std::string flag{find_row(full)->flag};
    EXPECT_THAT(FakeSources{}.error_with({"print-node", flag + "="}),
                HasSubstr(flag + " is empty"));
  }
}

TEST(LoadTest, WhatIsNoFileOrNoDirectoryIsAnError) {
  for (const char* odd : {"c.yaml", "c.d/a.yaml", "c.d"}) {
    fakes::TempTree tree;
    tree.file("c.yaml", kHead).file("c.d/keep.yaml", kHead).remove(odd);
    if (std::string_view{odd} == "c.d") {
      tree.file("c.d", kHead);
    } else {
      ASSERT_EQ(::mkfifo(tree.path(odd).c_str(), 0600), 0);
    }
    ParsedCommandLine command;
    command.subcommand = "print-node";
    command.config_file = tree.path("c.yaml").string();
    const auto settings = load(
        command, [](const std::string&) { return std::nullopt; }, read_whole_file(),
        read_directory());
    ASSERT_FALSE(settings) << odd;
    EXPECT_THAT(settings.error().message, HasSubstr(tree.path(odd).string() + " is not a "));
  }
}

TEST(LoadTest, ProblemsOfADropInNameIt) {
  FakeSources sources;
  EXPECT_EQ(sources.error_with({"print-node"}), "") << "there need not be any";
  sources.files["/etc/slurmlet/config.d/a.yaml"] = file("endpoint: {port: x}\n");
  sources.files["/etc/slurmlet/config.d/b.yaml"] = "node: {}\n";
  sources.unreadable["/etc/slurmlet/config.d/a.yaml.not"] = "";
  EXPECT_THAT(sources.error_with({"print-node"}),
              AllOf(HasSubstr("/etc/slurmlet/config.d/a.yaml:3:18: endpoint.port"),
                    HasSubstr("/etc/slurmlet/config.d/b.yaml:1:1: \"apiVersion: ")));
  for (const char* path : {kFile, "/etc/slurmlet/config.d/a.yaml"}) {
    sources.files = {{path, ""}};
    sources.unreadable = {{path, "open: Permission denied"}};
    EXPECT_THAT(sources.error_with({"print-node"}), HasSubstr("open: Permission denied"));
  }
}

TEST(LoadTest, TheProxyOfTheEnvironmentIsTaken) {
  FakeSources sources;
  sources.environment = {{"https_proxy", "http://low:1"}, {"no_proxy", "low.example"}};
  EXPECT_EQ(loaded(sources, {"print-node"}).kubernetes.https_proxy, "http://low:1");
  sources.environment["HTTPS_PROXY"] = "http://user:secret@up:1";
  sources.environment["NO_PROXY"] = "up.example";
  const Settings settings = loaded(sources, {"print-node"});
  EXPECT_EQ(settings.kubernetes.https_proxy, "http://user:secret@up:1");
  EXPECT_EQ(settings.kubernetes.no_proxy, "up.example");
  EXPECT_THAT(effective_settings_json(settings), ::testing::Not(HasSubstr("secret")));
}

TEST(LoadTest, EveryVariableOfTheTableReachesItsSetting) {
  struct Row {
    const char* name;
    const char* value;
    const char* key;
  };
  const Row kRows[] = {
      {"KUBECONFIG", "/k", "kubernetes.kubeconfig"},
      {"KUBELET_PORT", "10251", "endpoint.port"},
      {"VKUBELET_POD_IP", "192.0.2.7", "node.ip"},
      {"DEFAULT_NODE_NAME", "n7", "node.name"},
      {"SLURM_CONF", "/etc/slurm.conf", "slurm.conf"},
      {"APISERVER_CA_CERT_LOCATION", "/ca", "endpoint.clientCAFile"},
  };
  for (const auto& row : kRows) {
    FakeSources sources;
    sources.environment[row.name] = row.value;
    EXPECT_EQ(value_text(*find_row(row.key), loaded(sources, {"print-node"})), row.value);
    sources.environment[row.name] = "";
    EXPECT_EQ(value_text(*find_row(row.key), loaded(sources, {"print-node"})),
              default_text(*find_row(row.key)))
        << row.name << " empty";
  }
}

TEST(LoadTest, TheServingCertificateOfVirtualKubeletIsCarried) {
  FakeSources sources;
  sources.environment["APISERVER_CERT_LOCATION"] = "/pki/tls.crt";
  EXPECT_THAT(sources.error_with({"print-node"}),
              AllOf(HasSubstr("APISERVER_CERT_LOCATION"), HasSubstr("endpoint.keyFile")));
  sources.environment["APISERVER_KEY_LOCATION"] = "/pki/tls.key";
  const Settings settings = loaded(sources, {"print-node"});
  EXPECT_EQ(settings.endpoint.certificate_file, "/pki/tls.crt");
  EXPECT_EQ(settings.endpoint.key_file, "/pki/tls.key");
  EXPECT_EQ(settings.kubernetes.certificate_file, "");
}

TEST(LoadTest, KubeconfigListTakesTheFirstExistingFile) {
  FakeSources sources;
  sources.environment["KUBECONFIG"] = ":/a:/b:/c";
  EXPECT_EQ(loaded(sources, {"run"}).kubernetes.kubeconfig, "/a");
  sources.files["/c"] = "";
  EXPECT_EQ(loaded(sources, {"run"}).kubernetes.kubeconfig, "/c");
  sources.unreadable["/b"] = "open /b: Permission denied";
  EXPECT_EQ(loaded(sources, {"run"}).kubernetes.kubeconfig, "/b");
}

TEST(LoadTest, InAPodTheServiceAccountIsUsed) {
  FakeSources sources;
  sources.environment["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  sources.environment["KUBERNETES_SERVICE_PORT"] = "443";
  const Settings settings = loaded(sources, {"run"});
  EXPECT_EQ(settings.kubernetes.server, "https://10.96.0.1:443");
  EXPECT_EQ(settings.kubernetes.token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
  EXPECT_EQ(settings.kubernetes.ca_file, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
  sources.environment["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_EQ(loaded(sources, {"run"}).kubernetes.server, "https://[fd00::1]:443");
  for (const char* own : {"--kubeconfig=/k", "--bootstrap-kubeconfig=/b"}) {
    EXPECT_EQ(loaded(sources, {"run", own}).kubernetes.server, "");
    EXPECT_EQ(loaded(sources, {"run", own}).kubernetes.token_file, "");
  }
}

TEST(LoadTest, ABootstrapLeavesItsResultInTheStateDirectory) {
  const Settings token = loaded({}, {"run", "--bootstrap-kubeconfig=/b", "--state-dir=/s"});
  EXPECT_EQ(token.kubernetes.kubeconfig, "/s/kubeconfig");
  EXPECT_EQ(token.kubernetes.cert_dir, "/s/pki");
  const Settings own = loaded({}, {"run", "--bootstrap-kubeconfig=/b", "--kubeconfig=/k",
                                   "--cert-dir=/c", "--rotate-certificates=false"});
  EXPECT_EQ(own.kubernetes.kubeconfig, "/k");
  EXPECT_EQ(own.kubernetes.cert_dir, "/c");
  EXPECT_FALSE(own.kubernetes.rotate_certificates);
  const Settings parts = loaded(
      {}, {"run", "--kubernetes-server=https://a", "--bootstrap-token-file=/t", "--kubeconfig=/k"});
  EXPECT_EQ(parts.kubernetes.kubeconfig, "/k");
  EXPECT_EQ(parts.kubernetes.server, "https://a");
  EXPECT_EQ(loaded({}, {"run", "--kubeconfig=/k"}).kubernetes.kubeconfig, "/k");
}

// Command line => words of the problem, all of them; "-": none.
constexpr const char* kCommandLines = R"(
run => no API server & kubernetes.kubeconfig
print-node => -
run --kubernetes-server=https://a => --kubernetes-server & without a credential
run --kubernetes-server=https://a --kubernetes-token-file=/t => -
run --kubernetes-server=https://a --kubernetes-certificate-file=/c => --kubernetes-certificate-file & kubernetes.keyFile
run --kubernetes-server=https://a --kubeconfig=/k --kubernetes-token-file=/t => --kubeconfig and --kubernetes-server
run --bootstrap-kubeconfig=/b --bootstrap-token-file=/t => --bootstrap-kubeconfig and --bootstrap-token-file
run --bootstrap-kubeconfig=/b --kubernetes-server=https://a => --bootstrap-kubeconfig and --kubernetes-server
run --bootstrap-token-file=/t => --bootstrap-token-file & without kubernetes.server
run --kubernetes-server=https://a --bootstrap-token-file=/t --kubernetes-ca-file=/ca --discovery-token-ca-cert-hash=HASH => --discovery-token-ca-cert-hash and --kubernetes-ca-file
run --kubernetes-server=https://a --bootstrap-token-file=/t --discovery-token-ca-cert-hash=sha256:12 => sha256: and 64 hexadecimal digits
run --kubeconfig=/k --discovery-token-ca-cert-hash=HASH => without kubernetes.bootstrapTokenFile
run --kubernetes-server=https://a --bootstrap-token-file=/t --kubernetes-token-file=/u => --bootstrap-token-file and --kubernetes-token-file
run --kubernetes-server=https://a --bootstrap-token-file=/t --kubernetes-ca-data=/ca => --kubernetes-ca-data & PEM
print-node --node-recreate=never --node-recreate-after=10m => --node-recreate-after & node.recreate is never
print-node --node-recreate-after=never => -
print-node --slurm-command-timeout=60s => --slurm-command-timeout is 1m & slurm.pollInterval & 1m
print-node --slurm-poll-interval=10s --slurm-command-timeout=15s => --slurm-command-timeout is 15s & slurm.pollInterval & 10s
print-node --slurm-stale-after=30s => slurm.pollInterval is 1m & slurm.staleAfter & 30s
print-node --slurm-max-backoff=30s => --slurm-max-backoff is 30s & slurm.pollInterval & 1m
print-node --kubernetes-lease-duration=10500ms => --kubernetes-lease-duration is 10s500ms & whole seconds
print-node --kubernetes-certificate-duration=599s => --kubernetes-certificate-duration is 9m59s & at least 10m, or 0s
print-node --kubernetes-certificate-duration=600500ms => --kubernetes-certificate-duration is 10m500ms & whole seconds
print-node --healthz-port=10250 => --healthz-port is 10250 & endpoint.port
print-node --slurm-source=rest => --slurm-source is "rest" & removed in 0.2 & auto & slurmSource: rest
print-node --slurm-source=cli => --slurm-source is "cli" & removed in 0.2 & scontrol
print-node --slurm-source=feed => --slurm-source is "feed" & removed in 0.2 & slurmlet-operator
print-node --slurm-source=scontol => --slurm-source is "scontol" & auto, operator, scontrol & did you mean "scontrol"?
print-node --cpu-affinity=slurmd => --cpu-affinity was removed in 0.2 & CPUAffinity=
print-node --port=x --node-unschedulable=maybe --node-labels=a --slurm-poll-interval=-1s => --port is "x" & --node-labels has "a" & KEY=VALUE & --node-unschedulable is "maybe" & --slurm-poll-interval is -1s & at least 1s
print-node --node-labels=node-role.kubernetes.io/a=,kubernetes.io/b=,c=1,c=2 => "node-role.kubernetes.io/a" & "kubernetes.io/b" & has "c" twice
print-node --config=/c.yaml => --config /c.yaml & No such file or directory
)";

TEST(LoadTest, SettingsMustFitTogether) {
  for (const auto line : split(kCommandLines, '\n')) {
    const auto arrow = line.find(" => ");
    if (arrow == line.npos) {
      continue;
    }
    std::vector<std::string> arguments;
    for (const auto word : split(line.substr(0, arrow), ' ')) {
      arguments.emplace_back(word);
      if (const auto hash = arguments.back().find("HASH"); hash != std::string::npos) {
        arguments.back().replace(hash, 4, "sha256:" + std::string(64, 'a'));
      }
    }
    const std::string problem = FakeSources{}.error_with(arguments);
    const auto wanted = line.substr(arrow + 4);
    EXPECT_EQ(problem.empty(), wanted == "-") << line << "\n" << problem;
    for (const auto words : split(wanted == "-" ? "" : wanted, '&')) {
      EXPECT_THAT(problem, HasSubstr(std::string{trim(words)})) << line;
    }
  }
}

TEST(LoadTest, WhatIsLeftAloneFollowsThePollInterval) {
  const auto with = [](const char* interval) {
    return loaded({}, {"print-node", std::string{"--slurm-poll-interval="} + interval}).slurm;
  };
  EXPECT_LT(with("2s").command_timeout, std::chrono::seconds{2});
  EXPECT_EQ(with("10m").command_timeout, Settings{}.slurm.command_timeout);
  EXPECT_FALSE(with("10m").stale_after) << "auto";
  EXPECT_FALSE(with("auto").poll_interval);
}

TEST(LoadTest, WarnsOfACertificateThatAnOutageOutlasts) {
  const auto warnings = [](const char* duration) {
    return loaded({}, {"print-node", std::string{"--kubernetes-certificate-duration="} + duration})
        .warnings;
  };
  EXPECT_THAT(warnings("23h"), ElementsAre(HasSubstr("--kubernetes-certificate-duration is 23h")));
  EXPECT_THAT(warnings("24h"), IsEmpty());
  EXPECT_THAT(warnings("0s"), IsEmpty());
}

TEST(LoadTest, ProblemsOfAllSourcesComeTogether) {
  FakeSources sources;
  sources.files["/c.yaml"] = file("slurm:\n  polInterval: 5s\n  conf: x\n");
  sources.environment = {{"KUBELET_PORT", "-1"}, {"VKUBELET_POD_IP", "pod"}};
  const std::string error = sources.error_with({"run", "--config=/c.yaml", "--log-level=loud"});
  EXPECT_EQ(split(error, '\n').size(), 5U) << error;
  EXPECT_THAT(error, Not(HasSubstr("no API server"))) << "another file may name one";
  EXPECT_THAT(error, AllOf(HasSubstr("/c.yaml:4:3: "), HasSubstr("\"slurm.pollInterval\"?"),
                           HasSubstr("environment variable KUBELET_PORT is -1"),
                           HasSubstr("environment variable VKUBELET_POD_IP is \"pod\"")));
}

TEST(LoadTest, VirtualKubeletsLogLevelsAreAcceptedAndWarningsKept) {
  const Settings settings = loaded(FakeSources{}, {"print-node", "--disable-taint", "--klog.v=2"});
  EXPECT_THAT(settings.warnings,
              UnorderedElementsAre(HasSubstr("--disable-taint"), HasSubstr("--klog.v")));
  using enum log::Level;
  for (const auto& [word, level] : std::vector<std::pair<std::string, log::Level>>{
           {"warn", kWarning}, {"trace", kDebug}, {"fatal", kError}, {"info", kInfo}}) {
    EXPECT_EQ(loaded(FakeSources{}, {"print-node", "--log-level", word}).log_level, level);
  }
}

TEST(LoadTest, ChoicesAreReadAndPrintedByTheirWords) {
  const Row& source = *find_row("slurm.source");
  for (const auto& word : choices(source)) {
    EXPECT_EQ(value_text(source, loaded({}, {"print-node", "--slurm-source", word})), word);
  }
  EXPECT_EQ(loaded({}, {"print-node", "--slurm-source="}).slurm.source, node::SlurmSource::kAuto);
}

TEST(LoadTest, WhatWasRemovedSaysWhatReplacedIt) {
  FakeSources sources;
  sources.files["/c.yaml"] = file(
      "slurm:\n  source: feed\n  feed: /srv/feed\n  restURL: unix:/s\n"
      "  questionsPerHour: 8\ncpuAffinity: slurmd\n");
  const std::string error = sources.error_with({"print-node", "--config=/c.yaml"});
  for (const char* words :
       {"/c.yaml:4:11: slurm.source is \"feed\"", "/c.yaml:5:3: slurm.feed was removed in 0.2: run",
        "/c.yaml:6:3: slurm.restURL was removed in 0.2: leave slurm.source",
        "/c.yaml:7:3: slurm.questionsPerHour was removed in 0.2: remove it",
        "/c.yaml:8:1: cpuAffinity was removed in 0.2: set CPUAffinity="}) {
    EXPECT_THAT(error, HasSubstr(words));
  }
}

TEST(LoadTest, EffectiveSettingsListEverySetting) {
  const Settings settings =
      loaded(FakeSources{}, {"print-node", "--node-labels=a=b", "--slurm-poll-interval=90s"});
  const auto json = nlohmann::json::parse(effective_settings_json(settings), nullptr, false);
  ASSERT_TRUE(json.is_object());
  for (const auto& row : settings_table()) {
    std::string path = "/" + std::string(row.key);
    std::replace(path.begin(), path.end(), '.', '/');
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(path))) << row.key;
  }
  EXPECT_EQ(json["slurm"]["pollInterval"], "1m30s");
  EXPECT_EQ(json["node"]["labels"]["a"], "b");
  EXPECT_EQ(json["node"]["readyFollows"], "slurmd");
  EXPECT_EQ(json["endpoint"]["port"], 10250);
  EXPECT_EQ(json["configFile"], "");
}

TEST(LoadTest, FilesAndVariablesOfTheMachineAreRead) {
  EXPECT_EQ(read_whole_file()(fixtures() / "no-such-file").error().code, Code::kNotFound);
  ASSERT_EQ(::setenv("SLURMLET_TEST_VARIABLE", "x", 1), 0);
  EXPECT_EQ(process_environment()("SLURMLET_TEST_VARIABLE"), "x");
  ASSERT_EQ(::unsetenv("SLURMLET_TEST_VARIABLE"), 0);
  EXPECT_EQ(process_environment()("SLURMLET_TEST_VARIABLE"), std::nullopt);
}

}  // namespace
}  // namespace slurmlet::config
