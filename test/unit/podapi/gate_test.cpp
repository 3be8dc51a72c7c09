#include "podapi/gate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "podapi/fake_review_api.h"
#include "podapi/gate_fixture.h"

namespace slurmlet::podapi {
namespace {

using fakes::FakeReviewApi;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Error kDown{Code::kUnavailable, "POST /apis: connection refused"};

class GateTest : public ::testing::Test {
 protected:
  GateTest() { options_.node_name = "n1"; }

  Gate& gate() {
    if (!gate_) {
      gate_ = std::make_unique<Gate>(
          api_,
          [](const RequestHead& head) {
            return Response{200, "", head.path, head.headers};
          },
          options_);
    }
    return *gate_;
  }
  // The gate's answer after all scripted reviews.
  std::optional<Response> send(const RequestHead& head, const Caller& caller = {}) {
    const RequestId id = next_id_++;
    if (auto answer = gate().begin(id, caller, head, clock_.now())) {
      return answer;
    }
    for (auto& [answered, answer] : step()) {
      if (answered == id) {
        return answer;
      }
    }
    return std::nullopt;
  }
  int status(const RequestHead& head, const Caller& caller = {}) {
    const auto answer = send(head, caller);
    return answer ? answer->status : 0;
  }
  std::vector<std::pair<RequestId, Response>> step() {
    wake_ = kNever;
    return gate().take_answers(clock_.now(), wake_);
  }
  std::optional<Response> begin(RequestId id, const RequestHead& head, const Caller& caller = {}) {
    return gate().begin(id, caller, head, clock_.now());
  }

  void allow_reviews(const Rate& rate) { options_.reviews = rate; }
  void guess();
  void let_everyone_in() {
    api_.tokens = [](const std::string& token) { return FakeReviewApi::user("user of " + token); };
    api_.access = [](const kube::AccessCheck&) { return kube::AccessReview{true, ""}; };
  }
  void allow_only(const std::string& subresource) {
    api_.access = [subresource](const kube::AccessCheck& query) {
      return kube::AccessReview{query.subresource == subresource, ""};
    };
  }
  std::vector<std::string> reviewed_subresources() const {
    std::vector<std::string> names;
    for (const auto& query : api_.reviewed_access) {
      names.push_back(query.subresource);
    }
    return names;
  }

  GateOptions options_;
  FakeReviewApi api_;
  fakes::FakeClock clock_;
  SteadyTime wake_ = kNever;
  RequestId next_id_ = 1;
  std::unique_ptr<Gate> gate_;
};

TEST_F(GateTest, LogsChangedDecisionsWithALimit) {
  const auto lines_with = [](const std::string& text, const std::string& phrase) {
    int count = 0;
    for (auto at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) {
      ++count;
    }
    return count;
  };
  let_everyone_in();
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(status(with_token("/metrics", "one")), 200);
    clock_.advance(options_.allowed_ttl);  // expires the result
  }
  api_.access = [](const kube::AccessCheck&) { return kube::AccessReview{false, ""}; };
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(status(with_token("/metrics", "one")), 403);
    clock_.advance(options_.denied_ttl);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(lines_with(said, "user of one may get nodes/metrics"), 1) << said;
  EXPECT_EQ(lines_with(said, "user of one may not get nodes/metrics"), 1) << said;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) {
    status(with_token("/metrics", "user" + std::to_string(i)));
    clock_.advance(seconds{1});
  }
  EXPECT_LE(lines_with(testing::internal::GetCapturedStderr(), "nodes/metrics"), 22);
}

