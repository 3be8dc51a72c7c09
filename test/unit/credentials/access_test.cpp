#include "credentials/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "base/command.h"
#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::credentials {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const tls::Issued& ca() {
  static const tls::Issued instance =
      tls::make_self_signed({.common_name = "test-ca", .is_ca = true});
  return instance;
}

tls::Issued node_certificate(const std::string& node) {
  const WallTime start{fakes::FakeClock::kStart};
  return tls::issue(ca(), {.common_name = "system:node:" + node,
                           .organizations = {"system:nodes"},
                           .not_before = start - 24h,
                           .not_after = start + 24h});
}

// A kubeconfig whose cluster and user hold what is given, one YAML flow map each.
std::string kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
         "clusters: [{name: k, cluster: {" +
         cluster +
         "}}]\n"
         "users: [{name: u, user: {" +
         user + "}}]\n";
}

constexpr uid_t kSomebody = 54321;
constexpr const char* kCluster = "server: 'https://api:6443', certificate-authority: ca.crt";
constexpr const char* kFiles = "client-certificate: tls.crt, client-key: tls.key";

class ApiAccessTest : public ::testing::Test {
 protected:
  ApiAccessTest() {
    tree_.file("ca.crt", ca().certificate);
    put(node_certificate("n1"));
    tree_.file("kubeconfig", kubeconfig(kCluster, kFiles));
    settings_.kubernetes.kubeconfig = tree_.path("kubeconfig").string();
  }
  void put(const tls::Issued& pair) {
    tree_.file("tls.crt", pair.certificate).file("tls.key", pair.key);
  }
  // Single files instead of a kubeconfig.
  void use_files() {
    auto& parts = settings_.kubernetes;
    parts.kubeconfig = "";
    parts.server = "https://api:6443";
    parts.ca_file = path("ca.crt");
    parts.certificate_file = path("tls.crt");
    parts.key_file = path("tls.key");
  }
  ApiAccess open() {
    auto access = ApiAccess::open(settings_, clock_);
    EXPECT_TRUE(access) << access.error().message;
    return std::move(*access);
  }
  std::string path(const char* name) const { return tree_.path(name).string(); }
  // What a command that we start makes of a file, were we not root.
  std::string read_by_a_child(const char* name) const {
    ::chmod(tree_.root().c_str(), 0755);
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const bool somebody =
          ::geteuid() != 0 || (::setgid(kSomebody) == 0 && ::setuid(kSomebody) == 0);
      CommandSpec spec;
      spec.argv = {"cat", path(name)};
      const auto result = run_command(spec);
      const std::string text = somebody && result ? result->out + result->err : "not run";
      ::_exit(::write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
    }
    ::close(ends[1]);
    char text[4096];
    const ssize_t size = ::read(ends[0], text, sizeof text);
    ::close(ends[0]);
    ::waitpid(pid, nullptr, 0);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  config::Settings settings_;
};

TEST_F(ApiAccessTest, OpensWhatTheKubeconfigNames) {
  const ApiAccess access = open();
  EXPECT_EQ(access.server(), "https://api:6443");
  EXPECT_EQ(access.node_of_credential(), "n1");
  EXPECT_EQ(access.credential_warning(), "");
  EXPECT_EQ(access.ca_pem(), ca().certificate);
  ASSERT_TRUE(access.client_certificate());
  EXPECT_EQ(access.client_certificate()->common_name, "system:node:n1");
  EXPECT_THAT(access.files(), ElementsAre(tree_.path("kubeconfig"), tree_.path("ca.crt"),
                                          tree_.path("tls.crt"), tree_.path("tls.key")));
  const auto credentials = access.source()();
  EXPECT_EQ(credentials->endpoint.url, "https://api:6443");
  EXPECT_THAT(credentials->endpoint.user_agent, HasSubstr("slurmlet/"));
  EXPECT_EQ(credentials->token(), "");
  EXPECT_TRUE(access.connect());
}

// What the kubeconfig names is as secret as what the settings name; also after a replacement.
TEST_F(ApiAccessTest, TheKeysFileIsHiddenFromChildren) {
  if (::syscall(444, nullptr, 0, 1U) <= 0) {
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  ApiAccess access = open();
  EXPECT_THAT(read_by_a_child("tls.key"), HasSubstr("denied"));
  EXPECT_THAT(read_by_a_child("ca.crt"), HasSubstr("BEGIN CERTIFICATE"));
  tree_.file("token", "secret\n").file("kubeconfig", kubeconfig(kCluster, "tokenFile: token"));
  EXPECT_THAT(read_by_a_child("token"), HasSubstr("secret"));
  ASSERT_TRUE(access.reload());
  EXPECT_THAT(read_by_a_child("token"), HasSubstr("denied"));
}

TEST_F(ApiAccessTest, TheProxyOfTheEnvironmentIsUsedWhereTheKubeconfigNamesNone) {
  settings_.kubernetes.https_proxy = "http://proxy:3128";
  EXPECT_EQ(open().source()()->endpoint.proxy, "http://proxy:3128");
  EXPECT_EQ(open().cluster().proxy_url, "");  // no kubeconfig that we write keeps it
  settings_.kubernetes.no_proxy = "api";
  EXPECT_EQ(open().source()()->endpoint.proxy, "");
  settings_.kubernetes.no_proxy.clear();
  tree_.file("kubeconfig",
             kubeconfig(std::string{kCluster} + ", proxy-url: 'http://other:1'", kFiles));
  EXPECT_EQ(open().source()()->endpoint.proxy, "http://other:1");
  EXPECT_EQ(open().cluster().proxy_url, "http://other:1");
}

TEST_F(ApiAccessTest, AnotherPairIsAnotherCredentialButNotAnotherToken) {
  ApiAccess access = open();
  const std::string before = access.credential_identity();
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.credential_identity(), before);
  put(node_certificate("n1"));
  ASSERT_TRUE(access.reload());
  EXPECT_NE(access.credential_identity(), before);

  tree_.file("token", "a.b.c").file("kubeconfig", kubeconfig(kCluster, "tokenFile: token"));
  ApiAccess by_token = open();
  const std::string with_token = by_token.credential_identity();
  tree_.file("token", "d.e.f");
  ASSERT_TRUE(by_token.reload());
  EXPECT_EQ(by_token.credential_identity(), with_token);
}

// A certificate that slurmlet renews itself is no sign of another Machine.
TEST_F(ApiAccessTest, ARenewalOfOurOwnIsTheSameCredential) {
  settings_.kubernetes.cert_dir = tree_.path("pki").string();
  const auto write = [this](const tls::Issued& pair) {
    tree_.file("pki/slurmlet-client-current.pem", pair.certificate + pair.key);
  };
  write(node_certificate("n1"));
  tree_.file("kubeconfig", kubeconfig(kCluster,
                                      "client-certificate: pki/slurmlet-client-current.pem, "
                                      "client-key: pki/slurmlet-client-current.pem"));
  ApiAccess access = open();
  const std::string before = access.credential_identity();
  write(node_certificate("n1"));
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.credential_identity(), before);
}

