#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "kube/kubeconfig.h"

namespace slurmlet::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPair = "-----BEGIN CERTIFICATE-----\nPAIR\n";

class KubeconfigTextTest : public ::testing::Test {
 protected:
  KubeconfigTextTest() { tree_.file("pki/node current.pem", kPair); }

  Result<ClusterAccess> round_trip(const ClusterAccess& access) {
    text_ = node_kubeconfig_text(access, "n1", tree_.path("pki/node current.pem"));
    return parse_kubeconfig(text_, tree_.path("kubeconfig"));
  }

  fakes::TempTree tree_;
  std::string text_;
};

TEST_F(KubeconfigTextTest, IsReadBackAsItWasMeant) {
  ClusterAccess access;
  access.server = "https://[2001:db8::1]:6443/prefix";
  access.proxy_url = "http://proxy:3128";
  access.tls_server_name = "1.10";  // text, though it looks like a number
  access.pem.ca = "-----BEGIN CERTIFICATE-----\nCA\n-----END CERTIFICATE-----\n";
  const auto read = round_trip(access);
  ASSERT_TRUE(read) << read.error().message << "\n" << text_;
  EXPECT_EQ(read->server, access.server);
  EXPECT_EQ(read->proxy_url, access.proxy_url);
  EXPECT_EQ(read->tls_server_name, access.tls_server_name);
  EXPECT_EQ(read->pem.ca, access.pem.ca);
  EXPECT_EQ(read->pem.certificate, kPair);
  EXPECT_EQ(read->pem.key, kPair);
  EXPECT_EQ(read->pem.certificate_name, tree_.path("pki/node current.pem").string());
  EXPECT_EQ(read->token, "");
  EXPECT_EQ(read->token_file, "");
}

TEST_F(KubeconfigTextTest, LeavesOutWhatThereIsNotAndEveryOtherCredential) {
  ClusterAccess access;
  access.server = "https://api:6443";
  access.token = "abcdef.0123456789abcdef";
  access.token_file = "/etc/token";
  access.pem.certificate = access.pem.key = "SECRET";
  const auto read = round_trip(access);
  ASSERT_TRUE(read) << read.error().message << "\n" << text_;
  EXPECT_EQ(read->server, "https://api:6443");
  EXPECT_EQ(read->pem.ca, std::nullopt);
  for (const char* absent :
       {"abcdef", "/etc/token", "SECRET", "PAIR", "namespace", "proxy-url", "tls-server-name"}) {
    EXPECT_THAT(text_, Not(HasSubstr(absent)));
  }
  EXPECT_THAT(text_, HasSubstr("node n1"));
}

// The kubeconfig may stand in another folder than the one we run in.
TEST(KubeconfigTextPathTest, TheCertificateIsNamedByItsFullPath) {
  const std::string text = node_kubeconfig_text({}, "n1", "pki/current.pem");
  EXPECT_THAT(text, HasSubstr(std::filesystem::absolute("pki/current.pem").string()));
}

}  // namespace
}  // namespace slurmlet::kube