TEST_F(GateTest, RejectsAnonymous) {
  let_everyone_in();
  for (const std::string authorization :
       {"", "Bearer", "Bearer ", "Bearer  two-spaces", "Basic dXNlcjpwdw==", "Bearer\ttab", "token",
        "Bearer caf\xc3\xa9", "Bearer a\x01z", "BearerX t"}) {
    const auto answer = send(request("GET", "/metrics", authorization));
    ASSERT_TRUE(answer) << authorization;
    EXPECT_EQ(answer->status, 401) << authorization;
    const auto body = json_of(*answer);
    EXPECT_EQ(body["kind"], "Status");
    EXPECT_EQ(body["message"], "Unauthorized");
    EXPECT_EQ(body["reason"], "Unauthorized");
    EXPECT_EQ(body["code"], 401);
  }
  EXPECT_THAT(api_.reviewed_tokens, IsEmpty());
}

TEST_F(GateTest, RejectsTwoAuthorizationHeaders) {
  let_everyone_in();
  auto head = with_token("/metrics", "t");
  head.headers.emplace_back("authorization", "Bearer t");
  EXPECT_EQ(status(head), 401);
}

TEST_F(GateTest, TheBearerSchemeIsReadAsTheApiServerReadsIt) {
  let_everyone_in();
  for (const std::string authorization :
       {"Bearer abc", "bearer abc", "BEARER abc", "  Bearer abc \t", "Bearer abc and more"}) {
    EXPECT_EQ(status(request("GET", "/metrics", authorization)), 200) << authorization;
  }
  EXPECT_THAT(api_.reviewed_tokens, ElementsAre("abc"));
}

TEST_F(GateTest, ACertificateNamesItsUser) {
  let_everyone_in();
  const auto answer =
      send(with_token("/metrics", "t"), certificate("alice", {"dev", "system:masters"}));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  ASSERT_EQ(api_.reviewed_access.size(), 1U);
  EXPECT_EQ(api_.reviewed_access[0],
            (kube::AccessCheck{{"alice", "", {"dev", "system:masters", "system:authenticated"}, {}},
                               "get",
                               "metrics",
                               "n1"}));
  EXPECT_THAT(api_.reviewed_tokens, IsEmpty()) << "the certificate comes first";
}

TEST_F(GateTest, GroupsAreAddedAsTheApiServersAuthenticatorsDo) {
  let_everyone_in();
  send(request("GET", "/metrics"), certificate("system:anonymous", {"g"}));
  send(request("GET", "/metrics"), certificate("a", {"system:unauthenticated"}));
  send(request("GET", "/metrics"), certificate("b", {"system:authenticated"}));
  api_.tokens = [](const std::string&) { return FakeReviewApi::user("c", {"g"}); };
  send(with_token("/metrics", "t"));
  ASSERT_EQ(api_.reviewed_access.size(), 4U);
  EXPECT_THAT(api_.reviewed_access[0].user.groups, ElementsAre("g"));
  EXPECT_THAT(api_.reviewed_access[1].user.groups, ElementsAre("system:unauthenticated"));
  EXPECT_THAT(api_.reviewed_access[2].user.groups, ElementsAre("system:authenticated"));
  EXPECT_THAT(api_.reviewed_access[3].user.groups, ElementsAre("g", "system:authenticated"));
}

TEST_F(GateTest, AnUnverifiedCertificateIsIgnored) {
  let_everyone_in();
  const Caller unverified;
  EXPECT_EQ(status(request("GET", "/metrics"), unverified), 401);
  EXPECT_EQ(status(with_token("/metrics", "t"), unverified), 200);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("")), 401) << "it names nobody";
}

TEST_F(GateTest, RejectsACertificateThatHasExpiredSinceTheHandshake) {
  let_everyone_in();
  Caller caller = certificate("alice");
  caller.certificate->not_after = clock_.now().wall + seconds{5};
  EXPECT_EQ(status(request("GET", "/metrics"), caller), 200);
  clock_.advance(seconds{6});
  EXPECT_EQ(status(request("GET", "/metrics"), caller), 401);
}