TEST_F(ApiAccessTest, TheSameContentPublishesNothing) {
  ApiAccess access = open();
  const auto source = access.source();
  const auto before = source();
  tree_.file("kubeconfig", kubeconfig(kCluster, kFiles)).file("ca.crt", ca().certificate);
  EXPECT_TRUE(access.reload());
  EXPECT_EQ(source(), before);
}

TEST_F(ApiAccessTest, TakesUpANewPair) {
  ApiAccess access = open();
  const auto source = access.source();
  const auto before = source();
  put(node_certificate("n2"));
  EXPECT_EQ(source(), before);  // until told
  ASSERT_TRUE(access.reload());
  EXPECT_NE(source(), before);
  EXPECT_EQ(source()->identity->certificate()->common_name, "system:node:n2");
  EXPECT_EQ(access.node_of_credential(), "n2");
  EXPECT_EQ(before->identity->certificate()->common_name, "system:node:n1");
}

TEST_F(ApiAccessTest, TakesUpANewCaServerAndProxy) {
  ApiAccess access = open();
  auto before = access.source()();
  const auto other = tls::make_self_signed({.common_name = "other-ca", .is_ca = true});
  tree_.file("ca.crt", ca().certificate + other.certificate);
  ASSERT_TRUE(access.reload());
  EXPECT_NE(access.source()(), before);
  EXPECT_EQ(access.ca_pem(), ca().certificate + other.certificate);
  before = access.source()();
  tree_.file("kubeconfig",
             kubeconfig("server: 'https://new:443', tls-server-name: name, proxy-url: "
                        "'http://proxy:3128'",
                        kFiles));
  ASSERT_TRUE(access.reload());
  const auto now = access.source()();
  EXPECT_EQ(now->endpoint.url, "https://new:443");
  EXPECT_EQ(now->endpoint.server_name, "name");
  EXPECT_EQ(now->endpoint.proxy, "http://proxy:3128");
  EXPECT_EQ(access.server(), "https://new:443");
  EXPECT_EQ(access.ca_pem(), "");
  EXPECT_THAT(access.files(),
              ElementsAre(tree_.path("kubeconfig"), tree_.path("tls.crt"), tree_.path("tls.key")));
}

