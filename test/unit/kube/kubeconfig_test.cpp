#include "kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tls/client_identity.h"

namespace slurmlet::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class KubeconfigTest : public ::testing::Test {
 protected:
  KubeconfigTest() {
    std::string name = (fs::temp_directory_path() / "kubeconfig-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directory(folder_ / "pki");
    write("pki/ca.crt", "CA-PEM");
    write("pki/node.pem", "CERT-AND-KEY");
  }
  ~KubeconfigTest() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
  }
  Result<ClusterAccess> parse(const std::string& text) const {
    return parse_kubeconfig(text, folder_ / "kubelet.conf");
  }

  static std::string pem(const std::string& what) {
    return "-----BEGIN " + what + "-----\nAA==\n-----END " + what + "-----\n";
  }
  // A kubeconfig with these lines in its cluster and user maps.
  static std::string with(const std::string& cluster, const std::string& user) {
    return "apiVersion: v1\n"
           "kind: Config\n"
           "current-context: c\n"
           "clusters:\n"
           "- name: k\n"
           "  cluster:\n" +
           cluster +
           "contexts:\n"
           "- name: c\n"
           "  context: {cluster: k, user: u}\n"
           "users:\n"
           "- name: u\n"
           "  user:\n" +
           user;
  }

  fs::path folder_;
};

constexpr const char* kServer = "    server: https://h:6443\n";
constexpr const char* kTokenUser = "    token: t0ken\n";

TEST_F(KubeconfigTest, ReadsTheKubeletsForm) {
  write("kubelet.conf", with("    server: https://api.example:6443/\n"
                             "    certificate-authority: pki/ca.crt\n",
                             "    client-certificate: pki/node.pem\n"
                             "    client-key: pki/node.pem\n"));
  const auto access = load_kubeconfig(folder_ / "kubelet.conf");
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://api.example:6443");
  EXPECT_EQ(access->pem.ca, "CA-PEM");
  EXPECT_EQ(access->pem.certificate, "CERT-AND-KEY");
  EXPECT_EQ(access->pem.key, "CERT-AND-KEY");
  EXPECT_EQ(access->pem.key_name, (folder_ / "pki/node.pem").string());
  EXPECT_EQ(access->token, "");
  EXPECT_THAT(access->files, ElementsAre(folder_ / "kubelet.conf", folder_ / "pki/ca.crt",
                                         folder_ / "pki/node.pem", folder_ / "pki/node.pem"));
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
  EXPECT_THAT(access->pem.key_name, HasSubstr("kubelet.conf:17:5: client-key-data"));
  EXPECT_THAT(access->files, ElementsAre(folder_ / "kubelet.conf"));
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
  EXPECT_EQ(access->token_file, (folder_ / "run/token").string());
}

