#include "kube/review_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kKnownToken =
    R"({"kind":"TokenReview","status":{"authenticated":true,"audiences":["x"],"user":{
        "username":"system:serviceaccount:monitoring:prometheus","uid":"7","groups":[
        "system:serviceaccounts","system:authenticated"],
        "extra":{"authentication.kubernetes.io/pod-name":["p-0"]}}}})";
const std::string kTokens = "POST /apis/authentication.k8s.io/v1/tokenreviews";

class ReviewApiTest : public ::testing::Test {
 protected:
  template <typename T>
  std::unique_ptr<Result<T>> answer(PendingCall<T>& call, int status, const std::string& body) {
    client_.stream().status = status;
    client_.stream().feed(body);
    client_.stream().end();
    return call.poll(now());
  }
  std::unique_ptr<PendingCall<TokenReview>> ask_token() { return api_.review_token("t0k", now()); }
  SteadyTime now() const { return clock_.now().steady; }
  json sent() const { return json::parse(client_.stream_requests.back().body); }

  fakes::FakeHttpClient client_;
  fakes::FakeClock clock_;
  RequestCounter counter_;
  RestReviewApi api_{client_, CallOptions{&counter_, {}}};
};

TEST_F(ReviewApiTest, AsksWhoATokenBelongsTo) {
  const auto call = ask_token();
  ASSERT_EQ(client_.stream_requests.size(), 1U);
  const auto& request = client_.stream_requests[0];
  EXPECT_EQ(request.method + " " + request.path, kTokens);
  EXPECT_EQ(request.content_type, "application/json");
  EXPECT_EQ(request.timeout, Duration{seconds{10}});
  EXPECT_EQ(sent(), json::parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview",
                                    "spec":{"token":"t0k"}})"));
  const auto result = answer(*call, 201, kKnownToken);
  ASSERT_TRUE(result && *result);
  EXPECT_TRUE((*result)->authenticated);
  EXPECT_EQ((*result)->user, (UserInfo{"system:serviceaccount:monitoring:prometheus",
                                       "7",
                                       {"system:serviceaccounts", "system:authenticated"},
                                       {{"authentication.kubernetes.io/pod-name", {"p-0"}}}}));
}

TEST_F(ReviewApiTest, ATokenThatIsNotBelieved) {
  const auto call = ask_token();
  const auto result =
      answer(*call, 201,
             R"({"status":{"user":{},"error":"[invalid bearer token,\n token has expired]"}})");
  ASSERT_TRUE(result && *result);
  EXPECT_FALSE((*result)->authenticated);
  EXPECT_EQ((*result)->error, "[invalid bearer token, token has expired]");
}

TEST_F(ReviewApiTest, AsksWhatAUserMayDo) {
  const UserInfo user{"alice", "u1", {"dev", "system:authenticated"}, {{"k", {"a", "b"}}}};
  const auto call = api_.review_access({user, "get", "metrics", "n1"}, now());
  EXPECT_EQ(client_.stream_requests[0].path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  EXPECT_EQ(sent(), json::parse(R"({"apiVersion":"authorization.k8s.io/v1",
      "kind":"SubjectAccessReview","spec":{"user":"alice","uid":"u1",
      "groups":["dev","system:authenticated"],"extra":{"k":["a","b"]},"resourceAttributes":{
      "verb":"get","version":"v1","resource":"nodes","subresource":"metrics","name":"n1"}}})"));
  const auto result = answer(*call, 201, R"({"status":{"allowed":true,"reason":"RBAC: x"}})");
  ASSERT_TRUE(result && *result);
  EXPECT_TRUE((*result)->allowed);
  EXPECT_EQ((*result)->reason, "RBAC: x");
}

TEST_F(ReviewApiTest, LeavesOutWhatIsNotKnown) {
  const auto call = api_.review_access({{"alice", "", {}, {}}, "", "proxy", "n1"}, now());
  const json spec = sent()["spec"];
  EXPECT_EQ(spec, json::parse(R"({"user":"alice","resourceAttributes":{"version":"v1",
                                  "resource":"nodes","subresource":"proxy","name":"n1"}})"));
}

TEST_F(ReviewApiTest, OnlyAPlainYesIsYes) {
  for (const std::string body :
       {R"({})", R"({"status":null})", R"({"status":{}})", R"({"status":{"allowed":false}})",
        R"({"status":{"allowed":"true"}})", R"({"status":{"allowed":1}})", R"({"status":[true]})",
        R"({"status":{"allowed":true,"denied":true}})", R"([])"}) {
    const auto call = api_.review_access({{"a", "", {}, {}}, "get", "proxy", "n1"}, now());
    const auto result = answer(*call, 201, body);
    ASSERT_TRUE(result && *result) << body;
    EXPECT_FALSE((*result)->allowed) << body;
  }
  for (const std::string body :
       {R"({})", R"({"status":{"authenticated":"yes"}})", R"({"status":"authenticated"})"}) {
    const auto call = ask_token();
    const auto result = answer(*call, 200, body);
    ASSERT_TRUE(result && *result) << body;
    EXPECT_FALSE((*result)->authenticated) << body;
  }
}

