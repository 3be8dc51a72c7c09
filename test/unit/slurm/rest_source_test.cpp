// What RestSource asks, and whom it says we are.

#include "rest_source_fixture.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

TEST_F(RestSourceTest, FindsTheVersionOnceAndRemembersIt) {
  make();
  ASSERT_FALSE(ask());
  EXPECT_TRUE(source_->busy());
  find(44);
  answer_as_captured("25.11/mixed-gpu.rest.out");
  const auto result = poll();
  ASSERT_TRUE(result && result->record);
  EXPECT_EQ(result->record->name, "gpu01");
  EXPECT_FALSE(source_->busy());
  EXPECT_EQ(source_->wake_at(), kNever);
  ASSERT_FALSE(ask());
  EXPECT_THAT(paths(), ElementsAre("/slurm/v0.0.45/node/gpu01?flags=ALL&flags=DETAIL",
                                   "/slurm/v0.0.44/node/gpu01?flags=ALL&flags=DETAIL",
                                   "/slurm/v0.0.44/node/gpu01?flags=ALL&flags=DETAIL"));
  EXPECT_EQ(source_->counters().requests, 3U);
  EXPECT_EQ(clients_made_, 1);
}

TEST_F(RestSourceTest, FindsTheOldestReleaseWithinOneQuestion) {
  make();
  ASSERT_FALSE(ask());
  find(38);
  answer_as_captured("22.05.8/mixed-gpu.rest.out");
  const auto result = poll();
  ASSERT_TRUE(result && result->record);
  EXPECT_EQ(source_->counters().requests, 8U);
}

// Before a version has answered there is nothing to confirm.
TEST_F(RestSourceTest, AFullQueryRefreshesWhatIsAllocatedFirst) {
  struct Row {
    int version;
    const char* capture;
    node::AnswerKind plain;
  };
  for (const Row& row :
       {Row{44, "25.11/mixed-gpu.rest.out", node::AnswerKind::kOneNodeBase},
        Row{41, "24.11/apiver.v0.0.41.mixed-gpu.out", node::AnswerKind::kOneNodeBase},
        Row{38, "22.05.8/mixed-gpu.rest.out", node::AnswerKind::kOneNode}}) {
    make();
    ASSERT_FALSE(source_->ask("gpu01", Query::kFull, clock_.now()));
    find(row.version);
    answer_as_captured(row.capture);
    EXPECT_EQ(poll()->record->kind, row.plain);
    EXPECT_EQ(source_->counters().full_queries, 0U) << "it was not one";

    const std::string version = "/slurm/" + api_version_name(row.version);
    for (const int status : {304, 500}) {
      ASSERT_FALSE(source_->ask("gpu01", Query::kFull, clock_.now()));
      EXPECT_EQ(paths().back(),
                version + "/nodes/?update_time=" + update_time(row.version, 4102444800));
      answer(status, "");
      ASSERT_FALSE(poll());
      EXPECT_THAT(paths().back(), testing::StartsWith(version + "/node/gpu01"));
      answer_as_captured(row.capture);
      EXPECT_EQ(poll()->record->kind, status == 304 ? node::AnswerKind::kFullDump : row.plain);
    }
    ASSERT_FALSE(ask());
    EXPECT_THAT(paths().back(), testing::StartsWith(version + "/node/gpu01"));
    EXPECT_EQ(source_->counters().full_queries, 2U);
  }
}

TEST_F(RestSourceTest, AllRequestsOfAQuestionShareItsDeadline) {
  make();
  const SteadyTime deadline = clock_.now().steady + seconds{15};
  ASSERT_FALSE(ask());
  EXPECT_EQ(http_->stream_requests.back().timeout, seconds{15});
  EXPECT_EQ(source_->wake_at(), deadline);
  clock_.advance(seconds{10});
  not_served();
  EXPECT_FALSE(poll());
  EXPECT_EQ(http_->stream_requests.back().timeout, seconds{5});
  EXPECT_EQ(source_->wake_at(), deadline);
  clock_.advance(seconds{5});
  const auto result = poll();
  EXPECT_EQ(cause_of(result), SlurmFailure::kTimeout);
  EXPECT_EQ(result->failure->detail,
            "slurmrestd unix:/run/slurmrestd.socket did not answer within slurm.commandTimeout");
  EXPECT_TRUE(http_->stream().closed);
  // The search goes on where it was.
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.44/node/gpu01?flags=ALL&flags=DETAIL");
}

