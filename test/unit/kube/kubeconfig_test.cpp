#include "kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fakes/temp_tree.h"
#include "tls/client_identity.h"

namespace slurmlet::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string pem(const std::string& what) {
  return "-----BEGIN " + what + "-----\nAA==\n-----END " + what + "-----\n";
}

// A kubeconfig with these lines in its cluster and user maps.
std::string with(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n" +
         cluster + "contexts:\n- name: c\n  context: {cluster: k, user: u}\nusers:\n- name: u\n" +
         "  user:\n" + user;
}

constexpr const char* kServer = "    server: https://h:6443\n";
constexpr const char* kTokenUser = "    token: t0ken\n";

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() { tree_.file("pki/ca.crt", "CA-PEM").file("pki/node.pem", "CERT-AND-KEY"); }
  Result<ClusterAccess> parse(const std::string& text) const {
    return parse_kubeconfig(text, path("kubelet.conf"));
  }
  std::string path(const char* name) const { return tree_.path(name).string(); }

  fakes::TempTree tree_;
};

TEST_F(KubeconfigTest, ReadsTheKubeletsForm) {
  tree_.file("kubelet.conf", with("    server: https://api.example:6443/\n"
                                  "    certificate-authority: pki/ca.crt\n",
                                  "    client-certificate: pki/node.pem\n"
                                  "    client-key: pki/node.pem\n"));
  const auto access = load_kubeconfig(path("kubelet.conf"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://api.example:6443");
  EXPECT_EQ(access->pem.ca, "CA-PEM");
  EXPECT_EQ(access->pem.certificate, "CERT-AND-KEY");
  EXPECT_EQ(access->pem.key, "CERT-AND-KEY");
  EXPECT_EQ(access->pem.key_name, path("pki/node.pem"));
  EXPECT_EQ(access->token, "");
  EXPECT_THAT(access->files, ElementsAre(path("kubelet.conf"), path("pki/ca.crt"),
                                         path("pki/node.pem"), path("pki/node.pem")));
}

TEST_F(KubeconfigTest, ReadsInlineDataAndPrefersItToFiles) {
  const auto access =
      parse(with("    server: https://h:6443\n"
                 "    certificate-authority: /nowhere\n"
                 "    certificate-authority-data: " +
                     tls::base64_encode(pem("CA")) + "\n",
                 "    client-certificate-data: " + tls::base64_encode(pem("cert")) +
                     "\n"
                     "    client-key-data: " +
                     tls::base64_encode(pem("key")) + "\n"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->pem.ca, pem("CA"));
  EXPECT_EQ(access->pem.certificate, pem("cert"));
  EXPECT_EQ(access->pem.key, pem("key"));
  EXPECT_THAT(access->pem.key_name, HasSubstr("client-key-data"));
  EXPECT_THAT(access->files, ElementsAre(path("kubelet.conf")));
}

TEST_F(KubeconfigTest, ReadsJson) {
  const auto access = parse(R"({"current-context":"c",
      "clusters":[{"name":"k","cluster":{"server":"https://h","proxy-url":"http://p:3128",
                                         "tls-server-name":"kubernetes.default"}}],
      "contexts":[{"name":"other","context":{"cluster":"x","user":"x"}},
                  {"name":"c","context":{"cluster":"k","user":"u","namespace":"ns"}}],
      "users":[{"name":"u","user":{"token":"abc","tokenFile":"run/token"}}]})");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->proxy_url, "http://p:3128");
  EXPECT_EQ(access->tls_server_name, "kubernetes.default");
  EXPECT_EQ(access->token, "abc");
  EXPECT_EQ(access->token_file, path("run/token"));
}

TEST_F(KubeconfigTest, TakesATokenThatLooksLikeANumberAsWritten) {
  const auto access = parse(with(kServer, "    token: 0123456\n"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->token, "0123456");
}

struct Refusal {
  std::string text;
  std::vector<std::string> in_message;
};

// Kubeconfigs with these lines of the user, of the server and beside the server.
std::string user(const std::string& lines) { return with(kServer, lines); }
std::string server(const std::string& value) {
  return with("    server: " + value + "\n", kTokenUser);
}
std::string cluster(const std::string& line) { return server("https://h\n    " + line); }

std::vector<Refusal> refusals() {
  const std::string data = "certificate-authority-data";
  return {
      {"", {"kubelet.conf:1:1", "not a kubeconfig"}},
      {"- a\n", {"kubelet.conf:1:1", "not a kubeconfig"}},
      {"clusters: [\n", {"kubelet.conf:2"}},
      {"clusters: []\n", {"current-context is missing or empty"}},
      {"current-context: ''\n", {":1:1", "current-context"}},
      {"current-context: a\ncontexts: []\n", {":1:1", "\"a\" is not in contexts"}},
      {"current-context: a\ncontexts: b\n", {":2:1", "must be a list"}},
      {"current-context: a\ncontexts:\n- name: a\n", {":3", "needs a map \"context\""}},
      {"current-context: a\ncontexts:\n- name: a\n  context: {cluster: k, user: u}\n",
       {":4:13", "\"k\" is not in clusters"}},
      {with("    extensions: []\n", kTokenUser), {"server is missing"}},
      {server("[a]"), {":7:5", "server must be text"}},
      {server("h:6443"), {":7:5", "https://HOST:PORT"}},
      {server("http://h:6443"), {":7:5", "not encrypted"}},
      {server("http://127.0.0.1.example"), {"not encrypted"}},
      {server("https://:6443"), {"has no host"}},
      {server("https://me:pw@h"), {"user name", "remove it"}},
      {server("https://h:6443\u200b"), {":7:5", "not ASCII", "type it again"}},
      {cluster("insecure-skip-tls-verify: true"), {":8:5", "rejected", "certificate-authority"}},
      {cluster("insecure-skip-tls-verify: 'yes'"), {"insecure-skip-tls-verify"}},
      {cluster("certificate-authority: no.crt"), {":8:5", "certificate-authority", "no.crt"}},
      {cluster("certificate-authority:"), {":8:5", "certificate-authority is empty"}},
      {cluster(data + ": '***'"), {":8:5", data, "not valid base64"}},
      {cluster(data + ": ''"), {":8:5", data + " is empty", "base64 -w0"}},
      {cluster(data + ": null"), {":8:5", data + " is empty"}},
      {cluster(data + ": ''\n    certificate-authority: ''"), {":9:5", "is empty"}},
      {cluster(data + ": " + tls::base64_encode(tls::base64_encode(pem("CA")))),
       {":8:5", data + " is base64 of base64", "base64 -d"}},
      {cluster(data + ": " + tls::base64_encode("0\x82\x03")), {"is not PEM", "base64 -w0"}},
      {cluster(data + ": |\n      -----BEGIN CERTIFICATE-----"), {"is not valid base64"}},
      {std::string("\xFF\xFE"
                   "a\0:\0",
                   6),
       {":1:1", "UTF-16", "iconv"}},
      {user("    client-certificate-data: ''\n    client-key-data: ''\n    token: t\n"),
       {":14:5", "client-certificate-data is empty"}},
      {user("    token: ''\n"), {":14:5", "token of user \"u\" is empty"}},
      {user("    client-certificate: pki/node.pem\n    client-key: pki/node.pem\n"
            "    tokenFile: ''\n"),
       {":16:5", "tokenFile of user \"u\" is empty"}},
      {user("    exec: {command: aws}\n"), {":14:5", "exec", "client-certificate"}},
      {user("    auth-provider: {name: oidc}\n"), {"auth-provider of \"u\""}},
      {user("    username: me\n    password: pw\n"), {"username of \"u\""}},
      {user("    token: t\n    as: root\n"), {":15:5", "as of \"u\""}},
      {user("    client-certificate: pki/node.pem\n"), {"\"u\"", "without its key"}},
      {user("    client-key: pki/node.pem\n"), {"\"u\"", "without its certificate"}},
      {user("    extensions: []\n"), {"user \"u\" has no credential"}},
      {user("    token: \"a\\nInjected: b\"\n"), {"token of user \"u\""}},
  };
}

TEST_F(KubeconfigTest, RejectionsNameFileLineKeyAndFix) {
  for (const Refusal& row : refusals()) {
    SCOPED_TRACE(row.text);
    const auto access = parse(row.text);
    ASSERT_FALSE(access);
    EXPECT_THAT(access.error().message, HasSubstr(path("kubelet.conf") + ":"));
    for (const std::string& words : row.in_message) {
      EXPECT_THAT(access.error().message, HasSubstr(words));
    }
  }
}

TEST_F(KubeconfigTest, AnEmptyKeyBesideOneThatHoldsSomethingChangesNothing) {
  const auto access =
      parse(with("    server: https://h\n    certificate-authority-data: ''\n"
                 "    certificate-authority: pki/ca.crt\n",
                 "    token: ''\n    tokenFile: run/token\n"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->pem.ca, "CA-PEM");
  EXPECT_EQ(access->token_file, path("run/token"));
}

// It is named, so it is not "the system's CAs": who uses it says that it holds no certificate.
TEST_F(KubeconfigTest, AnEmptyFileIsNotTakenForNone) {
  tree_.file("pki/ca.crt", "").file("pki/node.pem", "");
  const auto access = parse(with("    server: https://h\n    certificate-authority: pki/ca.crt\n",
                                 "    client-certificate: pki/node.pem\n"
                                 "    client-key: pki/node.pem\n    token: t\n"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->pem.ca, "");
  EXPECT_EQ(access->pem.certificate, "");
  const auto identity = tls::ClientIdentity::make(access->pem);
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().message, HasSubstr(path("pki/ca.crt") + ": "));
}

TEST_F(KubeconfigTest, AcceptsWhatChangesNothing) {
  for (const std::string& text :
       {cluster("insecure-skip-tls-verify: false"), server("http://127.0.0.1:8001"),
        server("http://[::1]:8001"), "\xEF\xBB\xBF" + user(kTokenUser)}) {
    EXPECT_TRUE(parse(text)) << text;
  }
}

TEST_F(KubeconfigTest, NeverQuotesASecret) {
  for (const std::string user :
       {"    token: \"s3cr et\"\n", "    client-key-data: 's3cr*et'\n    client-certificate: a\n",
        "    password: s3cret\n"}) {
    const auto access = parse(with(kServer, user));
    ASSERT_FALSE(access);
    EXPECT_THAT(access.error().message, Not(HasSubstr("s3cr")));
  }
}

TEST_F(KubeconfigTest, AFileThatIsNotThereIsNotFound) {
  const auto access = load_kubeconfig(path("none.conf"));
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().code, Code::kNotFound);
  EXPECT_THAT(access.error().message, HasSubstr("none.conf"));
}

}  // namespace
}  // namespace slurmlet::kube
