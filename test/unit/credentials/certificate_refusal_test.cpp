// CertificateSync: denied, failed, deleted, wrong and unreachable.

#include <functional>

#include "credentials/certificate_sync_fixture.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CertificateRefusalTest : public CertificateSyncFixture {
 protected:
  // The request under way comes to nothing, with that reason, and another key asks later.
  void expect_refused(const std::string& reason) {
    const std::string key = pending_key();
    const SteadyTime next = step();
    EXPECT_THAT(status().problem, HasSubstr(reason));
    EXPECT_FALSE(status().pending_since.has_value());
    EXPECT_EQ(api_.open_watches(), 0);
    EXPECT_GE(next, clock_.now().steady + seconds{10});
    const auto calls = api_.calls().size();
    step_after(seconds{9});
    EXPECT_EQ(api_.calls().size(), calls);
    step_after(next - clock_.now().steady);
    EXPECT_TRUE(status().pending_since.has_value());
    EXPECT_NE(pending_key(), key);
  }
  // How often somebody who answers so, at once, is asked in that time.
  int count_answers(Duration time, const std::function<void()>& answer) {
    random_ = 0.999;
    int count = 0;
    for (const SteadyTime end = clock_.now().steady + time; clock_.now().steady < end;) {
      const SteadyTime next = step();
      if (status().pending_since.has_value()) {
        answer();
        ++count;
      } else {
        clock_.advance(next - clock_.now().steady);
      }
    }
    return count;
  }
};

TEST_F(CertificateRefusalTest, WhatIsNoCertificateOfOursIsAskedForAnewLater) {
  const auto other = tls::generate_key();
  auto subject_of_another = serving_subject();
  subject_of_another.common_name = "system:node:n2";
  const struct {
    const char* reason;
    std::function<void()> answer;
  } kRows[] = {
      {"KubectlDeny: no", [&] { api_.deny(asked(), "KubectlDeny: no"); }},
      {"SignerFailure: usages", [&] { api_.fail(asked(), "SignerFailure: usages"); }},
      {"this node's key",
       [&] {
         const WallTime now = clock_.now().wall;
         api_.issue(asked(),
                    *tls::make_self_signed(*other, serving_subject(), now, now + hours{1}));
       }},
      {"system:node:n2", [&] { api_.issue(asked(), certificate(subject_of_another)); }},
      {"expired",
       [&] {
         const std::string pem = certificate(serving_subject(), minutes{5});
         clock_.advance(minutes{5});
         api_.issue(asked(), pem);
       }},
      {"PEM", [&] { api_.issue(asked(), "garbage"); }},
      {"another client",
       [&] {
         auto theirs = api_.find(asked());
         theirs.request_pem = *tls::make_certificate_request(*other, serving_subject());
         api_.put(theirs);
         start();  // which finds it under its own name
       }},
  };
  step();
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.reason);
    if (&row == &kRows[2]) {
      EXPECT_EQ(status().denied, 2U) << "denied and failed";
    }
    row.answer();
    expect_refused(row.reason);
  }
  EXPECT_THAT(issued_, IsEmpty());
}

TEST_F(CertificateRefusalTest, DenialsWithoutEndAreNoFlood) {
  const int denied = count_answers(hours{24}, [this] { api_.deny(asked(), "no"); });
  EXPECT_GE(denied, 24);
  EXPECT_LT(denied, 40);
}

TEST_F(CertificateRefusalTest, ADeletedRequestIsMadeAgainWithTheSameKey) {
  step();
  const std::string name = asked();
  const std::string key = pending_key();
  clock_.advance(hours{24});
  api_.remove(name);
  const Duration pause = until_wake();
  EXPECT_GT(pause, seconds{1});
  EXPECT_LE(pause, seconds{10});
  EXPECT_FALSE(status().pending_since.has_value());
  EXPECT_THAT(status().problem, HasSubstr("deleted"));
  step_after(pause);
  EXPECT_EQ(asked(), name);
  EXPECT_EQ(pending_key(), key);
  EXPECT_EQ(status().requests, 2U);
  EXPECT_EQ(status().problem, "");
  api_.issue(name, certificate());
  step();
  EXPECT_THAT(issued_, SizeIs(1));
}