TEST_F(ApiAccessTest, TheSameCredentialFromOtherFilesKeepsTheConnections) {
  ApiAccess access = open();
  const auto before = access.source()();
  fs::copy_file(tree_.path("ca.crt"), tree_.path("moved.crt"));
  tree_.file("kubeconfig",
             kubeconfig("server: 'https://api:6443', certificate-authority: moved.crt", kFiles));
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()(), before);
  EXPECT_EQ(access.files().at(1), tree_.path("moved.crt"));
}

TEST_F(ApiAccessTest, InlineData) {
  const auto inline_user = [](const tls::Issued& pair) {
    return "client-certificate-data: " + tls::base64_encode(pair.certificate) +
           ", client-key-data: " + tls::base64_encode(pair.key);
  };
  const std::string cluster = "server: 'https://api:6443', certificate-authority-data: " +
                              tls::base64_encode(ca().certificate);
  tree_.file("kubeconfig", kubeconfig(cluster, inline_user(node_certificate("n1"))));
  ApiAccess access = open();
  EXPECT_THAT(access.files(), ElementsAre(tree_.path("kubeconfig")));
  EXPECT_EQ(access.ca_pem(), ca().certificate);
  const auto before = access.source()();
  tree_.file("kubeconfig", kubeconfig(cluster, inline_user(node_certificate("n2"))));
  ASSERT_TRUE(access.reload());
  EXPECT_NE(access.source()(), before);
  EXPECT_EQ(access.node_of_credential(), "n2");
}

// What the bootstrap writes: certificate and key in one file, reached through a link.
TEST_F(ApiAccessTest, ACertificateAndItsKeyInOneFile) {
  const auto both = [](const tls::Issued& pair) { return pair.certificate + pair.key; };
  tree_.file("1.pem", both(node_certificate("n1"))).file("2.pem", both(node_certificate("n2")));
  tree_.symlink("1.pem", "current.pem");
  tree_.file("kubeconfig",
             kubeconfig(kCluster, "client-certificate: current.pem, client-key: current.pem"));
  ApiAccess access = open();
  EXPECT_THAT(access.files(), ElementsAre(tree_.path("kubeconfig"), tree_.path("ca.crt"),
                                          tree_.path("current.pem")));
  tree_.remove("current.pem").symlink("2.pem", "current.pem");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.node_of_credential(), "n2");
}

TEST_F(ApiAccessTest, ATokenInTheKubeconfig) {
  tree_.file("kubeconfig", kubeconfig(kCluster, "token: first"));
  ApiAccess access = open();
  EXPECT_EQ(access.source()()->token(), "first");
  EXPECT_FALSE(access.client_certificate());
  EXPECT_EQ(access.node_of_credential(), "");
  tree_.file("kubeconfig", kubeconfig(kCluster, "token: second"));
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()()->token(), "second");
}

TEST_F(ApiAccessTest, ATokenFileIsTakenUpWithoutNewConnections) {
  tree_.file("token", "first\n").file("kubeconfig", kubeconfig(kCluster, "tokenFile: token"));
  ApiAccess access = open();
  EXPECT_THAT(access.files(),
              ElementsAre(tree_.path("kubeconfig"), tree_.path("ca.crt"), tree_.path("token")));
  const auto before = access.source()();
  EXPECT_EQ(before->token(), "first");
  tree_.file("token", "second-token");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()(), before);
  EXPECT_EQ(before->token(), "second-token") << "at once, not at the file's next look";
}

TEST_F(ApiAccessTest, ABrokenTokenFileIsToldAndTheOldTokenStays) {
  tree_.file("token", "first").file("kubeconfig", kubeconfig(kCluster, "tokenFile: token"));
  ApiAccess access = open();
  EXPECT_EQ(access.source()()->token(), "first");
  tree_.file("token", "");
  const Status reloaded = access.reload();
  ASSERT_FALSE(reloaded);
  EXPECT_THAT(reloaded.error().message, HasSubstr(path("token") + " is empty"));
  clock_.advance(20s);
  EXPECT_EQ(access.source()()->token(), "first");
}

