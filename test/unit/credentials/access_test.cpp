#include "credentials/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include "base/command.h"
#include "fakes/fake_clock.h"
#include "fakes/kubeconfig.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::credentials {
namespace {

using namespace std::chrono_literals;
using fakes::kubeconfig;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

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
  // Why it cannot be opened.
  Error error_of_open() {
    const auto access = ApiAccess::open(settings_, clock_);
    EXPECT_FALSE(access);
    return access ? Error{} : access.error();
  }
  void use(const std::string& user, const std::string& cluster = kCluster) {
    tree_.file("kubeconfig", kubeconfig(cluster, user));
  }
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
  EXPECT_THAT(access.files(), UnorderedElementsAre(tree_.path("kubeconfig"), tree_.path("ca.crt"),
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

// Nor is a certificate that slurmlet renews itself a sign of another Machine.
TEST_F(ApiAccessTest, AnotherPairIsAnotherCredentialButNotATokenOrARenewal) {
  settings_.kubernetes.cert_dir = tree_.path("pki").string();
  const auto both = [](const tls::Issued& pair) { return pair.certificate + pair.key; };
  const struct {
    const char* user;
    const char* file;
    std::string before, after;
    bool is_another;
  } kRows[] = {
      {"client-certificate: own.pem, client-key: own.pem", "own.pem", both(node_certificate("n1")),
       both(node_certificate("n1")), true},
      {"client-certificate: pki/slurmlet-client-current.pem, "
       "client-key: pki/slurmlet-client-current.pem",
       "pki/slurmlet-client-current.pem", both(node_certificate("n1")),
       both(node_certificate("n1")), false},
      {"tokenFile: token", "token", "a.b.c", "d.e.f", false},
  };
  for (const auto& row : kRows) {
    use(row.user);
    tree_.file(row.file, row.before);
    ApiAccess access = open();
    const std::string before = access.credential_identity();
    ASSERT_TRUE(access.reload());
    EXPECT_EQ(access.credential_identity(), before);
    tree_.file(row.file, row.after);
    ASSERT_TRUE(access.reload());
    EXPECT_EQ(access.credential_identity() != before, row.is_another) << row.file;
  }
}

TEST_F(ApiAccessTest, TheSameContentKeepsTheConnectionsFromOtherFilesToo) {
  ApiAccess access = open();
  const auto before = access.source()();
  use(kFiles);
  tree_.file("ca.crt", ca().certificate);
  EXPECT_TRUE(access.reload());
  EXPECT_EQ(access.source()(), before);
  tree_.file("moved.crt", ca().certificate);
  use(kFiles, "server: 'https://api:6443', certificate-authority: moved.crt");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()(), before);
  EXPECT_THAT(access.files(), Contains(tree_.path("moved.crt")));
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
  const auto before = access.source()();
  const auto other = tls::make_self_signed({.common_name = "other-ca", .is_ca = true});
  tree_.file("ca.crt", ca().certificate + other.certificate);
  ASSERT_TRUE(access.reload());
  EXPECT_NE(access.source()(), before);
  EXPECT_EQ(access.ca_pem(), ca().certificate + other.certificate);
  use(kFiles, "server: 'https://new:443', tls-server-name: name, proxy-url: 'http://proxy:3128'");
  ASSERT_TRUE(access.reload());
  const auto now = access.source()();
  EXPECT_EQ(now->endpoint.url, "https://new:443");
  EXPECT_EQ(now->endpoint.server_name, "name");
  EXPECT_EQ(now->endpoint.proxy, "http://proxy:3128");
  EXPECT_EQ(access.server(), "https://new:443");
  EXPECT_EQ(access.ca_pem(), "");
  EXPECT_THAT(access.files(), Not(Contains(tree_.path("ca.crt"))));
}

TEST_F(ApiAccessTest, InlineData) {
  const auto inline_user = [](const tls::Issued& pair) {
    return "client-certificate-data: " + tls::base64_encode(pair.certificate) +
           ", client-key-data: " + tls::base64_encode(pair.key);
  };
  const std::string cluster = "server: 'https://api:6443', certificate-authority-data: " +
                              tls::base64_encode(ca().certificate);
  use(inline_user(node_certificate("n1")), cluster);
  ApiAccess access = open();
  EXPECT_THAT(access.files(), ElementsAre(tree_.path("kubeconfig")));
  EXPECT_EQ(access.ca_pem(), ca().certificate);
  const auto before = access.source()();
  use(inline_user(node_certificate("n2")), cluster);
  ASSERT_TRUE(access.reload());
  EXPECT_NE(access.source()(), before);
  EXPECT_EQ(access.node_of_credential(), "n2");
}

TEST_F(ApiAccessTest, ACertificateAndItsKeyInOneFile) {
  const auto both = [](const tls::Issued& pair) { return pair.certificate + pair.key; };
  tree_.file("1.pem", both(node_certificate("n1"))).file("2.pem", both(node_certificate("n2")));
  tree_.symlink("1.pem", "current.pem");
  use("client-certificate: current.pem, client-key: current.pem");
  ApiAccess access = open();
  EXPECT_EQ(access.files().size(), 3U) << "the pair's file once";
  tree_.remove("current.pem").symlink("2.pem", "current.pem");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.node_of_credential(), "n2");
}

TEST_F(ApiAccessTest, ATokenFileIsTakenUpWithoutNewConnections) {
  tree_.file("token", "first\n");
  use("tokenFile: token");
  ApiAccess access = open();
  EXPECT_FALSE(access.client_certificate());
  EXPECT_EQ(access.node_of_credential(), "");
  EXPECT_THAT(access.files(), Contains(tree_.path("token")));
  const auto before = access.source()();
  EXPECT_EQ(before->token(), "first");
  tree_.file("token", "second-token");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()(), before);
  EXPECT_EQ(before->token(), "second-token") << "at once, not at the file's next look";
  use("token: third");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()()->token(), "third");
}

