#include "kube/rest_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "fakes/fake_http_client.h"
#include "kube/test_time.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kNode = R"({"metadata":{"name":"n1","uid":"u","resourceVersion":"5"}})";
constexpr const char* kLease =
    R"({"metadata":{"name":"n1","resourceVersion":"6"},"spec":{"leaseDurationSeconds":40}})";
constexpr const char* kExists =
    R"({"kind":"Status","status":"Failure","message":"\"n1\" already exists","reason":"AlreadyExists","code":409})";

class RestApiTest : public ::testing::Test {
 protected:
  void expect_request(const std::string& method, const std::string& path,
                      const std::string& content_type) const {
    ASSERT_FALSE(client_.requests.empty());
    EXPECT_EQ(client_.last().method, method);
    EXPECT_EQ(client_.last().path, path);
    EXPECT_EQ(client_.last().content_type, content_type);
    EXPECT_EQ(client_.last().timeout, Duration{std::chrono::seconds{10}});
  }
  json last_body() const { return json::parse(client_.last().body); }

  fakes::FakeHttpClient client_;
  RequestCounter counter_;
  std::optional<WallTime> server_date_;
  CallOptions options_{&counter_, [this](WallTime date) { server_date_ = date; }};
  RestNodeApi nodes_{client_, options_};
  RestLeaseApi leases_{client_, options_};
  RestPodApi pods_{client_, options_};
  RestEventApi events_{client_, options_};
};

TEST_F(RestApiTest, NodeGet) {
  client_.answer(200, kNode);
  const auto node = nodes_.get("n1");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->resource_version, "5");
  expect_request("GET", "/api/v1/nodes/n1", "");
  EXPECT_EQ(client_.last().body, "");
}

TEST_F(RestApiTest, NodeCreate) {
  client_.answer(201, kNode);
  node::DesiredNode desired;
  desired.name = "n1";
  const auto node = nodes_.create(desired, kNow);
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->uid, "u");
  expect_request("POST", "/api/v1/nodes?fieldManager=slurmlet", "application/json");
  EXPECT_EQ(last_body()["kind"], "Node");
}

TEST_F(RestApiTest, NodePatchStatus) {
  client_.answer(200, kNode);
  node::NodePatch patch;
  patch.uid = "u";
  EXPECT_TRUE(nodes_.patch_status("n1", patch));
  expect_request("PATCH", "/api/v1/nodes/n1/status?fieldManager=slurmlet",
                 "application/strategic-merge-patch+json");
  EXPECT_EQ(last_body()["metadata"]["uid"], "u");
}

TEST_F(RestApiTest, ProviderIdGoesToTheNodeItself) {
  client_.answer(200, kNode);
  EXPECT_TRUE(nodes_.set_provider_id("n1", "u", "metal3://a/b/c"));
  expect_request("PATCH", "/api/v1/nodes/n1?fieldManager=slurmlet",
                 "application/strategic-merge-patch+json");
}

TEST_F(RestApiTest, LeaseCalls) {
  Lease lease;
  lease.name = "n1";
  lease.resource_version = "4";
  const std::string base = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  client_.answer(200, kLease);
  const auto read = leases_.get("n1");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->resource_version, "6");
  expect_request("GET", base + "/n1", "");

  client_.answer(201, kLease);
  EXPECT_TRUE(leases_.create(lease));
  expect_request("POST", base + "?fieldManager=slurmlet", "application/json");
  EXPECT_FALSE(last_body()["metadata"].contains("resourceVersion"));

  client_.answer(200, kLease);
  EXPECT_TRUE(leases_.update(lease));
  expect_request("PUT", base + "/n1?fieldManager=slurmlet", "application/json");
  EXPECT_EQ(last_body()["metadata"]["resourceVersion"], "4");

  client_.answer(200, kLease);
  EXPECT_TRUE(leases_.renew_held("n1", "n1/u", "2026-11-20T14:00:00.000000Z"));
  expect_request("PATCH", base + "/n1?fieldManager=slurmlet", "application/json-patch+json");
  EXPECT_EQ(last_body()[0]["value"], "n1/u");
}

TEST_F(RestApiTest, PodCalls) {
  const Pod pod{"ns", "p", "u", "Pending", false, std::nullopt};
  client_.answer(200, "{}");
  EXPECT_TRUE(pods_.set_failed(pod, "R", "m"));
  expect_request("PATCH", "/api/v1/namespaces/ns/pods/p/status?fieldManager=slurmlet",
                 "application/strategic-merge-patch+json");
  EXPECT_EQ(last_body()["status"]["phase"], "Failed");
  EXPECT_TRUE(client_.last().accept.starts_with("application/json;as=PartialObjectMetadata;"))
      << "a pod may be larger than any answer we take";

  client_.answer(200, "{}");
  EXPECT_TRUE(pods_.remove_now(pod));
  expect_request("DELETE", "/api/v1/namespaces/ns/pods/p", "application/json");
  EXPECT_EQ(last_body()["preconditions"]["uid"], "u");
}

TEST_F(RestApiTest, EventCalls) {
  Event event;
  event.namespace_name = "default";
  event.name = "n1.1";
  client_.answer(201, "{}");
  EXPECT_TRUE(events_.create(event));
  expect_request("POST", "/api/v1/namespaces/default/events?fieldManager=slurmlet",
                 "application/json");
  client_.answer(200, "{}");
  EXPECT_TRUE(events_.update(event));
  expect_request("PATCH", "/api/v1/namespaces/default/events/n1.1?fieldManager=slurmlet",
                 "application/strategic-merge-patch+json");
}