TEST_F(GateTest, ATokenIsReviewedThenItsAccess) {
  const auto head = with_token("/metrics/resource", "t");
  EXPECT_FALSE(begin(7, head));
  EXPECT_THAT(step(), IsEmpty());
  EXPECT_EQ(wake_, clock_.now().steady + seconds{10});
  api_.answer_token(FakeReviewApi::user("prometheus", {"system:serviceaccounts"}));
  EXPECT_THAT(step(), IsEmpty());
  ASSERT_EQ(api_.reviewed_access.size(), 1U);
  EXPECT_EQ(api_.reviewed_access[0].user.name, "prometheus");
  api_.answer_access(kube::AccessReview{true, ""});
  const auto answers = step();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].first, 7U);
  EXPECT_EQ(answers[0].second.status, 200);
  EXPECT_EQ(wake_, kNever);
  EXPECT_EQ(begin(8, head)->status, 200) << "both answers are kept";
  EXPECT_EQ(gate().counters().token_reviews, 1U);
  EXPECT_EQ(gate().counters().access_reviews, 1U);
}

TEST_F(GateTest, ForbiddenHasTheKubeletsMessage) {
  allow_only("");
  const auto answer = send(request("GET", "/pods"), certificate("bob"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->content_type, "application/json");
  EXPECT_EQ(json_of(*answer)["message"],
            "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[pods proxy])");
  EXPECT_EQ(json_of(*answer)["reason"], "Forbidden");
}

TEST_F(GateTest, TheLogStreamerGetsPlainText) {
  allow_only("");
  const auto answer = send(request("GET", "//containerLogs/ns/p/c"), certificate("bob\n\xff"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(answer->body,
            "Forbidden (user=bob \xEF\xBF\xBD, verb=get, resource=nodes, subresource(s)=[proxy])");
}

TEST_F(GateTest, AnswersAreKeptForTheirTimes) {
  let_everyone_in();
  const auto head = with_token("/metrics", "t");
  EXPECT_EQ(status(head), 200);
  clock_.advance(minutes{2} - milliseconds{1});
  EXPECT_EQ(status(head), 200);
  EXPECT_EQ(api_.reviewed_tokens.size(), 1U);
  clock_.advance(milliseconds{1});
  EXPECT_EQ(status(head), 200);
  EXPECT_EQ(api_.reviewed_tokens.size(), 2U) << "a token for 2 min";
  EXPECT_EQ(api_.reviewed_access.size(), 1U);
  clock_.advance(minutes{3});
  EXPECT_EQ(status(head), 200);
  EXPECT_EQ(api_.reviewed_access.size(), 2U) << "a yes for 5 min";

  allow_only("");
  const Caller bob = certificate("bob");
  EXPECT_EQ(status(request("GET", "/metrics"), bob), 403);
  clock_.advance(seconds{30} - milliseconds{1});
  EXPECT_EQ(status(request("GET", "/metrics"), bob), 403);
  EXPECT_EQ(api_.reviewed_access.size(), 3U);
  clock_.advance(milliseconds{1});
  EXPECT_EQ(status(request("GET", "/metrics"), bob), 403);
  EXPECT_EQ(api_.reviewed_access.size(), 4U) << "a no for 30 s";
}

TEST_F(GateTest, CachesRejectedTokens) {
  api_.tokens = [](const std::string& token) {
    return kube::TokenReview{false, {}, token == "sick" ? "the authenticator did not answer" : ""};
  };
  EXPECT_EQ(status(with_token("/metrics", "bad")), 401);
  EXPECT_EQ(status(with_token("/metrics", "sick")), 401);
  clock_.advance(seconds{29});
  EXPECT_EQ(status(with_token("/metrics", "bad")), 401);
  EXPECT_EQ(status(with_token("/metrics", "sick")), 401);
  EXPECT_THAT(api_.reviewed_tokens, ElementsAre("bad", "sick"));
  clock_.advance(seconds{1});
  EXPECT_EQ(status(with_token("/metrics", "bad")), 401);
  EXPECT_EQ(status(with_token("/metrics", "sick")), 401);
  EXPECT_THAT(api_.reviewed_tokens, ElementsAre("bad", "sick", "sick"))
      << "the passing one, sooner";
  EXPECT_THAT(api_.reviewed_access, IsEmpty());
}

TEST_F(GateTest, ARevokedTokenIsUnauthenticatedAgain) {
  allow_reviews({0, 2});
  let_everyone_in();
  EXPECT_EQ(status(with_token("/metrics", "t")), 200);  // leaves one review in each bucket
  api_.tokens = [](const std::string&) { return kube::TokenReview{}; };
  clock_.advance(minutes{2});
  EXPECT_EQ(status(with_token("/metrics", "t")), 401) << "within the budget of those let in before";
  clock_.advance(minutes{2});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(status(with_token("/metrics", "t")), 401) << "as any other new one";
    clock_.advance(minutes{2});
  }
  EXPECT_EQ(status(with_token("/metrics", "t")), 429);
}

TEST_F(GateTest, AnswersBelongToOneUserVerbAndSubresource) {
  api_.access = [](const kube::AccessCheck& query) {
    return kube::AccessReview{query.user.name == "a" && query.user.groups.size() == 1 &&
                                  query.verb == "get" && query.subresource == "metrics",
                              ""};
  };
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("a")), 200);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("b")), 403);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("a", {"g"})), 403);
  EXPECT_EQ(status(request("POST", "/metrics"), certificate("a")), 403);
  EXPECT_EQ(status(request("HEAD", "/metrics"), certificate("a")), 403);
  EXPECT_EQ(status(request("GET", "/stats/"), certificate("a")), 403);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("a")), 200);
  // Parts that concatenate to the same text must not be confused.
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("c", {"d", "ef"})), 403);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("c", {"de", "f"})), 403);
  EXPECT_EQ(api_.reviewed_access.size(), 8U);
}