TEST_F(ApiAccessTest, AnotherTokenFile) {
  tree_.file("token", "first").file("kubeconfig", kubeconfig(kCluster, "tokenFile: token"));
  ApiAccess access = open();
  tree_.file("kubeconfig", kubeconfig(kCluster, "tokenFile: other"));
  const Status missing = access.reload();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr(path("other")));
  EXPECT_EQ(access.source()()->token(), "first");
  tree_.file("other", "second");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()()->token(), "second");
}

TEST_F(ApiAccessTest, TheEnvironmentForm) {
  tree_.file("token", "t0ken");
  use_files();
  settings_.kubernetes.token_file = path("token");
  ApiAccess access = open();
  EXPECT_THAT(access.files(), ElementsAre(tree_.path("ca.crt"), tree_.path("tls.crt"),
                                          tree_.path("tls.key"), tree_.path("token")));
  put(node_certificate("n2"));
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.node_of_credential(), "n2");
}

TEST_F(ApiAccessTest, AMissingFileOfTheEnvironmentFormIsNamed) {
  const struct {
    std::string config::KubernetesSettings::*file;
    const char* words;
  } rows[] = {{&config::KubernetesSettings::ca_file, "CA certificate: open"},
              {&config::KubernetesSettings::certificate_file, "client certificate: open"},
              {&config::KubernetesSettings::key_file, "client key: open"}};
  for (const auto& row : rows) {
    use_files();
    settings_.kubernetes.*row.file = path("missing");
    const auto access = ApiAccess::open(settings_, clock_);
    ASSERT_FALSE(access);
    EXPECT_EQ(access.error().code, Code::kNotFound);
    EXPECT_THAT(access.error().message, HasSubstr(row.words));
    EXPECT_THAT(access.error().message, HasSubstr(path("missing")));
  }
}

// A start is refused; in a pod these are the files of its service account.
TEST_F(ApiAccessTest, AnEmptyFileOfTheEnvironmentFormIsNamed) {
  use_files();
  settings_.kubernetes.token_file = path("token");
  for (const char* name : {"ca.crt", "tls.crt", "tls.key", "token"}) {
    tree_.file("ca.crt", ca().certificate).file("token", "t0ken");
    put(node_certificate("n1"));
    tree_.file(name, "");
    const auto access = ApiAccess::open(settings_, clock_);
    ASSERT_FALSE(access) << name;
    EXPECT_EQ(access.error().code, Code::kInvalid) << name;
    EXPECT_THAT(access.error().message, HasSubstr(path(name)));
  }
}

TEST_F(ApiAccessTest, AMissingTokenFileIsNamed) {
  tree_.file("kubeconfig", kubeconfig(kCluster, "tokenFile: token"));
  const auto access = ApiAccess::open(settings_, clock_);
  ASSERT_FALSE(access);
  EXPECT_THAT(access.error().message, HasSubstr(path("token")));
}

TEST_F(ApiAccessTest, ACaThatIsConfiguredAsText) {
  auto& parts = settings_.kubernetes;
  parts.kubeconfig = "";
  parts.server = "https://api:6443";
  parts.ca_data = ca().certificate;
  parts.certificate_file = path("tls.crt");
  parts.key_file = path("tls.key");
  EXPECT_EQ(open().ca_pem(), ca().certificate);
  parts.ca_data = "no PEM";
  const auto access = ApiAccess::open(settings_, clock_);
  ASSERT_FALSE(access);
  EXPECT_THAT(access.error().message, HasSubstr("kubernetes.caData"));
}

