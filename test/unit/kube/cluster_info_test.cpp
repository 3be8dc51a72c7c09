#include "kube/cluster_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "fakes/fake_http_client.h"
#include "kube/fixture_file.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The token that signed the captured ConfigMap, and what openssl says of its CA's public key.
constexpr const char* kToken = "0uhwl6.9w99o3a0jfzebhvk";
constexpr const char* kPin =
    "sha256:7bfbc0c58e2408ab8570934f8081f85e11c038f458aee12cf44e5b6d6bc1ed2c";
constexpr const char* kOtherPin =
    "sha256:0000000000000000000000000000000000000000000000000000000000000000";

TEST(BootstrapTokenTest, Table) {
  const auto token = parse_bootstrap_token(" abcdef.0123456789abcdef\n");
  ASSERT_TRUE(token);
  EXPECT_EQ(token->id, "abcdef");
  EXPECT_EQ(token->secret, "0123456789abcdef");
  for (const char* text :
       {"", ".", "abcdef", "abcdef.", "abcdef.0123456789abcde", "abcdef.0123456789abcdefg",
        "ABCDEF.0123456789abcdef", "abcde.0123456789abcdef", "abcdef.0123456789abcdef.x",
        "abcdef 0123456789abcdef", "abcdef.0123456789 abcde"}) {
    const auto refused = parse_bootstrap_token(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, Not(HasSubstr("01234")));
  }
}

class ClusterInfoTest : public ::testing::Test {
 protected:
  Result<std::string> discover(const std::vector<std::string>& pins = {kPin},
                               const std::string& token = kToken) {
    return discover_cluster_ca(client_, *parse_bootstrap_token(token), pins, {});
  }
  // What is wrong with the answer `config_map`.
  std::string disbelief(const json& config_map) {
    client_.answer(200, config_map.dump());
    const auto ca = discover();
    EXPECT_FALSE(ca);
    EXPECT_EQ(ca ? Code::kInternal : ca.error().code, Code::kDenied);
    const std::string said = ca ? "" : ca.error().message;
    EXPECT_THAT(said, Not(HasSubstr("9w99o3a0jfzebhvk")));
    return said;
  }

  fakes::FakeHttpClient client_;
  const json good_ = fixture_json("cluster-info.json");
};

TEST_F(ClusterInfoTest, GivesTheCaThatTokenAndHashVouchFor) {
  std::string upper = kPin;
  std::transform(upper.begin() + 7, upper.end(), upper.begin() + 7, ::toupper);
  for (const auto& pins : std::vector<std::vector<std::string>>{{kPin}, {kOtherPin, upper}}) {
    client_.answer(200, good_.dump());
    const auto ca = discover(pins);
    ASSERT_TRUE(ca) << ca.error().message;
    EXPECT_THAT(*ca, StartsWith("-----BEGIN CERTIFICATE-----\n"));
    EXPECT_EQ(client_.last().path, "/api/v1/namespaces/kube-public/configmaps/cluster-info");
  }
}

TEST_F(ClusterInfoTest, AnotherHashOrTokenIsNotBelieved) {
  const std::string pin = kPin;
  const struct {
    std::vector<std::string> pins;
    std::string token;
    std::vector<std::string> words;
  } rows[] = {
      {{kOtherPin}, kToken, {kPin, kOtherPin}},
      {{}, kToken, {}},
      {{""}, kToken, {}},
      {{"sha256:"}, kToken, {}},
      {{"sha256:12", "sha1:12"}, kToken, {}},
      {{pin.substr(7)}, kToken, {}},
      {{pin + "0"}, kToken, {}},
      {{"sha256:" + std::string(64, 'g')}, kToken, {}},
      {{pin}, "aaaaaa.9w99o3a0jfzebhvk", {"aaaaaa", "kubeadm token create"}},
      {{pin}, "0uhwl6.aaaaaaaaaaaaaaaa", {"wrong signature"}},
  };
  for (const auto& row : rows) {
    client_.answer(200, good_.dump());
    const auto ca = discover(row.pins, row.token);
    ASSERT_FALSE(ca);
    EXPECT_EQ(ca.error().code, Code::kDenied);
    for (const auto& words : row.words) {
      EXPECT_THAT(ca.error().message, HasSubstr(words));
    }
  }
}

