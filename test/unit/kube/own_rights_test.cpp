#include "kube/review_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_http_client.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OwnRights, AreAskedWithWhatTheNodeAuthorizerLooksAt) {
  EXPECT_EQ(json::parse(own_right_body(
                {"update", "coordination.k8s.io", "leases", "", "n1", "kube-node-lease", ""})),
            json::parse(R"({"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview",
                "spec":{"resourceAttributes":{"verb":"update","group":"coordination.k8s.io",
                "resource":"leases","name":"n1","namespace":"kube-node-lease"}}})"));
  const auto watch =
      json::parse(own_right_body({"watch", "", "pods", "", "", "", "spec.nodeName=n1"}));
  EXPECT_EQ(watch["spec"]["resourceAttributes"], json::parse(R"({"verb":"watch","resource":"pods",
                "fieldSelector":{"rawSelector":"spec.nodeName=n1"}})"));
}

TEST(OwnRights, AreDescribedForPeople) {
  const std::vector<std::pair<OwnRight, const char*>> rows = {
      {{"patch", "", "nodes", "status", "n1", "", ""}, "patch nodes/status n1"},
      {{"get", "coordination.k8s.io", "leases", "", "n1", "kube-node-lease", ""},
       "get leases.coordination.k8s.io kube-node-lease/n1"},
      {{"watch", "", "pods", "", "", "", "spec.nodeName=n1"}, "watch pods with spec.nodeName=n1"},
      {{"create", "", "events", "", "", "default", ""}, "create events in default"},
      {{"create", "", "nodes", "", "", "", ""}, "create nodes"}};
  for (const auto& [right, words] : rows) {
    EXPECT_EQ(describe(right), words);
  }
}

TEST(OwnRights, YesNoAndFailure) {
  fakes::FakeHttpClient client;
  const OwnRight right{"get", "", "nodes", "", "n1", "", ""};
  client.answer(201, R"({"status":{"allowed":true}})");
  client.answer(201, R"({"status":{"allowed":false,"reason":"only n2's"}})");
  client.answer(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no"})");
  const auto yes = review_own_right(client, {nullptr, {}, seconds{3}}, right);
  ASSERT_TRUE(yes);
  EXPECT_TRUE(yes->allowed);
  EXPECT_EQ(client.last().path, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews");
  EXPECT_EQ(client.last().timeout, seconds{3});
  const auto no = review_own_right(client, {}, right);
  ASSERT_TRUE(no);
  EXPECT_FALSE(no->allowed);
  EXPECT_EQ(no->reason, "only n2's");
  EXPECT_EQ(review_own_right(client, {}, right).error().code, Code::kDenied);
}

TEST(OwnRights, AllCallsEndByOneDeadline) {
  fakes::FakeHttpClient client;
  client.answer(200, R"({"major":"1","gitVersion":"v1.36.2"})");
  const SteadyTime now = std::chrono::steady_clock::now();
  ASSERT_TRUE(server_version(client, {nullptr, {}, seconds{3}, now + seconds{2}}));
  EXPECT_LE(client.last().timeout, seconds{2});
  client.answer(200, R"({"major":"1","gitVersion":"v1.36.2"})");
  const auto late = server_version(client, {nullptr, {}, seconds{3}, now});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kTimeout);
}

TEST(OwnRights, WhoAndWhichVersion) {
  fakes::FakeHttpClient client;
  client.answer(201, R"({"status":{"userInfo":{"username":"system:node:n1",
                         "groups":["system:nodes"]}}})");
  const auto user = who_am_i(client, {});
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "system:node:n1");
  EXPECT_THAT(user->groups, ElementsAre("system:nodes"));
  client.answer(201, R"({"status":{}})");
  EXPECT_FALSE(who_am_i(client, {}));
  client.answer(200, R"({"major":"1","gitVersion":"v1.36.2"})");
  const auto version = server_version(client, {});
  ASSERT_TRUE(version);
  EXPECT_EQ(*version, "v1.36.2");
  client.answer(200, "{}");
  const auto none = server_version(client, {});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("GET /version"));
}

}  // namespace
}  // namespace slurmlet::kube