TEST_F(GateTest, SharesEqualReviews) {
  EXPECT_FALSE(begin(1, with_token("/metrics", "t")));
  EXPECT_FALSE(begin(2, with_token("/metrics", "t")));
  EXPECT_FALSE(begin(3, with_token("/stats/summary", "t")));
  EXPECT_EQ(api_.reviewed_tokens.size(), 1U);
  api_.answer_token(FakeReviewApi::user("u"));
  EXPECT_THAT(step(), IsEmpty());
  EXPECT_THAT(reviewed_subresources(), ElementsAre("metrics", "stats"));
  api_.answer_access(kube::AccessReview{true, ""});  // about stats, the last one
  auto answers = step();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].first, 3U);
  clock_.advance(seconds{10});
  answers = step();
  ASSERT_EQ(answers.size(), 2U) << "the other two share the fate of theirs";
  EXPECT_EQ(answers[0].second.status, 503);
  EXPECT_EQ(answers[1].second.status, 503);
}

TEST_F(GateTest, ForgetsClientsThatLeft) {
  EXPECT_FALSE(begin(1, with_token("/metrics", "t")));
  EXPECT_FALSE(begin(2, with_token("/metrics", "t")));
  gate().forget(1);
  gate().forget(99);
  api_.answer_token(kube::TokenReview{});
  const auto answers = step();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].first, 2U);
}

