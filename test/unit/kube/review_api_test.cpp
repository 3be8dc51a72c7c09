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
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr const char* kKnownToken = R"({"status":{"authenticated":true,"user":{"username":"a"}}})";
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
  EXPECT_EQ(sent(), json::parse(R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview",
                                    "spec":{"token":"t0k"}})"));
}

TEST_F(ReviewApiTest, OnlyAPlainYesIsYes) {
  const struct {
    const char* status;
    std::optional<UserInfo> user;  // nothing: not believed
    const char* error = "";
  } tokens[] = {
      {R"({"authenticated":true,"audiences":["x"],"user":{"username":"a","uid":"7","groups":["g"],
           "extra":{"k":["p-0"]}}})",
       UserInfo{"a", "7", {"g"}, {{"k", {"p-0"}}}}},
      {R"({"authenticated":true,"user":{"username":"a","uid":5,"groups":["g",7,null],
           "extra":{"k":"no list","l":["v",{}]}}})",
       UserInfo{"a", "", {"g"}, {{"k", {}}, {"l", {"v"}}}}},
      {R"({"user":{},"error":"[invalid bearer token,\n token has expired]"})",
       {},
       "[invalid bearer token, token has expired]"},
      {"{}", {}},
      {R"({"authenticated":"yes"})", {}},
      {R"("authenticated")", {}},
  };
  for (const auto& row : tokens) {
    SCOPED_TRACE(row.status);
    const auto result = answer(*ask_token(), 201, R"({"status":)" + std::string{row.status} + "}");
    ASSERT_TRUE(result && *result);
    EXPECT_EQ((*result)->authenticated, row.user.has_value());
    EXPECT_EQ((*result)->user, row.user.value_or(UserInfo{}));
    EXPECT_EQ((*result)->error, row.error);
  }
  for (const std::string status :
       {"null", "{}", R"({"allowed":false})", R"({"allowed":"true"})", R"({"allowed":1})", "[true]",
        R"({"allowed":true,"denied":true})"}) {
    const auto call = api_.review_access({{"a", "", {}, {}}, "get", "proxy", "n1"}, now());
    const auto result = answer(*call, 201, R"({"status":)" + status + "}");
    ASSERT_TRUE(result && *result) << status;
    EXPECT_FALSE((*result)->allowed) << status;
  }
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
  const auto unknown = api_.review_access({{"alice", "", {}, {}}, "", "proxy", "n1"}, now());
  EXPECT_EQ(sent()["spec"], json::parse(R"({"user":"alice","resourceAttributes":{"version":"v1",
                                  "resource":"nodes","subresource":"proxy","name":"n1"}})"));
}

TEST_F(ReviewApiTest, FailuresAreTypedAndNameNoToken) {
  const struct {
    int status;  // 0: the connection breaks after the answer
    std::string body;
    Code code;
  } rows[] = {
      {403, R"({"kind":"Status","message":"no","reason":"Forbidden","code":403})", Code::kDenied},
      {401, "Unauthorized", Code::kDenied},
      {503, "<html>busy</html>", Code::kUnavailable},
      {201, "<html>a portal</html>", Code::kInternal},
      {201, R"({"status":{"authenticated":true}})", Code::kInternal},
      {201, std::string((std::size_t{64} << 10) + 1, ' '), Code::kInternal},
      {0, kKnownToken, Code::kUnavailable}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.body.substr(0, 60));
    const auto call = ask_token();
    if (row.status == 0) {
      client_.stream().break_off({Code::kUnavailable, "connection reset"});
    }
    const auto result = answer(*call, row.status == 0 ? 201 : row.status, row.body);
    ASSERT_TRUE(result);
    ASSERT_FALSE(*result);
    EXPECT_EQ(result->error().code, row.code);
    EXPECT_THAT(result->error().message, Not(HasSubstr("t0k")));
    EXPECT_TRUE(client_.stream().closed);
  }
}

TEST_F(ReviewApiTest, AnEndlessOrLateAnswerIsGivenUp) {
  for (const bool endless : {true, false}) {
    const auto call = ask_token();
    client_.stream().status = 201;
    if (endless) {
      client_.stream().feed(std::string(std::size_t{65} << 10, ' '));
    } else {
      clock_.advance(call->deadline() - now() - milliseconds{1});
      EXPECT_FALSE(call->poll(now()));
      clock_.advance(milliseconds{1});
    }
    const auto result = call->poll(now());
    ASSERT_TRUE(result);
    ASSERT_FALSE(*result);
    EXPECT_EQ(result->error().code, endless ? Code::kInternal : Code::kTimeout);
    EXPECT_TRUE(client_.stream().closed);
  }
}

TEST_F(ReviewApiTest, TheAnswerComesInPiecesAndIsGivenOnce) {
  const auto call = ask_token();
  EXPECT_GT(call->deadline(), now());
  EXPECT_FALSE(call->poll(now()));
  client_.stream().status = 201;
  for (const char* piece :
       {R"({"status":{"authen)", R"(ticated":true,"user":{"username":"a"}}})"}) {
    client_.stream().feed(piece);
    EXPECT_FALSE(call->poll(now()));
  }
  client_.stream().end();
  const auto result = call->poll(now());
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->user.name, "a");
  EXPECT_TRUE(client_.stream().closed);
  EXPECT_FALSE(call->poll(now()));
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

}  // namespace
}  // namespace slurmlet::kube