TEST_F(RestApiTest, AMachineIsReleasedAsItWasRead) {
  client_.answer(200, "{}");
  Machine machine;
  machine.api_version = "v1beta1";
  machine.namespace_name = "ns";
  machine.name = "m1";
  machine.uid = "u";
  machine.resource_version = "7";
  EXPECT_TRUE(RestMachineApi(client_, {}).release(machine));
  EXPECT_EQ(client_.last().method, "PATCH");
  EXPECT_EQ(client_.last().path,
            "/apis/cluster.x-k8s.io/v1beta1/namespaces/ns/machines/m1"
            "?fieldManager=slurmlet-operator");
  EXPECT_EQ(client_.last().content_type, "application/merge-patch+json");
  EXPECT_EQ(client_.last().body,
            R"({"metadata":{"annotations":{)"
            R"("pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet":null},)"
            R"("resourceVersion":"7","uid":"u"}})");
}

TEST_F(RestApiTest, NamesCannotLeaveTheirPlaceInThePath) {
  client_.answer(200, kNode);
  (void)nodes_.get("../x?y#z%");
  EXPECT_EQ(client_.last().path, "/api/v1/nodes/..%2Fx%3Fy%23z%25");
}

TEST_F(RestApiTest, ErrorsAreTypedAndNamed) {
  client_.answer(409, kExists);
  const auto created = leases_.create(Lease{});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, Code::kConflict);
  EXPECT_EQ(created.error().message,
            "POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases: 409 "
            "Conflict: \"n1\" already exists");
}

TEST_F(RestApiTest, ThePauseThatTheServerAsksForIsPartOfEveryError) {
  const Pod pod{"ns", "p", "u", "Pending", false, std::nullopt};
  const std::function<std::optional<Error>()> kCalls[] = {
      [&] { return std::optional{nodes_.get("n1").error()}; },
      [&] { return std::optional{nodes_.create({}, kNow).error()}; },
      [&] { return std::optional{nodes_.patch_status("n1", {}).error()}; },
      [&] { return std::optional{leases_.get("n1").error()}; },
      [&] { return std::optional{leases_.update({}).error()}; },
      [&] { return std::optional{pods_.set_failed(pod, "R", "m").error()}; },
      [&] { return std::optional{pods_.remove_now(pod).error()}; },
      [&] { return std::optional{events_.create({}).error()}; },
  };
  for (const int status : {429, 503}) {
    for (const auto& call : kCalls) {
      http::Response response;
      response.status = status;
      response.body = "Too many requests, please try again later.\n";
      response.retry_after = std::chrono::seconds{5};
      client_.answer(response);
      const auto error = call();
      EXPECT_EQ(error->code, Code::kUnavailable) << client_.last().path;
      EXPECT_EQ(error->retry_after, Duration{std::chrono::seconds{5}}) << client_.last().path;
    }
  }
}

TEST_F(RestApiTest, TransportErrorsAreHandedOn) {
  client_.fail({Code::kTimeout, "no answer in time"});
  const auto node = nodes_.get("n1");
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error(), (Error{Code::kTimeout, "no answer in time"}));
}

TEST_F(RestApiTest, AnAnswerThatIsNoNodeIsAnError) {
  for (const std::string body : {"", "<html>", "[]", "{}", R"({"metadata":{"name":null}})"}) {
    client_.answer(200, body);
    const auto node = nodes_.get("n1");
    ASSERT_FALSE(node) << body;
    EXPECT_EQ(node.error().code, Code::kInternal);
    EXPECT_THAT(node.error().message, HasSubstr("GET /api/v1/nodes/n1: the answer is not"));
  }
}

TEST_F(RestApiTest, CountsByVerbAndStatus) {
  client_.answer(200, kNode);
  client_.answer(200, kNode);
  client_.answer(404, "");
  client_.fail({Code::kUnavailable, "refused"});
  for (int i = 0; i < 4; ++i) {
    (void)nodes_.get("n1");
  }
  EXPECT_THAT(counter_.snapshot(), ElementsAre(Pair(Pair("GET", 0), 1), Pair(Pair("GET", 200), 2),
                                               Pair(Pair("GET", 404), 1)));
}

TEST_F(RestApiTest, ACallMayHaveLessTime) {
  options_.longest = std::chrono::seconds{3};
  client_.answer(200, "{}");
  EXPECT_TRUE(RestSiteApi(client_, options_).annotate("n1", "u", {{"a", "b"}}));
  EXPECT_EQ(client_.last().timeout, Duration{std::chrono::seconds{3}});
  EXPECT_NE(client_.last().body, "");
  options_.longest = std::chrono::minutes{1};
  client_.answer(200, "{}");
  EXPECT_TRUE(RestSiteApi(client_, options_).annotate("n1", "u", {{"a", "b"}}));
  EXPECT_EQ(client_.last().timeout, Duration{std::chrono::seconds{10}});
}

TEST_F(RestApiTest, TellsTheServersClock) {
  http::Response response;
  response.status = 200;
  response.body = kNode;
  response.server_date = kNow;
  client_.answer(response);
  (void)nodes_.get("n1");
  EXPECT_EQ(server_date_, kNow);
}

TEST(RequestCounterTest, CountsFromSeveralThreads) {
  RequestCounter counter;
  const auto work = [&counter] {
    for (int i = 0; i < 1000; ++i) {
      counter.count("PUT", 200);
    }
  };
  std::thread one(work);
  std::thread two(work);
  one.join();
  two.join();
  EXPECT_THAT(counter.snapshot(), ElementsAre(Pair(Pair("PUT", 200), 2000)));
}

}  // namespace
}  // namespace slurmlet::kube