TEST_F(RestSourceTest, ABodyThatComesInPiecesIsWaitedFor) {
  make();
  ASSERT_FALSE(ask());
  find(44);
  const std::string text = fixture("25.11/mixed-gpu.rest.out");
  const std::string body = text.substr(text.find("\r\n\r\n") + 4);
  http_->stream().status = 200;
  http_->stream().feed(body.substr(0, 100));
  EXPECT_FALSE(poll());
  http_->stream().feed(body.substr(100));
  EXPECT_FALSE(poll());
  http_->stream().end();
  const auto result = poll();
  ASSERT_TRUE(result && result->record);
}

TEST_F(RestSourceTest, ServesNoVersionIsToldAndSearchedAnewNextTime) {
  make();
  ASSERT_FALSE(ask());
  find(36);
  not_served();
  const auto result = poll();
  EXPECT_EQ(cause_of(result), SlurmFailure::kRestUnavailable);
  EXPECT_THAT(result->failure->detail, HasSubstr("serves no API version from v0.0.36 to v0.0.45"));
  EXPECT_EQ(source_->counters().requests, 10U);
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.45/node/gpu01?flags=ALL&flags=DETAIL");
}

TEST_F(RestSourceTest, AnUpgradeWithoutTheKnownVersionIsFollowedWithinTheQuestion) {
  make();
  ASSERT_FALSE(ask());
  find(38);
  answer_as_captured("22.05.8/mixed-gpu.rest.out");
  ASSERT_TRUE(poll());
  ASSERT_FALSE(ask());
  find(42);
  answer_as_captured("24.11/mixed-gpu.rest.out");
  const auto result = poll();
  ASSERT_TRUE(result && result->record);
  EXPECT_EQ(source_->counters().requests, 8U + 1U + 4U);
}

TEST_F(RestSourceTest, AnUpgradeThatStillServesTheKnownVersionIsNoticedByTheAnswer) {
  make();
  ASSERT_FALSE(ask());
  find(42);
  answer_as_captured("24.11/apiver.v0.0.42.mixed-gpu.out");
  ASSERT_TRUE(poll());
  ASSERT_FALSE(ask());
  answer_as_captured("25.11/apiver.v0.0.42.mixed-gpu.out");
  ASSERT_TRUE(poll());
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.45/node/gpu01?flags=ALL&flags=DETAIL");
  find(44);
  answer_as_captured("25.11/mixed-gpu.rest.out");
  ASSERT_TRUE(poll());
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.44/node/gpu01?flags=ALL&flags=DETAIL");
}

// Slurm 23.02 without slurmdbd: its newest version answers 500 to everything.
constexpr const char* kNoDatabase =
    R"({"meta":{"plugin":{"type":"openapi\/v0.0.39","name":"REST v0.0.39"},
        "Slurm":{"version":{"major":23,"micro":8,"minor":2},"release":"23.02.8"}},
        "errors":[{"description":"Failed to open slurmdbd connection","error_number":-1,
        "error":"Unspecified error","source":"slurmdb_connection_get"}]})";

TEST_F(RestSourceTest, AVersionThatWantsADatabaseIsPassedBy) {
  make();
  ASSERT_FALSE(ask());
  find(39);
  answer(500, kNoDatabase);
  EXPECT_FALSE(poll());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.38/node/gpu01");
  answer_as_captured("23.02/mixed-gpu.rest.out");
  const auto result = poll();
  ASSERT_TRUE(result && result->record);
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.38/node/gpu01");
}

TEST_F(RestSourceTest, AControllerThatIsDownIsNotTakenForAMissingDatabase) {
  make();
  for (int i = 0; i < 2; ++i) {
    ASSERT_FALSE(ask());
    find(39);
    answer(500, kNoDatabase);
    EXPECT_FALSE(poll());
    answer_as_captured("23.02/ctld-down.rest.out");
    EXPECT_EQ(cause_of(poll()), SlurmFailure::kControllerUnreachable);
  }
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.39/node/gpu01");
}