TEST_F(CertificateRefusalTest, OldNewsOfADeletionIsIgnored) {
  step();
  api_.tell_of_an_earlier_deletion(asked());
  step();
  EXPECT_TRUE(status().pending_since.has_value());
  EXPECT_EQ(status().requests, 1U);
}

TEST_F(CertificateRefusalTest, DeletionsWithoutEndAreNoFlood) {
  const int deleted = count_answers(hours{12}, [this] { api_.remove(asked()); });
  EXPECT_GT(deleted, 140);  // at most five minutes apart
  EXPECT_LT(deleted, 160);
}

TEST_F(CertificateRefusalTest, AfterASuccessTheBackOffStartsAnew) {
  random_ = 0.999;
  for (int i = 0; i < 6; ++i) {
    step();
    ASSERT_TRUE(status().pending_since.has_value());
    api_.deny(asked(), "no");
    clock_.advance(until_wake());
  }
  obtain();
  run(hours{9});
  step_after(seconds{1});
  ASSERT_TRUE(status().pending_since.has_value());
  api_.deny(asked(), "no");
  EXPECT_LE(until_wake(), minutes{1});
  EXPECT_TRUE(status().not_after);  // the old one goes on
}

TEST_F(CertificateRefusalTest, ARequestThatIsGoneFromTheListIsDeleted) {
  api_.break_watches(Error{Code::kUnavailable, "away"});
  step();
  const std::string name = asked();
  api_.remove(name);
  api_.break_watches(std::nullopt);
  step_after(seconds{30});
  EXPECT_FALSE(status().pending_since.has_value());
  step_after(seconds{30});
  EXPECT_EQ(asked(), name);
}

TEST_F(CertificateRefusalTest, AnotherRequestThatTookItsNameIsLookedAtAnew) {
  step();
  const std::string name = asked();
  kube::CertificateRequest theirs = api_.find(name);
  theirs.request_pem = *tls::make_certificate_request(*tls::generate_key(), serving_subject());
  api_.put(theirs);
  api_.approve(name);
  step();
  EXPECT_FALSE(status().pending_since.has_value());
  step_after(seconds{2});
  EXPECT_THAT(status().problem, HasSubstr("another client"));
}

TEST_F(CertificateRefusalTest, WhatTheApiServerCannotDoIsAskedAgainWithTheSameKey) {
  for (const Code code : {Code::kUnavailable, Code::kDenied, Code::kInvalid, Code::kTimeout}) {
    api_.fail_always(Error{code, "POST: cannot"});
    EXPECT_GE(step_after(minutes{5}), clock_.now().steady + seconds{2});
    EXPECT_THAT(status().problem, HasSubstr("POST: cannot")) << static_cast<int>(code);
  }
  const std::string key = pending_key();
  api_.clear_calls();
  random_ = 0.999;
  EXPECT_LT(run(hours{2}), 60);
  EXPECT_GT(api_.calls().size(), 20U);  // at most five minutes apart
  EXPECT_EQ(status().requests, 0U);
  api_.fail_always(std::nullopt);
  run(minutes{6});
  EXPECT_EQ(pending_key(), key);
  EXPECT_TRUE(status().pending_since.has_value());
  EXPECT_EQ(status().problem, "");
}

TEST_F(CertificateRefusalTest, AnApiServerThatDoesNotAnswerIsTriedAsOftenAsTold) {
  unanswered_ = Delay::kBootstrapRetry;
  start();
  random_ = 0.999;
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    api_.fail_always(Error{code, "POST: cannot"});
    run(hours{1});
    EXPECT_LE(step_after(until_wake()) - clock_.now().steady, seconds{30})
        << static_cast<int>(code);
  }
  // One that answers, if only with a refusal, is left in peace as ever.
  api_.fail_always(Error{Code::kDenied, "POST: forbidden"});
  run(hours{1});
  EXPECT_GT(step_after(minutes{6}) - clock_.now().steady, minutes{4});
}

