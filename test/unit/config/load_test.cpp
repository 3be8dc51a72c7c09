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
  sources.files["/etc/slurmlet/config.yaml"] =
      std::string(kHead) + "endpoint: {port: 1}\nnode: {ip: 192.0.2.1}\n";
  EXPECT_EQ(loaded(sources, plain).endpoint.port, 1);
  EXPECT_EQ(loaded(sources, plain).config_file, "/etc/slurmlet/config.yaml");
  sources.environment["KUBELET_PORT"] = "2";
  EXPECT_EQ(loaded(sources, plain).endpoint.port, 2);
  EXPECT_EQ(loaded(sources, {"print-node", "--port", "3"}).endpoint.port, 3);
  EXPECT_EQ(loaded(sources, {"print-node", "--port", "3"}).node.ip, "192.0.2.1");
}

TEST(LoadTest, DropInsFollowTheFileInTheOrderOfTheirNames) {
  FakeSources sources;
  const std::string head = kHead;
  sources.files["/etc/slurmlet/config.yaml"] =
      head + "endpoint: {port: 1}\nnode: {ip: 192.0.2.1, labels: {rack: r1, row: \"1\"}}\n";
  sources.files["/etc/slurmlet/config.d/20-b.yaml"] =
      head + "endpoint: {port: 3}\nnode: {labels: {row: \"3\"}, recreateAfter: never}\n";
  sources.files["/etc/slurmlet/config.d/10-a.yaml"] =
      head + "endpoint: {port: 2}\nnode: {labels: {row: \"2\", hall: h1}, recreateAfter: 10m}\n";
  sources.files["/etc/slurmlet/config.d/.hidden.yaml"] = "broken";
  sources.files["/etc/slurmlet/config.d/30-c.yaml.orig"] = "broken";
  const Settings settings = loaded(sources, {"print-node"});
  EXPECT_EQ(settings.endpoint.port, 3);
  EXPECT_EQ(settings.node.ip, "192.0.2.1");
  EXPECT_EQ(settings.node.recreate_after, std::nullopt);
  EXPECT_EQ(settings.node.labels, (TextMap{{"rack", "r1"}, {"row", "3"}, {"hall", "h1"}}));
  EXPECT_THAT(settings.drop_ins,
              ElementsAre("/etc/slurmlet/config.d/10-a.yaml", "/etc/slurmlet/config.d/20-b.yaml"));
  // Whoever names another file means its drop-ins too.
  sources.files["/srv/x.yaml"] = head;
  sources.files["/srv/x.d/a.yaml"] = head + "endpoint: {port: 7}\n";
  EXPECT_EQ(loaded(sources, {"print-node", "--config", "/srv/x.yaml"}).endpoint.port, 7);
  // The file itself may be absent.
  sources.files.erase("/etc/slurmlet/config.yaml");
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

// Unset, each of them would let more be trusted than its author meant.
TEST(LoadTest, AnEmptyTextIsAnErrorWhereItDecidesTrust) {
  const std::pair<const char*, const char*> kKeys[] = {{"kubernetes", "caFile"},
                                                       {"kubernetes", "caData"},
                                                       {"kubernetes", "caCertHashes"},
                                                       {"endpoint", "clientCAFile"}};
  for (const auto& [group, key] : kKeys) {
    for (const char* value : {"\"\"", "''", ""}) {
      FakeSources sources;
      sources.files["/etc/slurmlet/config.yaml"] =
          fmt::format("{}{}:\n  {}: {}\n", kHead, group, key, value);
      EXPECT_THAT(sources.error_with({"print-node"}),
                  HasSubstr(fmt::format("{}.{} is empty; fill it, or remove it", group, key)));
    }
    FakeSources sources;
    sources.files["/etc/slurmlet/config.yaml"] =
        fmt::format("{}{}: {{{}: null}}\n", kHead, group, key);
    EXPECT_EQ(sources.error_with({"print-node"}), "") << "the documented word for its default";
    const std::string flag{find_row(fmt::format("{}.{}", group, key))->flag};
    EXPECT_EQ(FakeSources{}.error_with({"print-node", flag + "="}),
              flag + " is empty; fill it, or remove it");
  }
}

// Files as they are, with what would hang a start or be passed over in silence.
TEST(LoadTest, WhatIsNoFileOrNoDirectoryIsAnError) {
  const auto problem = [](const fakes::TempTree& tree) {
    ParsedCommandLine command;
    command.subcommand = "print-node";
    command.config_file = tree.path("c.yaml").string();
    const auto settings = load(
        command, [](const std::string&) { return std::nullopt; }, read_whole_file(),
        read_directory());
    return settings ? std::string{} : settings.error().message;
  };
  const auto make_fifo = [](const std::filesystem::path& path) {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  };
  fakes::TempTree file;
  make_fifo(file.path("c.yaml"));
  EXPECT_EQ(problem(file),
            fmt::format("--config {0}: {0} is not a regular file", file.path("c.yaml").string()));
  fakes::TempTree drop_in;
  drop_in.file("c.yaml", kHead).file("c.d/keep.yaml", kHead);
  make_fifo(drop_in.path("c.d/a.yaml"));
  EXPECT_EQ(problem(drop_in),
            fmt::format("{0}: {0} is not a regular file", drop_in.path("c.d/a.yaml").string()));
  fakes::TempTree no_directory;
  no_directory.file("c.yaml", kHead).file("c.d", kHead);
  EXPECT_EQ(problem(no_directory),
            fmt::format("{0}: {0} is not a directory", no_directory.path("c.d").string()));
}

TEST(LoadTest, ProblemsOfADropInNameIt) {
  FakeSources sources;
  sources.files["/etc/slurmlet/config.d/a.yaml"] = std::string(kHead) + "endpoint: {port: x}\n";
  sources.files["/etc/slurmlet/config.d/b.yaml"] = "node: {}\n";
  sources.unreadable["/etc/slurmlet/config.d/a.yaml.not"] = "";
  const std::string problems = sources.error_with({"print-node"});
  EXPECT_THAT(problems, HasSubstr("/etc/slurmlet/config.d/a.yaml:3:18: endpoint.port is text"));
  EXPECT_THAT(problems, HasSubstr("/etc/slurmlet/config.d/b.yaml:1:1: \"apiVersion: "));
  sources.files = {{"/etc/slurmlet/config.d/a.yaml", ""}};
  sources.unreadable = {{"/etc/slurmlet/config.d/a.yaml", "open: Permission denied"}};
  EXPECT_EQ(sources.error_with({"print-node"}),
            "/etc/slurmlet/config.d/a.yaml: open: Permission denied");
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

TEST(LoadTest, RecreateAfterMeansNothingWithRecreateNever) {
  FakeSources sources;
  EXPECT_THAT(sources.error_with(
                  {"print-node", "--node-recreate", "never", "--node-recreate-after", "10m"}),
              HasSubstr("--node-recreate-after is set, but node.recreate is never"));
  EXPECT_EQ(loaded(sources, {"print-node", "--node-recreate-after", "never"}).node.recreate_after,
            std::nullopt);
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

TEST(LoadTest, BadVariablesAreNamed) {
  FakeSources sources;
  sources.environment["KUBELET_PORT"] = "http";
  sources.environment["VKUBELET_POD_IP"] = "pod";
  EXPECT_EQ(
      sources.error_with({"print-node"}),
      "environment variable VKUBELET_POD_IP is \"pod\"; it must be one IPv4 or IPv6 address, or "
      "one of each with a comma between\n"
      "environment variable KUBELET_PORT is \"http\"; it must be a whole number");
}

TEST(LoadTest, TheServingCertificateOfVirtualKubeletIsCarried) {
  FakeSources sources;
  sources.environment["APISERVER_CERT_LOCATION"] = "/pki/tls.crt";
  EXPECT_EQ(sources.error_with({"print-node"}),
            "environment variable APISERVER_CERT_LOCATION is set, but endpoint.keyFile is not; set "
            "both or none");
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
  const Settings own = loaded(sources, {"run", "--kubeconfig=/k"});
  EXPECT_EQ(own.kubernetes.server, "");
  EXPECT_EQ(own.kubernetes.token_file, "");
}

TEST(LoadTest, RunNeedsAnApiServerAndACredential) {
  const FakeSources sources;
  EXPECT_THAT(sources.error_with({"run"}),
              HasSubstr("no API server is configured; set --kubeconfig"));
  EXPECT_EQ(sources.error_with({"print-node"}), "");
  EXPECT_THAT(sources.error_with({"run", "--kubernetes-server=https://a"}),
              HasSubstr("--kubernetes-server is set without a credential"));
  EXPECT_EQ(
      sources.error_with({"run", "--kubernetes-server=https://a", "--kubernetes-token-file=/t"}),
      "");
  EXPECT_THAT(sources.error_with(
                  {"run", "--kubernetes-server=https://a", "--kubernetes-certificate-file=/c"}),
              HasSubstr("--kubernetes-certificate-file is set, but kubernetes.keyFile is not"));
  EXPECT_THAT(sources.error_with({"run", "--kubernetes-server=https://a", "--kubeconfig=/k",
                                  "--kubernetes-token-file=/t"}),
              HasSubstr("--kubeconfig and --kubernetes-server are both set"));
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

TEST(LoadTest, InAPodABootstrapKubeconfigWins) {
  FakeSources sources;
  sources.environment["KUBERNETES_SERVICE_HOST"] = "10.96.0.1";
  sources.environment["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_EQ(loaded(sources, {"run", "--bootstrap-kubeconfig=/b"}).kubernetes.server, "");
}

struct BootstrapMistake {
  const char* name;
  std::vector<std::string> arguments;
  const char* problem;
};

class BootstrapMistakeTest : public ::testing::TestWithParam<BootstrapMistake> {};

TEST_P(BootstrapMistakeTest, IsRefused) {
  EXPECT_THAT(FakeSources{}.error_with(GetParam().arguments), HasSubstr(GetParam().problem));
}

const std::string kHash = "sha256:" + std::string(64, 'a');

INSTANTIATE_TEST_SUITE_P(
    LoadTest, BootstrapMistakeTest,
    ::testing::Values(
        BootstrapMistake{"TwoTokens",
                         {"run", "--bootstrap-kubeconfig=/b", "--bootstrap-token-file=/t"},
                         "--bootstrap-kubeconfig and --bootstrap-token-file are both set"},
        BootstrapMistake{"TwoServers",
                         {"run", "--bootstrap-kubeconfig=/b", "--kubernetes-server=https://a"},
                         "--bootstrap-kubeconfig and --kubernetes-server are both set"},
        BootstrapMistake{"NoServer",
                         {"run", "--bootstrap-token-file=/t"},
                         "--bootstrap-token-file is set without kubernetes.server"},
        BootstrapMistake{"HashAndFile",
                         {"run", "--kubernetes-server=https://a", "--bootstrap-token-file=/t",
                          "--kubernetes-ca-file=/ca", "--discovery-token-ca-cert-hash=" + kHash},
                         "--discovery-token-ca-cert-hash and --kubernetes-ca-file are both set"},
        BootstrapMistake{"BadHash",
                         {"run", "--kubernetes-server=https://a", "--bootstrap-token-file=/t",
                          "--discovery-token-ca-cert-hash=sha256:12"},
                         "must be sha256: and 64 hexadecimal digits"},
        BootstrapMistake{"HashWithoutToken",
                         {"run", "--kubeconfig=/k", "--discovery-token-ca-cert-hash=" + kHash},
                         "is set without kubernetes.bootstrapTokenFile"},
        BootstrapMistake{"TwoCredentials",
                         {"run", "--kubernetes-server=https://a", "--bootstrap-token-file=/t",
                          "--kubernetes-token-file=/u"},
                         "--bootstrap-token-file and --kubernetes-token-file are both set"},
        BootstrapMistake{"CaThatIsNone",
                         {"run", "--kubernetes-server=https://a", "--bootstrap-token-file=/t",
                          "--kubernetes-ca-data=/ca"},
                         "--kubernetes-ca-data contains no PEM certificate"}),
    [](const auto& row) { return row.param.name; });

TEST(LoadTest, WhatIsLeftAloneFollowsThePollInterval) {
  const auto quick = FakeSources{}.load_with({"print-node", "--slurm-poll-interval=2s"});
  ASSERT_TRUE(quick.has_value());
  EXPECT_EQ(quick->slurm.command_timeout, std::chrono::milliseconds{1500});
  const auto rare = FakeSources{}.load_with({"print-node", "--slurm-poll-interval=10m"});
  ASSERT_TRUE(rare.has_value());
  EXPECT_EQ(rare->slurm.command_timeout, std::chrono::seconds{15});
  EXPECT_FALSE(rare->slurm.stale_after) << "auto";
  const auto usual = FakeSources{}.load_with({"print-node", "--slurm-poll-interval=auto"});
  ASSERT_TRUE(usual.has_value());
  EXPECT_FALSE(usual->slurm.poll_interval);
}

TEST(LoadTest, WarnsOfACertificateThatAnOutageOutlasts) {
  const auto warnings = [](const char* duration) {
    const auto settings = FakeSources{}.load_with(
        {"print-node", std::string{"--kubernetes-certificate-duration="} + duration});
    return settings ? settings->warnings : std::vector<std::string>{settings.error().message};
  };
  EXPECT_THAT(warnings("23h"),
              ElementsAre(HasSubstr("--kubernetes-certificate-duration is 23h: a node that is off, "
                                    "or without the API server, for longer")));
  EXPECT_THAT(warnings("24h"), IsEmpty());
  EXPECT_THAT(warnings("0s"), IsEmpty());
}

TEST(LoadTest, SettingsMustFitTogether) {
  struct Row {
    std::vector<std::string> flags;
    const char* problem;
  };
  const Row kRows[] = {
      {{"--slurm-command-timeout=60s"},
       "--slurm-command-timeout is 1m; it must be shorter than slurm.pollInterval, which is 1m"},
      {{"--slurm-poll-interval=10s", "--slurm-command-timeout=15s"},
       "--slurm-command-timeout is 15s; it must be shorter than slurm.pollInterval, which is 10s"},
      {{"--slurm-stale-after=30s"},
       "slurm.pollInterval is 1m; it must be shorter than slurm.staleAfter, which is 30s"},
      {{"--slurm-max-backoff=30s"},
       "--slurm-max-backoff is 30s; it must not be shorter than slurm.pollInterval, which is 1m"},
      {{"--kubernetes-lease-duration=10500ms"},
       "--kubernetes-lease-duration is 10s500ms; a lease lasts whole seconds"},
      {{"--kubernetes-certificate-duration=599s"},
       "--kubernetes-certificate-duration is 9m59s; it must be whole seconds and at least 10m, or "
       "0s"},
      {{"--kubernetes-certificate-duration=600500ms"},
       "--kubernetes-certificate-duration is 10m500ms; it must be whole seconds and at least 10m, "
       "or 0s"},
      {{"--healthz-port=10250"},
       "--healthz-port is 10250, the same as endpoint.port; choose another, or 0 for "
       "none"},
      {{"--slurm-source=rest"},
       "--slurm-source is \"rest\", which was removed in 0.2: leave slurm.source at auto; "
       "slurmrestd is now queried by slurmlet-operator (slurmSource: rest)"},
      {{"--slurm-source=cli"},
       "--slurm-source is \"cli\", which was removed in 0.2: set slurm.source to scontrol, or "
       "leave it at auto"},
      {{"--slurm-source=feed"},
       "--slurm-source is \"feed\", which was removed in 0.2: run slurmlet-operator, and set "
       "slurm.source to operator or auto"},
  };
  for (const auto& row : kRows) {
    auto arguments = row.flags;
    arguments.insert(arguments.begin(), "print-node");
    EXPECT_EQ(FakeSources{}.error_with(arguments), row.problem);
  }
}

TEST(LoadTest, BadFlagsAreNamed) {
  EXPECT_EQ(FakeSources{}.error_with({"print-node", "--port=x", "--node-unschedulable=maybe",
                                      "--node-labels=a", "--slurm-poll-interval=-1s"}),
            "--port is \"x\"; it must be a whole number\n"
            "--node-labels has \"a\"; it must be KEY=VALUE,KEY=VALUE\n"
            "--node-unschedulable is \"maybe\"; it must be true or false\n"
            "--slurm-poll-interval is -1s; it must be at least 1s");
  EXPECT_THAT(FakeSources{}.error_with({"print-node", "--node-labels",
                                        "node-role.kubernetes.io/a=,kubernetes.io/b=,c=1,c=2"}),
              AllOf(HasSubstr("\"node-role.kubernetes.io/a\""), HasSubstr("\"kubernetes.io/b\""),
                    HasSubstr("has \"c\" twice")));
}

TEST(LoadTest, TheDefaultFileMayBeAbsentButNotANamedOne) {
  FakeSources sources;
  EXPECT_EQ(sources.error_with({"print-node"}), "");
  EXPECT_EQ(sources.error_with({"print-node", "--config=/c.yaml"}),
            "--config /c.yaml: open /c.yaml: No such file or directory");
  sources.unreadable["/etc/slurmlet/config.yaml"] =
      "open /etc/slurmlet/config.yaml: Permission denied";
  EXPECT_THAT(sources.error_with({"print-node"}), HasSubstr("Permission denied"));
}

TEST(LoadTest, ProblemsOfAllSourcesComeTogether) {
  FakeSources sources;
  sources.files["/c.yaml"] = std::string(kHead) + "slurm:\n  polInterval: 5s\n  conf: x\n";
  sources.environment["KUBELET_PORT"] = "-1";
  const std::string error = sources.error_with({"run", "--config=/c.yaml", "--log-level=loud"});
  EXPECT_EQ(split(error, '\n').size(), 4U) << error;
  EXPECT_THAT(error, Not(HasSubstr("no API server"))) << "another file may name one";
  EXPECT_THAT(error, HasSubstr("/c.yaml:4:3: unknown key \"slurm.polInterval\"; did you mean "
                               "\"slurm.pollInterval\"?"));
}

TEST(LoadTest, WarningsOfTheCommandLineAreKept) {
  const Settings settings = loaded(FakeSources{}, {"print-node", "--disable-taint", "--klog.v=2"});
  EXPECT_THAT(settings.warnings, UnorderedElementsAre(HasSubstr("--disable-taint has no effect"),
                                                      HasSubstr("--klog.v has no effect")));
}

TEST(LoadTest, VirtualKubeletsLogLevelsAreAccepted) {
  using enum log::Level;
  for (const auto& [word, level] : std::vector<std::pair<std::string, log::Level>>{
           {"warn", kWarning}, {"trace", kDebug}, {"fatal", kError}, {"info", kInfo}}) {
    EXPECT_EQ(loaded(FakeSources{}, {"print-node", "--log-level", word}).log_level, level);
  }
}

TEST(LoadTest, ChoicesAreReadAndPrintedByTheirWords) {
  const Row& source = *find_row("slurm.source");
  for (const auto& word : choices(source)) {
    FakeSources sources;
    const Settings settings = loaded(sources, {"print-node", "--slurm-source", word});
    EXPECT_EQ(value_text(source, settings), word);
  }
  EXPECT_EQ(loaded(FakeSources{}, {"print-node", "--slurm-source="}).slurm.source,
            node::SlurmSource::kAuto);
  EXPECT_THAT(
      FakeSources{}.error_with({"print-node", "--slurm-source", "scontol"}),
      HasSubstr("--slurm-source is \"scontol\"; it must be one of auto, operator, scontrol; did "
                "you mean \"scontrol\"?"));
}

TEST(LoadTest, WhatWasRemovedSaysWhatReplacedIt) {
  FakeSources sources;
  sources.files["/c.yaml"] = std::string(kHead) +
                             "slurm:\n  source: feed\n  feed: /srv/feed\n  restURL: unix:/s\n"
                             "  questionsPerHour: 8\ncpuAffinity: slurmd\n";
  const std::string error = sources.error_with({"print-node", "--config=/c.yaml"});
  EXPECT_THAT(error, HasSubstr("/c.yaml:4:11: slurm.source is \"feed\", which was removed in 0.2: "
                               "run slurmlet-operator"));
  EXPECT_THAT(error,
              HasSubstr("/c.yaml:5:3: slurm.feed was removed in 0.2: run slurmlet-operator"));
  EXPECT_THAT(error,
              HasSubstr("/c.yaml:6:3: slurm.restURL was removed in 0.2: leave slurm.source"));
  EXPECT_THAT(error,
              HasSubstr("/c.yaml:7:3: slurm.questionsPerHour was removed in 0.2: remove it"));
  EXPECT_THAT(error, HasSubstr("/c.yaml:8:1: cpuAffinity was removed in 0.2: set CPUAffinity="));
  EXPECT_THAT(sources.error_with({"print-node", "--cpu-affinity", "slurmd"}),
              HasSubstr("--cpu-affinity was removed in 0.2: set CPUAffinity="));
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

TEST(LoadTest, HelpLoadsNothing) {
  FakeSources sources;
  sources.environment["KUBELET_PORT"] = "x";
  EXPECT_EQ(sources.error_with({"--help"}), "");
}

TEST(LoadTest, TheProcessEnvironmentIsRead) {
  ASSERT_EQ(::setenv("SLURMLET_TEST_VARIABLE", "x", 1), 0);
  EXPECT_EQ(process_environment()("SLURMLET_TEST_VARIABLE"), "x");
  ASSERT_EQ(::unsetenv("SLURMLET_TEST_VARIABLE"), 0);
  EXPECT_EQ(process_environment()("SLURMLET_TEST_VARIABLE"), std::nullopt);
}

TEST(LoadTest, WholeFilesAreReadFromDisk) {
  const auto content = read_whole_file()(fixtures() / "no-such-file");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace slurmlet::config