// Each row breaks one thing; the old credentials stay, and mending it is enough.
TEST_F(ApiAccessTest, RefusesABrokenReplacementAndKeepsTheOld) {
  const auto fresh = node_certificate("n2");
  const WallTime start{fakes::FakeClock::kStart};
  const auto expired = tls::issue(
      ca(), {.common_name = "system:node:n2", .not_before = start - 48h, .not_after = start - 1h});
  const std::string good = kubeconfig(kCluster, kFiles);
  struct Row {
    std::string name, crt, key, ca, config;
    std::string named, reason;
  };
  const Row rows[] = {
      {"half a pair", fresh.certificate, node_certificate("n3").key, ca().certificate, good,
       "tls.key", "does not belong"},
      {"no PEM", "garbage", fresh.key, ca().certificate, good, "tls.crt", ""},
      {"cut key", fresh.certificate, fresh.key.substr(0, 60), ca().certificate, good, "tls.key",
       ""},
      {"empty certificate", "", fresh.key, ca().certificate, good, "tls.crt", "no PEM"},
      {"empty key", fresh.certificate, "", ca().certificate, good, "tls.key", "no PEM"},
      {"empty CA", fresh.certificate, fresh.key, "", good, "ca.crt", "no PEM certificate"},
      {"empty CA data", fresh.certificate, fresh.key, ca().certificate,
       kubeconfig("server: 'https://api:6443', certificate-authority-data: ''", kFiles),
       "kubeconfig", "certificate-authority-data is empty"},
      {"no CA", fresh.certificate, fresh.key, "garbage", good, "ca.crt", ""},
      {"expired", expired.certificate, expired.key, ca().certificate, good, "kubeconfig",
       "expired at 2026-11-20T13:00:00Z"},
      {"cut YAML", fresh.certificate, fresh.key, ca().certificate, good.substr(0, good.size() - 4),
       "kubeconfig", ""},
      {"empty kubeconfig", fresh.certificate, fresh.key, ca().certificate, "", "kubeconfig", ""},
      {"bad port", fresh.certificate, fresh.key, ca().certificate,
       kubeconfig("server: 'https://api:99999'", kFiles), "https://api:99999", "is not a URL"},
      {"missing file", fresh.certificate, fresh.key, ca().certificate,
       kubeconfig("server: 'https://api:6443', certificate-authority: none.crt", kFiles),
       "none.crt", "No such file"},
  };
  ApiAccess access = open();
  const auto before = access.source()();
  const auto files = access.files();
  for (const Row& row : rows) {
    tree_.file("tls.crt", row.crt).file("tls.key", row.key).file("ca.crt", row.ca);
    tree_.file("kubeconfig", row.config);
    const Status reloaded = access.reload();
    ASSERT_FALSE(reloaded) << row.name;
    EXPECT_THAT(reloaded.error().message, HasSubstr(row.named)) << row.name;
    EXPECT_THAT(reloaded.error().message, HasSubstr(row.reason)) << row.name;
    EXPECT_THAT(reloaded.error().message, Not(HasSubstr("PRIVATE KEY-----\n"))) << row.name;
    EXPECT_EQ(access.source()(), before) << row.name;
    EXPECT_EQ(access.files(), files) << row.name;
    EXPECT_EQ(access.node_of_credential(), "n1") << row.name;
  }
  put(fresh);
  tree_.file("kubeconfig", good);
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.node_of_credential(), "n2");
}

TEST_F(ApiAccessTest, RefusesAnotherNodesCertificateInAReplacement) {
  ApiAccess access = open();
  const auto before = access.source()();
  put(node_certificate("n2"));
  const Status reloaded = access.reload("n1");
  ASSERT_FALSE(reloaded);
  EXPECT_THAT(reloaded.error().message, HasSubstr(path("kubeconfig")));
  EXPECT_THAT(reloaded.error().message, HasSubstr("for node \"n2\", this node is \"n1\""));
  EXPECT_EQ(access.source()(), before);
  const WallTime start{fakes::FakeClock::kStart};
  for (const std::string& user : {std::string{"system:node:n1"}, std::string{"admin"}}) {
    put(tls::issue(ca(),
                   {.common_name = user, .not_before = start - 24h, .not_after = start + 24h}));
    EXPECT_TRUE(access.reload("n1")) << user;
    EXPECT_EQ(access.client_certificate()->common_name, user);
  }
}

// With a clock that is wrong everything looks expired: then the server is the judge.
TEST_F(ApiAccessTest, AnExpiredReplacementOfAnExpiredOneIsTakenUp) {
  ApiAccess access = open();
  clock_.advance(48h);
  put(node_certificate("n2"));
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.node_of_credential(), "n2");
}

TEST_F(ApiAccessTest, TheSourceMayBeUsedByAnotherThreadDuringAReload) {
  const auto one = node_certificate("n1");
  const auto two = node_certificate("n2");
  auto access = std::make_unique<ApiAccess>(open());
  const auto source = access->source();
  std::atomic<bool> done = false;
  std::atomic<int> odd = 0;
  std::thread user{[&] {
    while (!done) {
      const auto name = source()->identity->certificate()->common_name;
      odd += name != "system:node:n1" && name != "system:node:n2" ? 1 : 0;
      std::this_thread::yield();
    }
  }};
  for (int i = 0; i < 20; ++i) {
    put(i % 2 == 0 ? two : one);
    EXPECT_TRUE(access->reload());
  }
  access.reset();
  EXPECT_EQ(source()->identity->certificate()->common_name, "system:node:n1");
  done = true;
  user.join();
  EXPECT_EQ(odd, 0);
}

}  // namespace
}  // namespace slurmlet::credentials