// Signed with the token, as every holder of it can do: the cluster's CA behind a foreign one.
TEST_F(ClusterInfoTest, OfABundleOnlyWhatIsPinnedIsBelieved) {
  const json two = fixture_json("cluster-info-two-cas.json");
  constexpr const char* kForeignPin =
      "sha256:fddac24ac204a63725d383eef139c6b0773ca0644f8b628d0232b7bda7b95133";
  client_.answer(200, good_.dump());
  const auto alone = discover();
  ASSERT_TRUE(alone);
  client_.answer(200, two.dump());
  const auto kept = discover();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(*kept, *alone);
  // Both, where both are pinned: how a CA is replaced.
  client_.answer(200, two.dump());
  const auto both = discover({kPin, kForeignPin});
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_THAT(*both, AllOf(HasSubstr(*alone), Not(*alone)));
}

TEST_F(ClusterInfoTest, AChangedConfigMapIsNotBelieved) {
  json changed = good_;
  changed["data"]["kubeconfig"] = changed["data"]["kubeconfig"].get<std::string>() + "\n";
  EXPECT_THAT(disbelief(changed), HasSubstr("wrong signature"));
  json unsigned_map = good_;
  unsigned_map["data"].erase("jws-kubeconfig-0uhwl6");
  EXPECT_THAT(disbelief(unsigned_map), HasSubstr("not signed"));
  json empty = good_;
  empty["data"].erase("kubeconfig");
  EXPECT_THAT(disbelief(empty), HasSubstr("kubeconfig"));
  EXPECT_THAT(disbelief(json::parse(R"({"data": 3})")), HasSubstr("kubeconfig"));
}

// Signed with the token by somebody, but no use. The signatures are HMAC-SHA-256 as openssl makes
// them.
TEST_F(ClusterInfoTest, SignedNonsenseIsNotBelieved) {
  struct Row {
    const char* kubeconfig;
    const char* signature;
  };
  const Row kRows[] = {
      {"", "HtDbrvLc8uDvVzl0l0srAk9CSmF2jGutmo3f9zRH7Jw"},
      {"{", "ygRScTGvPMqhy1_BoxsxkE0HrTzgdgIwIU_c0S1mbG0"},
      {"[]", "yPCmkSSQJN7wsrbIH3dfjctjz8y_vqLViZ0arlPk7tU"},
      {"clusters: []", "JhvZqesc-oK3jhAuIu2e4CMnVS4Lxw0jWm06m2tU1qE"},
      {"clusters: [{name: '', cluster: {server: s}}]",
       "0Zv_8V1C5mDI77VCLV4chECXEqa--bWYpNmcchJZzMU"},
      {"clusters: [{cluster: {certificate-authority-data: '%'}}]",
       "4L04OX8ezAOLafJ3hxAQqaAbVCYwsw0ocSEFLkyMaTQ"},
      {"clusters: [{cluster: {certificate-authority-data: bm8gUEVN}}]",
       "_pP-ZONu_KNTTDh63HEMC-ODoGQrBJjjxaAI56ntzGg"},
      {"clusters: [{name: a, cluster: {certificate-authority-data: bm8gUEVN}}, {name: b}]",
       "GhYu2YNO3HpxIGUeG3PK0WVRBJXIf-WVOJpxPo-4g3Q"},
  };
  for (const Row& row : kRows) {
    EXPECT_THAT(
        disbelief(
            {{"data",
              {{"kubeconfig", row.kubeconfig},
               {"jws-kubeconfig-0uhwl6",
                std::string("eyJhbGciOiJIUzI1NiIsImtpZCI6IjB1aHdsNiJ9..") + row.signature}}}}),
        Not(HasSubstr("signature")))
        << row.kubeconfig;
  }
}

TEST_F(ClusterInfoTest, FailedCallsStayWhatTheyAre) {
  client_.fail(Error{Code::kUnavailable, "connection refused"});
  EXPECT_EQ(discover().error().code, Code::kUnavailable);
  client_.answer(404, R"({"kind":"Status","status":"Failure","reason":"NotFound","code":404})");
  const auto absent = discover();
  EXPECT_EQ(absent.error().code, Code::kNotFound);
  EXPECT_THAT(absent.error().message, HasSubstr("CA as a file"));
  client_.answer(200, "<html>");
  EXPECT_EQ(discover().error().code, Code::kInternal);
}

}  // namespace
}  // namespace slurmlet::kube