TEST_F(KubeconfigTest, TakesATokenThatLooksLikeANumberAsWritten) {
  const auto access = parse(with(kServer, "    token: 0123456\n"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->token, "0123456");
}

TEST_F(KubeconfigTest, AllowsInsecureSkipTlsVerifyFalse) {
  EXPECT_TRUE(
      parse(with("    server: https://h\n    insecure-skip-tls-verify: false\n", kTokenUser)));
}

TEST_F(KubeconfigTest, PlainHttpOnlyToThisMachine) {
  EXPECT_TRUE(parse(with("    server: http://127.0.0.1:8001\n", kTokenUser)));
  EXPECT_TRUE(parse(with("    server: http://[::1]:8001\n", kTokenUser)));
}

struct Refusal {
  const char* name;
  std::string text;
  std::vector<std::string> in_message;
};

class KubeconfigRefusalTest : public KubeconfigTest {
 protected:
  static std::vector<Refusal> table() {
    const auto user = [](const std::string& lines) { return with(kServer, lines); };
    const auto cluster = [](const std::string& lines) { return with(lines, kTokenUser); };
    return {
        {"empty", "", {"kubelet.conf:1:1", "not a kubeconfig"}},
        {"list", "- a\n", {"kubelet.conf:1:1", "not a kubeconfig"}},
        {"broken yaml", "clusters: [\n", {"kubelet.conf:2"}},
        {"no current-context", "clusters: []\n", {"current-context is missing or empty"}},
        {"empty current-context", "current-context: ''\n", {":1:1", "current-context"}},
        {"unknown context",
         "current-context: a\ncontexts: []\n",
         {":1:1", "\"a\" is not in contexts"}},
        {"contexts no list", "current-context: a\ncontexts: b\n", {":2:1", "must be a list"}},
        {"context without map",
         "current-context: a\ncontexts:\n- name: a\n",
         {":3", "needs a map \"context\""}},
        {"unknown cluster",
         "current-context: a\ncontexts:\n- name: a\n  context: {cluster: k, user: u}\n",
         {":4:13", "\"k\" is not in clusters"}},
        {"no server", cluster("    extensions: []\n"), {"server is missing"}},
        {"server no text", cluster("    server: [a]\n"), {":7:5", "server must be text"}},
        {"server without scheme", cluster("    server: h:6443\n"), {":7:5", "https://HOST:PORT"}},
        {"server plain http", cluster("    server: http://h:6443\n"), {":7:5", "not encrypted"}},
        {"plain http look-alike",
         cluster("    server: http://127.0.0.1.example\n"),
         {"not encrypted"}},
        {"server without host", cluster("    server: https://:6443\n"), {"has no host"}},
        {"server with user", cluster("    server: https://me:pw@h\n"), {"user name", "remove it"}},
        {"insecure",
         cluster("    server: https://h\n    insecure-skip-tls-verify: true\n"),
         {":8:5", "insecure-skip-tls-verify of cluster \"k\" is rejected",
          "certificate-authority"}},
        {"insecure as text",
         cluster("    server: https://h\n    insecure-skip-tls-verify: 'yes'\n"),
         {"insecure-skip-tls-verify"}},
        {"CA file missing",
         cluster("    server: https://h\n    certificate-authority: no.crt\n"),
         {":8:5: certificate-authority: open ", "no.crt", "No such file"}},
        {"CA data broken",
         cluster("    server: https://h\n    certificate-authority-data: '***'\n"),
         {":8:5", "certificate-authority-data is not valid base64"}},
        {"CA key without a value",
         cluster("    server: https://h\n    certificate-authority:\n"),
         {":8:5", "certificate-authority is empty"}},
        {"CA data empty",
         cluster("    server: https://h\n    certificate-authority-data: ''\n"),
         {":8:5", "certificate-authority-data is empty", "base64 -w0"}},
        {"CA data null in JSON's words",
         cluster("    server: https://h\n    certificate-authority-data: null\n"),
         {":8:5", "certificate-authority-data is empty"}},
        {"both CA keys empty",
         cluster("    server: https://h\n    certificate-authority-data: ''\n"
                 "    certificate-authority: ''\n"),
         {":9:5", "certificate-authority is empty"}},
        {"CA data is base64 of base64",
         cluster("    server: https://h\n    certificate-authority-data: " +
                 tls::base64_encode(tls::base64_encode(pem("CA"))) + "\n"),
         {":8:5", "certificate-authority-data is base64 of base64", "base64 -d"}},
        {"CA data is base64 of DER",
         cluster("    server: https://h\n    certificate-authority-data: " +
                 tls::base64_encode("0\x82\x03") + "\n"),
         {":8:5", "is not PEM", "base64 -w0"}},
        {"CA data is PEM itself",
         cluster("    server: https://h\n    certificate-authority-data: |\n"
                 "      -----BEGIN CERTIFICATE-----\n"),
         {":8:5", "is not valid base64", "base64 -w0"}},
        {"certificate data empty",
         user("    client-certificate-data: ''\n    client-key-data: ''\n    token: t\n"),
         {":14:5", "client-certificate-data is empty"}},
        {"token empty", user("    token: ''\n"), {":14:5", "token of user \"u\" is empty"}},
        {"tokenFile empty",
         user("    client-certificate: pki/node.pem\n    client-key: pki/node.pem\n"
              "    tokenFile: ''\n"),
         {":16:5", "tokenFile of user \"u\" is empty"}},
        {"server with an invisible character",
         cluster("    server: https://h:6443\u200b\n"),
         {":7:5", "not ASCII", "type it again"}},
        {"UTF-16",
         std::string("\xFF\xFE"
                     "a\0:\0",
                     6),
         {":1:1", "UTF-16", "iconv"}},
        {"exec",
         user("    exec: {command: aws}\n"),
         {":14:5", "exec of \"u\" is not supported", "client-certificate"}},
        {"auth-provider", user("    auth-provider: {name: oidc}\n"), {"auth-provider of \"u\""}},
        {"username", user("    username: me\n    password: pw\n"), {"username of \"u\""}},
        {"impersonation", user("    token: t\n    as: root\n"), {":15:5", "as of \"u\""}},
        {"certificate without key",
         user("    client-certificate: pki/node.pem\n"),
         {"user \"u\" has a client certificate without its key"}},
        {"key without certificate",
         user("    client-key: pki/node.pem\n"),
         {"user \"u\" has a client key without its certificate"}},
        {"no credential", user("    extensions: []\n"), {"user \"u\" has no credential"}},
        {"token of two lines", user("    token: \"a\\nInjected: b\"\n"), {"token of user \"u\""}},
    };
  }
};

TEST_F(KubeconfigRefusalTest, NamesFileLineKeyAndCure) {
  for (const Refusal& row : table()) {
    SCOPED_TRACE(row.name);
    const auto access = parse(row.text);
    ASSERT_FALSE(access);
    EXPECT_THAT(access.error().message, HasSubstr((folder_ / "kubelet.conf").string() + ":"));
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
  EXPECT_EQ(access->token_file, (folder_ / "run/token").string());
}

// It is named, so it is not "the system's CAs": who uses it says that it holds no certificate.
TEST_F(KubeconfigTest, AnEmptyFileIsNotTakenForNone) {
  write("pki/ca.crt", "");
  write("pki/node.pem", "");
  const auto access = parse(with("    server: https://h\n    certificate-authority: pki/ca.crt\n",
                                 "    client-certificate: pki/node.pem\n"
                                 "    client-key: pki/node.pem\n    token: t\n"));
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->pem.ca, "");
  EXPECT_EQ(access->pem.certificate, "");
  const auto identity = tls::ClientIdentity::make(access->pem);
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().message, HasSubstr((folder_ / "pki/ca.crt").string() + ": "));
}

TEST_F(KubeconfigTest, PassesOverAByteOrderMark) {
  EXPECT_TRUE(parse("\xEF\xBB\xBF" + with(kServer, kTokenUser)));
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
  const auto access = load_kubeconfig(folder_ / "none.conf");
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().code, Code::kNotFound);
  EXPECT_THAT(access.error().message, HasSubstr("none.conf"));
}

}  // namespace
}  // namespace slurmlet::kube
