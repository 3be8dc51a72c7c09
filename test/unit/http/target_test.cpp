#include "http/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::http {
namespace {

Result<Target> target_of(const std::string& url, const std::string& server_name = "") {
  return make_target({.url = url, .proxy = "", .server_name = server_name, .user_agent = ""});
}

struct UrlCase {
  const char* url;
  const char* base;
};
class TargetUrl : public testing::TestWithParam<UrlCase> {};
INSTANTIATE_TEST_SUITE_P(
    Good, TargetUrl,
    testing::Values(UrlCase{"https://host:6443", "https://host:6443"},
                    UrlCase{"https://host", "https://host:443"},
                    UrlCase{"http://127.0.0.1:8001/", "http://127.0.0.1:8001"},
                    UrlCase{"https://host/k8s/clusters/c1/", "https://host:443/k8s/clusters/c1"},
                    UrlCase{"https://[fd00::1]:6443", "https://[fd00::1]:6443"}));

TEST_P(TargetUrl, KeepsHostPortAndPrefix) {
  const auto target = target_of(GetParam().url);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->base, GetParam().base);
  EXPECT_EQ(target->shown, GetParam().base);
  EXPECT_EQ(target->connect_to, "");
  EXPECT_EQ(target->host_header, "");
}

class TargetRefuses : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Bad, TargetRefuses,
                         testing::Values("", "host:6443:1", "ftp://host", "file:///etc/passwd",
                                         "https://user:secret@host", "https://host/?a=b",
                                         "https://host/#f", "https://"));

TEST_P(TargetRefuses, WithCureAndWithoutSecrets) {
  const auto target = target_of(GetParam());
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, Code::kInvalid);
  EXPECT_THAT(target.error().message, testing::HasSubstr("https://HOST:PORT"));
  EXPECT_THAT(target.error().message, testing::Not(testing::HasSubstr("secret")));
}

TEST(Target, LeadsServerNameToTheRealHost) {
  const auto target = target_of("https://192.0.2.7:6443/prefix", "api.internal");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->shown, "https://192.0.2.7:6443/prefix");
  EXPECT_EQ(target->base, "https://api.internal:6443/prefix");
  EXPECT_EQ(target->connect_to, "api.internal:6443:192.0.2.7:6443");
  EXPECT_EQ(target->host_header, "Host: 192.0.2.7:6443");
}

TEST(Target, PutsBracketsAroundIpv6ServerName) {
  const auto target = target_of("https://[fd00::1]:6443", "fd00::2");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->connect_to, "[fd00::2]:6443:[fd00::1]:6443");
}

TEST(Target, NeedsNoDetourForItsOwnName) {
  EXPECT_EQ(target_of("https://api:6443", "api")->connect_to, "");
}

}  // namespace
}  // namespace slurmlet::http