TEST_F(GateTest, AnUnreachableApiServerNeverAllows) {
  for (const Code code : {Code::kUnavailable, Code::kTimeout, Code::kInternal, Code::kInvalid}) {
    api_.tokens = [code](const std::string&) { return Error{code, "secret detail"}; };
    const auto answer = send(with_token("/metrics", "t"));
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(header(*answer, "Retry-After"), "5");
    const auto body = json_of(*answer);
    EXPECT_EQ(body["reason"], "ServiceUnavailable");
    EXPECT_EQ(body["details"]["retryAfterSeconds"], 5);
    EXPECT_THAT(body["message"].get<std::string>(), HasSubstr("the API server cannot be queried"));
    EXPECT_THAT(answer->body, Not(HasSubstr("secret")));
  }
  EXPECT_EQ(api_.reviewed_tokens.size(), 4U) << "errors are not kept";

  api_.access = [](const kube::AccessCheck&) { return kDown; };
  EXPECT_EQ(status(request("GET", "/pods"), certificate("a")), 503);
  EXPECT_THAT(reviewed_subresources(), ElementsAre("pods")) << "an error is not a no";
  let_everyone_in();
  EXPECT_EQ(status(request("GET", "/pods"), certificate("a")), 200);
  EXPECT_THAT(reviewed_subresources(), ElementsAre("pods", "pods")) << "nor is it kept";
}

TEST_F(GateTest, CachedResultsOutliveAnOutage) {
  let_everyone_in();
  EXPECT_EQ(status(with_token("/metrics", "t")), 200);
  api_.tokens = [](const std::string&) { return kDown; };
  api_.access = [](const kube::AccessCheck&) { return kDown; };
  clock_.advance(minutes{1});
  EXPECT_EQ(status(with_token("/metrics", "t")), 200);
  clock_.advance(minutes{1});
  EXPECT_EQ(status(with_token("/metrics", "t")), 503);
}

