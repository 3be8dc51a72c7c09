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
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kNode = R"({"metadata":{"name":"n1","uid":"u","resourceVersion":"5"}})";
constexpr const char* kLease =
    R"({"metadata":{"name":"n1","resourceVersion":"6"},"spec":{"leaseDurationSeconds":40}})";
const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
constexpr const char* kMerge = "application/strategic-merge-patch+json";

// Without its value.
template <class T>
Status status(const Result<T>& result) {
  return result ? Status{} : Status{result.error()};
}

class RestApiTest : public ::testing::Test {
 protected:
  RestApiTest() {
    node_.name = lease_.name = "n1";
    patch_.uid = "u";
    lease_.resource_version = "4";
    event_.namespace_name = "default";
    event_.name = "n1.1";
    machine_.api_version = "v1beta1";
    machine_.namespace_name = "ns";
    machine_.name = "m1";
    machine_.uid = "u";
    machine_.resource_version = "7";
  }
  json last_body() const { return json::parse(client_.last().body); }

  struct Call {
    std::function<Status()> call;
    const char* answer;
    std::string request;  // method and path
    const char* content_type;
    const char* key = "";  // in the request's body
    json value = nullptr;
  };
  std::vector<Call> calls() {
    return {
        {[this] { return status(nodes_.get("n1")); }, kNode, "GET /api/v1/nodes/n1", ""},
        {[this] { return status(nodes_.create(node_, kNow)); }, kNode,
         "POST /api/v1/nodes?fieldManager=slurmlet", "application/json", "/kind", "Node"},
        {[this] { return status(nodes_.patch_status("n1", patch_)); }, kNode,
         "PATCH /api/v1/nodes/n1/status?fieldManager=slurmlet", kMerge, "/metadata/uid", "u"},
        {[this] { return status(nodes_.set_provider_id("n1", "u", "metal3://a/b/c")); }, kNode,
         "PATCH /api/v1/nodes/n1?fieldManager=slurmlet", kMerge, "/metadata/uid", "u"},
        {[this] { return status(leases_.get("n1")); }, kLease, "GET " + kLeases + "/n1", ""},
        {[this] { return status(leases_.create(lease_)); }, kLease,
         "POST " + kLeases + "?fieldManager=slurmlet", "application/json",
         "/metadata/resourceVersion"},
        {[this] { return status(leases_.update(lease_)); }, kLease,
         "PUT " + kLeases + "/n1?fieldManager=slurmlet", "application/json",
         "/metadata/resourceVersion", "4"},
        {[this] { return status(leases_.renew_held("n1", "n1/u", "2026-11-20T14:00:00.000000Z")); },
         kLease, "PATCH " + kLeases + "/n1?fieldManager=slurmlet", "application/json-patch+json",
         "/0/value", "n1/u"},
        {[this] { return pods_.set_failed(pod_, "R", "m"); }, "{}",
         "PATCH /api/v1/namespaces/ns/pods/p/status?fieldManager=slurmlet", kMerge, "/status/phase",
         "Failed"},
        {[this] { return pods_.remove_now(pod_); }, "{}", "DELETE /api/v1/namespaces/ns/pods/p",
         "application/json", "/preconditions/uid", "u"},
        {[this] { return events_.create(event_); }, "{}",
         "POST /api/v1/namespaces/default/events?fieldManager=slurmlet", "application/json",
         "/metadata/name", "n1.1"},
        {[this] { return events_.update(event_); }, "{}",
         "PATCH /api/v1/namespaces/default/events/n1.1?fieldManager=slurmlet", kMerge},
        {[this] { return RestMachineApi(client_, options_).release(machine_); },
         "{}",
         "PATCH /apis/cluster.x-k8s.io/v1beta1/namespaces/ns/machines/m1"
         "?fieldManager=slurmlet-operator",
         "application/merge-patch+json",
         "/metadata",
         {{"annotations",
           {{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet", nullptr}}},
          {"resourceVersion", "7"},
          {"uid", "u"}}},
    };
  }

  fakes::FakeHttpClient client_;
  RequestCounter counter_;
  std::optional<WallTime> server_date_;
  CallOptions options_{&counter_, [this](WallTime date) { server_date_ = date; }};
  RestNodeApi nodes_{client_, options_};
  RestLeaseApi leases_{client_, options_};
  RestPodApi pods_{client_, options_};
  RestEventApi events_{client_, options_};
  node::DesiredNode node_;
  node::NodePatch patch_;
  Lease lease_;
  Event event_;
  Machine machine_;
  Pod pod_{"ns", "p", "u", "Pending", false, std::nullopt};
};

TEST_F(RestApiTest, EachCallIsOneRequest) {
  for (const Call& row : calls()) {
    SCOPED_TRACE(row.request);
    client_.requests.clear();
    client_.answer(200, row.answer);
    EXPECT_TRUE(row.call());
    ASSERT_EQ(client_.requests.size(), 1U);
    EXPECT_EQ(client_.last().method + " " + client_.last().path, row.request);
    EXPECT_EQ(client_.last().content_type, row.content_type);
    EXPECT_EQ(client_.last().timeout, kCallTimeout);
    const json::json_pointer key{row.key};
    if (*row.key != 0) {
      EXPECT_EQ(last_body().contains(key) ? last_body()[key] : json{}, row.value);
    }
  }
}

TEST_F(RestApiTest, ThePauseThatTheServerAsksForIsPartOfEveryError) {
  for (const int code : {429, 503}) {
    for (const auto& row : calls()) {
      SCOPED_TRACE(row.request);
      http::Response response;
      response.status = code;
      response.body = "Too many requests, please try again later.\n";
      response.retry_after = seconds{5};
      client_.answer(response);
      const Status done = row.call();
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, Code::kUnavailable);
      EXPECT_EQ(done.error().retry_after, Duration{seconds{5}});
    }
  }
}

TEST_F(RestApiTest, AnswersAreRead) {
  client_.answer(200, kNode);
  EXPECT_EQ(nodes_.get("n1")->resource_version, "5");
  client_.answer(200, kLease);
  EXPECT_EQ(leases_.get("n1")->resource_version, "6");
  client_.answer(200, "{}");
  EXPECT_TRUE(pods_.set_failed(pod_, "R", "m"));
  EXPECT_TRUE(client_.last().accept.starts_with("application/json;as=PartialObjectMetadata;"))
      << "a pod may be larger than any answer we take";
}

TEST_F(RestApiTest, NamesCannotLeaveTheirPlaceInThePath) {
  client_.answer(200, kNode);
  (void)nodes_.get("../x?y#z%");
  EXPECT_EQ(client_.last().path, "/api/v1/nodes/..%2Fx%3Fy%23z%25");
}

TEST_F(RestApiTest, ErrorsAreTypedAndNamed) {
  client_.answer(409, R"({"kind":"Status","status":"Failure","message":"\"n1\" already exists",
                          "reason":"AlreadyExists","code":409})");
  const auto created = leases_.create(Lease{});
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, Code::kConflict);
  EXPECT_THAT(created.error().message, HasSubstr("POST " + kLeases + ": 409"));
  EXPECT_THAT(created.error().message, HasSubstr("\"n1\" already exists"));
  client_.fail({Code::kTimeout, "no answer in time"});
  EXPECT_EQ(nodes_.get("n1").error(), (Error{Code::kTimeout, "no answer in time"}));
  for (const std::string body : {"", "<html>", "[]", "{}", R"({"metadata":{"name":null}})"}) {
    client_.answer(200, body);
    const auto node = nodes_.get("n1");
    ASSERT_FALSE(node) << body;
    EXPECT_EQ(node.error().code, Code::kInternal);
    EXPECT_THAT(node.error().message, HasSubstr("GET /api/v1/nodes/n1"));
  }
}

TEST_F(RestApiTest, ACallHasTheTimeOfItsOptions) {
  for (const seconds timeout : {seconds{3}, seconds{20}}) {
    options_.timeout = timeout;
    client_.answer(200, "{}");
    EXPECT_TRUE(RestSiteApi(client_, options_).annotate("n1", "u", {{"a", "b"}}));
    EXPECT_EQ(client_.last().timeout, Duration{timeout});
    EXPECT_EQ(client_.server_limits.back(), std::to_string(timeout.count() * 800) + "ms")
        << "the server answers before the client leaves";
  }
}

TEST_F(RestApiTest, CountsByVerbAndStatusAndTellsTheServersClock) {
  http::Response response;
  response.status = 200;
  response.body = kNode;
  response.server_date = kNow;
  client_.answer(response);
  client_.answer(404, "");
  client_.fail({Code::kUnavailable, "refused"});
  for (int i = 0; i < 3; ++i) {
    (void)nodes_.get("n1");
  }
  EXPECT_THAT(counter_.snapshot(), ElementsAre(Pair(Pair("GET", 0), 1), Pair(Pair("GET", 200), 1),
                                               Pair(Pair("GET", 404), 1)));
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