TEST_F(ReviewApiTest, OddValuesInAUserAreLeftOut) {
  const auto call = ask_token();
  const auto result = answer(*call, 201,
                             R"({"status":{"authenticated":true,"user":{"username":"a","uid":5,
                                 "groups":["g",7,null],"extra":{"k":"no list","l":["v",{}]}}}})");
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->user, (UserInfo{"a", "", {"g"}, {{"k", {}}, {"l", {"v"}}}}));
}

TEST_F(ReviewApiTest, ABelievedTokenWithoutAUserIsAnError) {
  const auto call = ask_token();
  const auto result = answer(*call, 201, R"({"status":{"authenticated":true}})");
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code, Code::kInternal);
}

TEST_F(ReviewApiTest, HttpErrorsAreTyped) {
  struct Row {
    int status;
    std::string body;
    Code code;
  };
  for (const Row& row :
       std::vector<Row>{{403, R"({"kind":"Status","message":"no","reason":"Forbidden","code":403})",
                         Code::kDenied},
                        {401, "Unauthorized", Code::kDenied},
                        {503, "<html>busy</html>", Code::kUnavailable},
                        {201, "<html>a portal</html>", Code::kInternal}}) {
    const auto call = ask_token();
    const auto result = answer(*call, row.status, row.body);
    ASSERT_TRUE(result);
    ASSERT_FALSE(*result) << row.body;
    EXPECT_EQ(result->error().code, row.code) << row.body;
    EXPECT_THAT(result->error().message, HasSubstr(kTokens));
    EXPECT_THAT(result->error().message, Not(HasSubstr("t0k")));
  }
}

TEST_F(ReviewApiTest, TheAnswerComesInPiecesAndIsGivenOnce) {
  const auto call = ask_token();
  EXPECT_EQ(call->deadline(), now() + seconds{10});
  EXPECT_FALSE(call->poll(now()));
  client_.stream().status = 201;
  client_.stream().feed(R"({"status":{"authen)");
  EXPECT_FALSE(call->poll(now()));
  client_.stream().feed(R"(ticated":true,"user":{"username":"a"}}})");
  EXPECT_FALSE(call->poll(now()));
  client_.stream().end();
  const auto result = call->poll(now());
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->user.name, "a");
  EXPECT_TRUE(client_.stream().closed);
  EXPECT_FALSE(call->poll(now()));
}

TEST_F(ReviewApiTest, GivesUpAtTheDeadline) {
  const auto call = ask_token();
  client_.stream().status = 201;
  clock_.advance(seconds{10} - milliseconds{1});
  EXPECT_FALSE(call->poll(now()));
  clock_.advance(milliseconds{1});
  const auto result = call->poll(now());
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error(), (Error{Code::kTimeout, kTokens + ": no answer within 10 s"}));
  EXPECT_TRUE(client_.stream().closed);
}

TEST_F(ReviewApiTest, AnEndlessAnswerIsCutOff) {
  const auto call = ask_token();
  client_.stream().status = 201;
  client_.stream().feed(std::string(std::size_t{64} << 10, ' '));
  EXPECT_FALSE(call->poll(now()));
  client_.stream().feed(" ");
  const auto result = call->poll(now());
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_THAT(result->error().message, HasSubstr("longer than 64 KiB"));
  EXPECT_TRUE(client_.stream().closed);
}

TEST_F(ReviewApiTest, TransportErrorsAreHandedOn) {
  const auto call = ask_token();
  client_.stream().status = 201;
  client_.stream().feed(kKnownToken);
  client_.stream().break_off({Code::kUnavailable, "connection reset"});
  const auto result = call->poll(now());
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result) << "a torn answer counts for nothing, even if it looks complete";
  EXPECT_EQ(result->error(), (Error{Code::kUnavailable, "connection reset"}));
}

TEST_F(ReviewApiTest, CountsEachCallOnce) {
  {
    const auto call = ask_token();
    (void)answer(*call, 201, kKnownToken);
    (void)call->poll(now());
  }
  EXPECT_THAT(counter_.snapshot(), ElementsAre(Pair(Pair("POST", 201), 1)));
  { const auto given_up = ask_token(); }
  EXPECT_THAT(counter_.snapshot(),
              ElementsAre(Pair(Pair("POST", 0), 1), Pair(Pair("POST", 201), 1)));
}

TEST_F(ReviewApiTest, WorksWithoutACounter) {
  RestReviewApi api{client_, CallOptions{}};
  const auto call = api.review_token("t", now());
  EXPECT_TRUE(answer(*call, 201, kKnownToken));
}

}  // namespace
}  // namespace slurmlet::kube