TEST_F(RestSourceTest, WithoutAnotherVersionTheWordsOfTheOneCount) {
  make();
  ASSERT_FALSE(ask());
  find(39);
  answer(500, kNoDatabase);
  EXPECT_FALSE(poll());
  not_served();
  const auto result = poll();
  ASSERT_TRUE(result && result->failure);
  EXPECT_NE(result->failure->cause, SlurmFailure::kRestUnavailable);
  ASSERT_FALSE(ask());
  EXPECT_EQ(paths().back(), "/slurm/v0.0.39/node/gpu01");
}

TEST_F(RestSourceTest, AControllerThatIsDownCostsOneRequest) {
  make();
  ASSERT_FALSE(ask());
  find(44);
  answer_as_captured("25.11/mixed-gpu.rest.out");
  ASSERT_TRUE(poll());
  ASSERT_FALSE(ask());
  answer_as_captured("25.11/ctld-down.rest.out");
  EXPECT_EQ(cause_of(poll()), SlurmFailure::kControllerUnreachable);
  EXPECT_EQ(source_->counters().requests, 3U);
}

TEST_F(RestSourceTest, AnUnknownNodeIsAnAnswer) {
  make();
  ASSERT_FALSE(ask("nope01"));
  find(38);
  answer_as_captured("22.05.8/rest-node-notfound.out");
  EXPECT_EQ(cause_of(poll()), SlurmFailure::kNotInSlurm);
  ASSERT_FALSE(ask("nope01"));
  EXPECT_EQ(paths().back(), "/slurm/v0.0.38/node/nope01");
}

TEST_F(RestSourceTest, TheNodeNameIsEncoded) {
  make();
  ASSERT_FALSE(ask("a/b?c d%"));
  EXPECT_EQ(paths().back(), "/slurm/v0.0.45/node/a%2Fb%3Fc%20d%25?flags=ALL&flags=DETAIL");
  EXPECT_EQ(url_encode("n1.a-b_c~"), "n1.a-b_c~");
  EXPECT_EQ(url_encode("\xc3\xa9"), "%C3%A9");
}

TEST_F(RestSourceTest, OverASocketSendsNoHeaderThatIsNotConfigured) {
  make();
  ASSERT_FALSE(ask());
  EXPECT_THAT(http_->stream_requests.back().headers, IsEmpty());
  make(kSocket, "slurm");
  ASSERT_FALSE(ask());
  EXPECT_THAT(http_->stream_requests.back().headers,
              ElementsAre(Pair("X-SLURM-USER-NAME", "slurm")));
}

TEST_F(RestSourceTest, SendsTheTokenAndItsUserReadForEachQuestion) {
  make("https://head:6820");
  token_ = {kToken, "/etc/jwt", {}};
  ASSERT_FALSE(ask());
  EXPECT_THAT(http_->stream_requests.back().headers,
              ElementsAre(Pair("X-SLURM-USER-NAME", "daemon"), Pair("X-SLURM-USER-TOKEN", kToken)));
  find(44);
  EXPECT_THAT(http_->stream_requests.back().headers,
              ElementsAre(Pair("X-SLURM-USER-NAME", "daemon"), Pair("X-SLURM-USER-TOKEN", kToken)));
  answer_as_captured("25.11/mixed-gpu.rest.out");
  ASSERT_TRUE(poll());
  token_.text = "SLURM_JWT=opaque\n";  // as scontrol prints it, without a user to be read
  ASSERT_FALSE(ask());
  EXPECT_THAT(http_->stream_requests.back().headers,
              ElementsAre(Pair("X-SLURM-USER-NAME", "root"), Pair("X-SLURM-USER-TOKEN", "opaque")));
}

// The name service may hang.
TEST_F(RestSourceTest, OurOwnUserIsLookedUpOnlyForATokenThatNamesNone) {
  make("https://head:6820");
  token_ = {kToken, "/etc/jwt", {}};
  ASSERT_FALSE(ask());
  EXPECT_EQ(own_user_lookups_, 0);
  answer_as_captured("25.11/mixed-gpu.rest.out");
  ASSERT_TRUE(poll());
  token_.text = "opaque";
  own_user_.clear();
  ASSERT_FALSE(ask());
  EXPECT_GT(own_user_lookups_, 0);
  EXPECT_THAT(http_->stream_requests.back().headers,
              ElementsAre(Pair("X-SLURM-USER-TOKEN", "opaque")));
}