TEST_F(ApiAccessTest, ABrokenTokenFileIsToldAndTheOldTokenStays) {
  tree_.file("token", "first");
  use("tokenFile: token");
  ApiAccess access = open();
  const auto expect_broken = [&](const std::string& reason) {
    const Status reloaded = access.reload();
    ASSERT_FALSE(reloaded);
    EXPECT_THAT(reloaded.error().message, HasSubstr(reason));
    clock_.advance(20s);
    EXPECT_EQ(access.source()()->token(), "first");
  };
  tree_.file("token", "");
  expect_broken(path("token") + " is empty");
  use("tokenFile: other");
  expect_broken(path("other"));
  EXPECT_THAT(error_of_open().message, HasSubstr(path("other")));
  tree_.file("other", "second");
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.source()()->token(), "second");
}

TEST_F(ApiAccessTest, TheEnvironmentForm) {
  tree_.file("token", "t0ken");
  use_files();
  settings_.kubernetes.token_file = path("token");
  ApiAccess access = open();
  EXPECT_THAT(access.files(), UnorderedElementsAre(tree_.path("ca.crt"), tree_.path("tls.crt"),
                                                   tree_.path("tls.key"), tree_.path("token")));
  put(node_certificate("n2"));
  ASSERT_TRUE(access.reload());
  EXPECT_EQ(access.node_of_credential(), "n2");
}

// A start is refused; in a pod these are the files of its service account.
TEST_F(ApiAccessTest, AMissingOrEmptyFileOfTheEnvironmentFormIsNamed) {
  use_files();
  settings_.kubernetes.token_file = path("token");
  for (const char* name : {"ca.crt", "tls.crt", "tls.key", "token"}) {
    tree_.file("ca.crt", ca().certificate).file("token", "t0ken");
    put(node_certificate("n1"));
    tree_.file(name, "");
    EXPECT_EQ(error_of_open().code, Code::kInvalid) << name;
    EXPECT_THAT(error_of_open().message, HasSubstr(path(name)));
    tree_.remove(name);
    EXPECT_EQ(error_of_open().code, Code::kNotFound) << name;
    EXPECT_THAT(error_of_open().message, HasSubstr(path(name)));
  }
}