// An outage counts for nothing in the next one.
TEST_F(CertificateRefusalTest, ACertificateEndsTheLongPauses) {
  start();
  api_.fail_always(Error{Code::kTimeout, "POST: no answer"});
  run(hours{1});
  api_.fail_always(std::nullopt);
  clock_.advance(minutes{6});
  obtain();
  api_.fail_always(Error{Code::kTimeout, "POST: no answer"});
  const auto before = api_.calls().size();
  while (api_.calls().size() == before) {  // until the renewal
    clock_.advance(until_wake());
    step();
  }
  EXPECT_LE(until_wake(), seconds{10});
}

TEST_F(CertificateRefusalTest, APauseThatTheApiServerAsksForIsKept) {
  unanswered_ = Delay::kBootstrapRetry;
  start();
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  EXPECT_GE(until_wake(), seconds{40});
  step_after(seconds{39});
  EXPECT_EQ(api_.calls().size(), 1U);
}

// As a signal ends a call that is under way.
TEST_F(CertificateRefusalTest, ACancelledCallIsMadeAgainAtOnce) {
  start();
  for (int i = 0; i < 10; ++i) {
    api_.fail_next(Error{Code::kCancelled, "cancelled"});
    EXPECT_EQ(step(), clock_.now().steady);
  }
  EXPECT_EQ(status().problem, "");
  step();
  EXPECT_TRUE(status().pending_since.has_value());
}

TEST_F(CertificateRefusalTest, ALostAnswerIsNoSecondRequest) {
  step();
  const auto held = api_.find(asked());
  start();
  api_.fail_next(Error{Code::kTimeout, "POST: no answer"});
  const Duration pause = until_wake();
  EXPECT_FALSE(status().pending_since.has_value());
  step_after(pause);
  EXPECT_EQ(asked(), held.name);
  EXPECT_THAT(api_.names(), SizeIs(1));
}

TEST_F(CertificateRefusalTest, ADeletionBetweenConflictAndReadIsSurvived) {
  api_.fail_next(Error{Code::kConflict, "409"});
  step_after(until_wake());
  EXPECT_TRUE(status().pending_since.has_value());
}

TEST_F(CertificateRefusalTest, AWatchThatFailsIsSaidAndGoesOn) {
  api_.break_watches(Error{Code::kDenied, "WATCH: 401 Unauthorized"});
  step();
  EXPECT_TRUE(status().pending_since.has_value());
  EXPECT_THAT(status().problem, AllOf(HasSubstr(asked()), HasSubstr("401")));
  api_.break_watches(std::nullopt);
  step_after(seconds{30});
  EXPECT_EQ(status().problem, "");
  EXPECT_TRUE(status().pending_since.has_value());
}

TEST_F(CertificateRefusalTest, ADirectoryThatCannotBeWrittenIsTriedAgain) {
  tree_.file("pki", "in the way");
  const Duration pause = until_wake();
  EXPECT_GT(pause, seconds{1});
  EXPECT_THAT(status().problem, HasSubstr("pki"));
  EXPECT_THAT(api_.calls(), IsEmpty());
  tree_.remove("pki");
  step_after(pause);
  EXPECT_TRUE(status().pending_since.has_value());
}

TEST_F(CertificateRefusalTest, WhatCannotBeStoredIsTakenLater) {
  step();
  const std::string name = asked();
  const std::string pem = certificate();
  const std::string key = pending_key();
  tree_.dir("pki/slurmlet-server-current.pem/in-the-way");
  api_.issue(name, pem);
  step();
  EXPECT_NE(status().problem, "");
  EXPECT_THAT(issued_, IsEmpty());
  EXPECT_EQ(pending_key(), key);
  tree_.remove("pki/slurmlet-server-current.pem");
  step_after(seconds{2});
  EXPECT_THAT(issued_, SizeIs(1));
  EXPECT_THAT(api_.names(), SizeIs(1));
}

TEST_F(CertificateRefusalTest, CertificatesThatAreOldWhenTheyComeAreNoFlood) {
  const int issued = count_answers(hours{12}, [this] {
    const WallTime now = clock_.now().wall;
    api_.issue(asked(), *tls::make_self_signed(*store_->pending_key(), serving_subject(),
                                               now - hours{99}, now + hours{1}));
  });
  EXPECT_GT(issued, 10);
  EXPECT_LT(issued, 30);
}

}  // namespace
}  // namespace slurmlet::credentials