TEST_F(GateTest, ACredentialWithoutRightsToReviewReportsTheFix) {
  api_.tokens = [](const std::string&) { return Error{Code::kDenied, "403 Forbidden"}; };
  const auto answer = send(with_token("/metrics", "t"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_THAT(json_of(*answer)["message"].get<std::string>(), HasSubstr("system:auth-delegator"));
}

TEST_F(GateTest, UnknownTokensAreReviewedAtALimitedRate) {
  allow_reviews({5, 20});
  options_.max_waiting = 1000;
  api_.tokens = [](const std::string&) { return kube::TokenReview{}; };
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(status(with_token("/metrics", "guess" + std::to_string(i))), 401);
  }
  const auto answer = send(with_token("/metrics", "one too many"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(header(*answer, "Retry-After"), "5");
  EXPECT_EQ(json_of(*answer)["reason"], "TooManyRequests");
  EXPECT_EQ(status(with_token("/metrics", "guess3")), 401) << "no review is needed";
  clock_.advance(milliseconds{199});
  EXPECT_EQ(status(with_token("/metrics", "x")), 429);
  clock_.advance(milliseconds{1});
  EXPECT_EQ(status(with_token("/metrics", "x")), 401);
  EXPECT_EQ(status(with_token("/metrics", "y")), 429);
  clock_.advance(minutes{10});
  int let_through = 0;
  for (int i = 0; i < 40; ++i) {
    let_through += status(with_token("/metrics", "late" + std::to_string(i))) == 401 ? 1 : 0;
  }
  EXPECT_EQ(let_through, 20) << "no more than the burst is saved up";
}

TEST_F(GateTest, AFloodOfUnknownTokensDoesNotLockOutKnownOnes) {
  options_.max_cached = 4;
  let_everyone_in();
  EXPECT_EQ(status(with_token("/metrics", "prometheus")), 200);
  api_.tokens = [](const std::string& token) {
    return token == "prometheus" ? FakeReviewApi::user("user of prometheus") : kube::TokenReview{};
  };
  clock_.advance(minutes{2});
  int reviewed = 0;
  while (status(with_token("/metrics", "guess" + std::to_string(reviewed))) == 401) {
    ++reviewed;
  }
  EXPECT_GT(reviewed, 0);
  EXPECT_EQ(status(with_token("/metrics", "prometheus")), 200) << "although it had expired";
}

// Tries more tokens than reviews are allowed, from many addresses.
void GateTest::guess() {
  const auto tokens = api_.tokens;
  api_.tokens = [](const std::string&) { return kube::TokenReview{}; };
  const auto before = api_.reviewed_tokens.size();
  for (int i = 0; i < 1000; ++i) {
    status(with_token("/metrics", "guess-" + std::to_string(next_id_)),
           from(fmt::format("10.0.{}.{}", i % 10, i % 100)));
  }
  EXPECT_LE(api_.reviewed_tokens.size() - before, 32U);
  api_.tokens = tokens;
}

TEST_F(GateTest, AKnownAddressGetsItsRotatedTokenReviewedDuringAFlood) {
  let_everyone_in();
  const Caller prometheus = from("10.1.0.200");
  EXPECT_EQ(status(with_token("/metrics", "token-0"), prometheus), 200);
  for (int i = 1; i < 5; ++i) {
    guess();
    EXPECT_EQ(status(with_token("/metrics", "token"), from("192.0.2.7")), 429)
        << "no review is left for unknown addresses";
    EXPECT_EQ(status(with_token("/metrics", "token-" + std::to_string(i)), prometheus), 200);
    clock_.advance(minutes{10});
  }
  api_.tokens = [](const std::string&) { return kube::TokenReview{}; };
  int reviewed = 0;
  while (status(with_token("/metrics", "bad-" + std::to_string(reviewed)), prometheus) == 401) {
    ++reviewed;
  }
  EXPECT_EQ(reviewed, static_cast<int>(options_.reviews.burst)) << "no more than its own";
}

// The API server is slow, too.
TEST_F(GateTest, WaitingUnknownTokensLeaveRoomForARotatedToken) {
  options_.max_waiting = 4;
  let_everyone_in();
  const Caller prometheus = from("10.0.0.200");
  EXPECT_EQ(status(with_token("/metrics", "old"), prometheus), 200);
  api_.tokens = nullptr;
  EXPECT_FALSE(begin(101, with_token("/metrics", "s1")));
  EXPECT_FALSE(begin(102, with_token("/metrics", "s2")));
  EXPECT_TRUE(begin(103, with_token("/metrics", "s3"))) << "half of the places";
  EXPECT_FALSE(begin(104, with_token("/metrics", "new"), prometheus));
}

// A pod may share the address of a known client.
TEST_F(GateTest, RandomTokensOfAKnownAddressLeaveRoomForKnownTokens) {
  options_.max_waiting = 4;
  let_everyone_in();
  const Caller prometheus = from("10.0.0.200");
  EXPECT_EQ(status(with_token("/metrics", "old"), prometheus), 200);
  clock_.advance(minutes{5});
  api_.tokens = nullptr;
  for (RequestId id = 101; id <= 103; ++id) {
    EXPECT_FALSE(begin(id, with_token("/metrics", "r" + std::to_string(id)), prometheus)) << id;
  }
  EXPECT_TRUE(begin(104, with_token("/metrics", "r104"), prometheus)) << "three quarters";
  EXPECT_FALSE(begin(105, with_token("/metrics", "old"), prometheus));
}

// Anybody in the cluster has some valid token.
TEST_F(GateTest, UsersWithoutRightsDoNotLockOutOthers) {
  options_.max_cached = 8;
  api_.tokens = [](const std::string& token) { return FakeReviewApi::user(token); };
  api_.access = [](const kube::AccessCheck& query) {
    return kube::AccessReview{query.user.name == "prometheus", ""};
  };
  EXPECT_EQ(status(with_token("/metrics", "prometheus")), 200);
  clock_.advance(minutes{5});
  int reviewed = 0;
  while (status(request("GET", "/metrics"), certificate("u" + std::to_string(reviewed))) == 403) {
    ++reviewed;
  }
  EXPECT_GT(reviewed, 0);
  EXPECT_EQ(status(with_token("/metrics", "prometheus")), 200) << "although it had expired";
}

TEST_F(GateTest, AUserThatLosesItsRightsIsUnknownAgain) {
  allow_reviews({0, 2});
  bool allowed = true;
  api_.access = [&](const kube::AccessCheck&) { return kube::AccessReview{allowed, ""}; };
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("u")),
            200);  // from the bucket of unknown access
  clock_.advance(minutes{5});
  allowed = false;
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("u")),
            403);  // from the bucket of repeated reviews
  clock_.advance(seconds{30});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(status(request("GET", "/metrics"), certificate("u")), 403);  // unknown again
    clock_.advance(seconds{30});
  }
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("u")), 429);
}