TEST_F(ApiAccessTest, ACaThatIsConfiguredAsText) {
  use_files();
  settings_.kubernetes.ca_file.clear();
  settings_.kubernetes.ca_data = ca().certificate;
  EXPECT_EQ(open().ca_pem(), ca().certificate);
  settings_.kubernetes.ca_data = "no PEM";
  EXPECT_THAT(error_of_open().message, HasSubstr("kubernetes.caData"));
}

TEST_F(ApiAccessTest, RefusesABrokenReplacementAndKeepsTheOld) {
  const auto fresh = node_certificate("n2");
  const WallTime start{fakes::FakeClock::kStart};
  const auto expired = tls::issue(
      ca(), {.common_name = "system:node:n2", .not_before = start - 48h, .not_after = start - 1h});
  const std::string good = kubeconfig(kCluster, kFiles);
  const auto with_cluster = [](const char* cluster) { return kubeconfig(cluster, kFiles); };
  using Content = std::map<const char*, std::string>;
  const struct {
    Content replaced;
    std::string named, reason;
  } rows[] = {
      {{{"tls.key", node_certificate("n3").key}}, "tls.key", "does not belong"},
      {{{"tls.crt", "garbage"}}, "tls.crt", ""},
      {{{"tls.key", fresh.key.substr(0, 60)}}, "tls.key", ""},
      {{{"tls.crt", ""}}, "tls.crt", "no PEM"},
      {{{"tls.key", ""}}, "tls.key", "no PEM"},
      {{{"ca.crt", ""}}, "ca.crt", "no PEM certificate"},
      {{{"kubeconfig", with_cluster("server: 'https://api:6443', certificate-authority-data: ''")}},
       "kubeconfig",
       "certificate-authority-data is empty"},
      {{{"ca.crt", "garbage"}}, "ca.crt", ""},
      {{{"tls.crt", expired.certificate}, {"tls.key", expired.key}},
       "kubeconfig",
       "expired at 2026-11-20T13:00:00Z"},
      {{{"kubeconfig", good.substr(0, good.size() - 4)}}, "kubeconfig", ""},
      {{{"kubeconfig", ""}}, "kubeconfig", ""},
      {{{"kubeconfig", with_cluster("server: 'https://api:99999'")}}, "https://api:99999", "URL"},
      {{{"kubeconfig",
         with_cluster("server: 'https://api:6443', certificate-authority: none.crt")}},
       "none.crt",
       "No such file"},
  };
  ApiAccess access = open();
  const auto before = access.source()();
  const auto files = access.files();
  for (const auto& row : rows) {
    SCOPED_TRACE(row.named + " " + row.reason);
    put(fresh);
    tree_.file("ca.crt", ca().certificate).file("kubeconfig", good);
    for (const auto& [name, content] : row.replaced) {
      tree_.file(name, content);
    }
    const Status reloaded = access.reload();
    ASSERT_FALSE(reloaded);
    EXPECT_THAT(reloaded.error().message, AllOf(HasSubstr(row.named), HasSubstr(row.reason),
                                                Not(HasSubstr("PRIVATE KEY-----\n"))));
    EXPECT_EQ(access.source()(), before);
    EXPECT_EQ(access.files(), files);
    EXPECT_EQ(access.node_of_credential(), "n1");
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
  EXPECT_THAT(reloaded.error().message,
              AllOf(HasSubstr(path("kubeconfig")), HasSubstr("\"n2\""), HasSubstr("\"n1\"")));
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