TEST_F(RestSourceTest, AConfiguredUserWins) {
  make("https://head:6820", "reader");
  token_ = {kToken, "/etc/jwt", {}};
  ASSERT_FALSE(ask());
  EXPECT_THAT(http_->stream_requests.back().headers,
              ElementsAre(Pair("X-SLURM-USER-NAME", "reader"), Pair("X-SLURM-USER-TOKEN", kToken)));
}

TEST_F(RestSourceTest, AnExpiredTokenIsToldWithoutAsking) {
  make("https://head:6820");
  token_ = {kToken, "/etc/jwt", {}};
  clock_.step_wall(seconds{60});
  const auto failure = ask();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, SlurmFailure::kTokenRefused);
  EXPECT_THAT(failure->detail, HasSubstr("the token in /etc/jwt expired at 2026-11-20T14:00:00Z"));
  EXPECT_THAT(failure->detail, Not(HasSubstr("eyJ")));
  EXPECT_FALSE(source_->busy());
  EXPECT_EQ(source_->counters().requests, 0U);
  token_.text = "fresh";
  EXPECT_FALSE(ask());
}

// Its port was free for a moment: a job's user may have taken it.
TEST_F(RestSourceTest, NoTokenIsShownToAListenerThatIsNotTrusted) {
  make("http://127.0.0.1:6820");
  listener_problem_ = Error{Code::kDenied, "not trusted"};
  const auto problem = ask();
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->cause, SlurmFailure::kRestUnavailable);
  EXPECT_EQ(problem->detail,
            "slurmrestd http://127.0.0.1:6820: not trusted; set slurm.restServerUser to "
            "slurmrestd's user, or slurm.restURL to its socket (unix:/PATH) or to https://");
  EXPECT_EQ(source_->counters().requests, 0U);
}

// Between the look at its listener and the connection.
TEST_F(RestSourceTest, NothingIsSentToWhoTookThePortBeforeTheConnection) {
  make("http://127.0.0.1:6820");
  ASSERT_FALSE(ask());
  const auto& may_send = http_->stream_requests.back().may_send;
  ASSERT_TRUE(may_send);
  EXPECT_TRUE(may_send());
  listener_problem_ = Error{Code::kDenied, "not trusted"};
  EXPECT_FALSE(may_send());
  http_->stream().break_off(Error{Code::kDenied, "nothing was sent"});
  listener_problem_.reset();  // and he is gone
  const auto result = poll();
  EXPECT_EQ(cause_of(result), SlurmFailure::kRestUnavailable);
  EXPECT_THAT(result->failure->detail, HasSubstr("6820: not trusted; set slurm.restServerUser"));
}

TEST_F(RestSourceTest, TheAnswerOfAListenerThatIsNotTrustedDoesNotCount) {
  make("http://127.0.0.1:6820");
  ASSERT_FALSE(ask());
  find(38);
  answer_as_captured("22.05.8/rest-v0.0.38-node-idle-gpu01.out");
  listener_problem_ = Error{Code::kDenied, "not trusted"};
  const auto result = poll();
  EXPECT_EQ(cause_of(result), SlurmFailure::kRestUnavailable);
  listener_problem_.reset();
  EXPECT_FALSE(ask());
  EXPECT_EQ(clients_made_, 2) << "never again over that connection";
}

TEST_F(RestSourceTest, AClientThatCannotBeMadeIsTriedAgain) {
  client_error_ = Error{Code::kNotFound, "/etc/ca.pem: no such file or directory"};
  make("https://head:6820");
  const auto failure = ask();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, SlurmFailure::kRestUnavailable);
  EXPECT_EQ(failure->detail,
            "slurmrestd https://head:6820: /etc/ca.pem: no such file or directory");
  client_error_ = Error{Code::kTimeout, "/shared/ca.pem does not answer"};
  const auto hung = ask();
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->cause, SlurmFailure::kFileSystemHangs);
  client_error_.reset();
  EXPECT_FALSE(ask());
  EXPECT_EQ(clients_made_, 3);
}

}  // namespace
}  // namespace slurmlet::slurm