TEST_F(GateTest, ReviewsOfAccessAreLimitedToo) {
  allow_reviews({5, 3});
  api_.access = [](const kube::AccessCheck&) { return kube::AccessReview{false, ""}; };
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(status(request("GET", "/metrics"), certificate("u" + std::to_string(i))), 403);
  }
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("u4")), 429);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("u0")), 403) << "kept";
}

TEST_F(GateTest, LimitsWaitingRequests) {
  options_.max_waiting = 4;
  EXPECT_FALSE(begin(1, with_token("/metrics", "s1")));
  EXPECT_FALSE(begin(2, with_token("/metrics", "s2")));
  const auto third = begin(3, with_token("/metrics", "s3"));
  ASSERT_TRUE(third) << "unknown tokens get half of the places";
  EXPECT_EQ(third->status, 503);
  EXPECT_NE(header(*third, "Retry-After"), "");
  EXPECT_FALSE(begin(4, request("GET", "/metrics"), certificate("a")));
  EXPECT_FALSE(begin(5, request("GET", "/metrics"), certificate("a")));
  const auto sixth = begin(6, request("GET", "/metrics"), certificate("a"));
  ASSERT_TRUE(sixth) << "who shares a review waits too";
  EXPECT_EQ(sixth->status, 503);
  gate().forget(5);
  EXPECT_FALSE(begin(7, request("GET", "/metrics"), certificate("a")));
}

TEST_F(GateTest, ReconnectingClientsCannotPileUpReviews) {
  options_.max_waiting = 4;
  allow_reviews({5, 100});
  int reviews = 0;
  for (RequestId id = 1; id <= 50; ++id) {
    reviews += begin(id, with_token("/metrics", "s" + std::to_string(id))) ? 0 : 1;
    gate().forget(id);
  }
  EXPECT_EQ(reviews, 4);
  clock_.advance(seconds{10});
  EXPECT_THAT(step(), IsEmpty());
  EXPECT_FALSE(begin(60, with_token("/metrics", "s60"))) << "the old reviews have ended";
}

TEST_F(GateTest, CachesAreBoundedAndTheOldestGoes) {
  options_.max_cached = 3;
  allow_reviews({5, 100});
  let_everyone_in();
  for (const char* user : {"a", "b", "c", "d"}) {
    EXPECT_EQ(status(request("GET", "/metrics"), certificate(user)), 200);
  }
  EXPECT_EQ(api_.reviewed_access.size(), 4U);
  for (const char* user : {"b", "c", "d"}) {
    EXPECT_EQ(status(request("GET", "/metrics"), certificate(user)), 200);
  }
  EXPECT_EQ(api_.reviewed_access.size(), 4U);
  EXPECT_EQ(status(request("GET", "/metrics"), certificate("a")), 200);
  EXPECT_EQ(api_.reviewed_access.size(), 5U);
}

TEST_F(GateTest, WorksWithoutAnyCache) {
  options_.max_cached = 0;
  allow_only("proxy");
  api_.tokens = [](const std::string&) { return FakeReviewApi::user("u"); };
  EXPECT_EQ(status(with_token("/pods", "t")), 200);
  EXPECT_EQ(status(with_token("/pods", "t")), 200);
  EXPECT_EQ(api_.reviewed_tokens.size(), 2U);
}

}  // namespace
}  // namespace slurmlet::podapi
