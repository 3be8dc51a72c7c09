// CertificateSync: asking, waiting, renewing.

#include "credentials/certificate_sync.h"

#include "credentials/certificate_sync_fixture.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class CertificateSyncTest : public CertificateSyncFixture {};

TEST_F(CertificateSyncTest, WithoutASubjectNothingIsAsked) {
  sync_->set_subject(std::nullopt);
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
  EXPECT_FALSE(store_->has_pending_key());
}

TEST_F(CertificateSyncTest, AsksWithAKeyThatIsOnDiskAndWaits) {
  const Duration to_alarm = until_wake();  // then a person is called for
  ASSERT_THAT(api_.names(), SizeIs(1));
  const std::string name = api_.names().front();
  const auto& request = api_.find(name);
  EXPECT_EQ(request.signer_name, "kubernetes.io/kubelet-serving");
  EXPECT_THAT(request.usages, UnorderedElementsAre("digital signature", "server auth"));
  EXPECT_EQ(request.expiration, hours{12});
  const auto digest = tls::public_key_digest(pending_key());
  ASSERT_TRUE(digest);
  EXPECT_EQ(*tls::request_public_key_digest(request.request_pem), *digest);
  EXPECT_EQ(name, certificate_request_name(*digest, request.signer_name, serving_subject()));
  EXPECT_EQ(status().request_name, name);
  EXPECT_EQ(status().pending_since, clock_.now().wall);
  EXPECT_EQ(status().requests, 1U);
  EXPECT_EQ(status().problem, "");
  EXPECT_EQ(status().not_after, std::nullopt);
  const auto calls = api_.calls();
  EXPECT_EQ(step_after(to_alarm), kNever);
  EXPECT_LE(run(hours{24 * 30}), 3);
  EXPECT_EQ(api_.calls(), calls) << "nothing is sent, however long it waits";
  EXPECT_TRUE(status().pending_since.has_value());
}

TEST_F(CertificateSyncTest, AnIssuedCertificateIsStoredAndHandedOut) {
  step();
  const std::string key = pending_key();
  const std::string pem = certificate();
  api_.approve(asked());
  step_after(seconds{1});
  EXPECT_TRUE(status().pending_since.has_value());
  api_.issue(asked(), pem);
  step_after(seconds{1});
  ASSERT_THAT(issued_, SizeIs(1));
  EXPECT_EQ(issued_[0].certificate_pem, pem);
  EXPECT_EQ(issued_[0].key_pem, key);
  EXPECT_EQ(status().request_name, "");
  EXPECT_EQ(status().pending_since, std::nullopt);
  EXPECT_EQ(status().not_after, issued_[0].summary.not_after);
  EXPECT_EQ(status().renewals, 0U);
  EXPECT_EQ(api_.open_watches(), 0);
  EXPECT_FALSE(store_->has_pending_key());
  ASSERT_TRUE(*store_->current());
  EXPECT_EQ((**store_->current()).certificate_pem, pem);
}

TEST_F(CertificateSyncTest, WhatACrashJustAfterTheCertificateCameHasLeftIsTidiedUp) {
  step();
  const std::string key = pending_key();
  api_.issue(asked(), certificate());
  step();
  ASSERT_FALSE(status().pending_since.has_value());
  for (const std::string& left : {key, key.substr(0, key.size() / 2)}) {
    tree_.file("pki/slurmlet-server.key.tmp", left, 0600);
    start();
    step();
    EXPECT_FALSE(std::filesystem::exists(tree_.path("pki/slurmlet-server.key.tmp")));
    EXPECT_FALSE(status().pending_since.has_value());
    EXPECT_EQ(issued_.back().key_pem, key);
  }
  EXPECT_EQ(status().requests, 0U);
}

TEST_F(CertificateSyncTest, RestsUntilItsRenewalIsDueAndLooksAtTheClockNowAndThen) {
  obtain();
  const auto calls = api_.calls();
  EXPECT_LE(run(hours{7} - seconds{10}), 20) << "70 % of ten hours are not over";
  EXPECT_EQ(api_.calls(), calls);
  clock_.step_wall(hours{20});
  EXPECT_LE(run(hours{1}), 4);
  step();
  EXPECT_EQ(status().requests, 2U) << "a clock that is set forward is noticed";
}

TEST_F(CertificateSyncTest, IsRenewedWithAnotherKeyAndTheOldOneServesMeanwhile) {
  obtain();
  const std::string first = issued_[0].key_pem;
  run(hours{7});
  step_after(seconds{1});
  EXPECT_EQ(status().requests, 2U);
  EXPECT_TRUE(status().pending_since.has_value());
  EXPECT_EQ(status().not_after, issued_[0].summary.not_after);
  api_.issue(asked(), certificate());
  step();
  ASSERT_THAT(issued_, SizeIs(2));
  EXPECT_NE(issued_[1].key_pem, first);
  EXPECT_EQ(status().renewals, 1U);
  EXPECT_GT(issued_[1].summary.not_after, issued_[0].summary.not_after);
  EXPECT_GT(until_wake(), minutes{30});
}

TEST_F(CertificateSyncTest, TheRenewalIsSpread) {
  random_ = 0.999;
  obtain();
  run(hours{8});
  EXPECT_EQ(status().requests, 1U);
  run(hours{1});
  EXPECT_EQ(status().requests, 2U);
}

TEST_F(CertificateSyncTest, AClockThatIsSetBackDoesNotDropARequest) {
  obtain();
  run(hours{7});
  step_after(seconds{1});
  const std::string name = asked();
  ASSERT_NE(name, "");
  clock_.step_wall(-hours{6});
  step_after(seconds{1});
  EXPECT_EQ(asked(), name);
}

// --- a directory that hangs

TEST_F(CertificateSyncTest, AStoreThatHangsCostsTheCertificateOnlyAndLateOnesAreUsed) {
  for (const bool is_issued : {false, true}) {
    fakes::HangingFile hang{key_file()};
    step();
    EXPECT_THAT(status().problem, HasSubstr(key_file()));
    EXPECT_THAT(issued_, IsEmpty());
    EXPECT_THAT(api_.calls(), IsEmpty());
    hang.answer();
    step_until([&] { return is_issued ? !issued_.empty() : status().pending_since.has_value(); });
    EXPECT_EQ(status().problem, "");
    if (!is_issued) {
      api_.issue(asked(), certificate());
    }
    api_.clear_calls();
  }
  run(minutes{10});
  EXPECT_THAT(api_.calls(), IsEmpty());
  EXPECT_THAT(issued_, SizeIs(1));
}

TEST_F(CertificateSyncTest, ADenialOutlastsAStoreThatWasLate) {
  step();
  api_.deny(asked(), "not this node");
  fakes::HangingFile hang{key_file()};
  step();
  step();
  EXPECT_EQ(status().problem, key_file() + " does not answer");
  hang.answer();
  step_until([this] { return status().problem.find("not this node") != std::string::npos; });
}

// --- restarts

TEST_F(CertificateSyncTest, ARestartWhileItWaitsGoesOnWithTheSameRequest) {
  step();
  const std::string name = asked();
  const std::string key = pending_key();
  for (const bool was_issued_meanwhile : {false, true}) {
    if (was_issued_meanwhile) {
      api_.issue(name, certificate());
    }
    start();
    step();
    EXPECT_EQ(status().pending_since.has_value(), !was_issued_meanwhile);
    EXPECT_THAT(api_.names(), ElementsAre(name));
  }
  ASSERT_THAT(issued_, SizeIs(1));
  EXPECT_EQ(issued_[0].key_pem, key);
}

TEST_F(CertificateSyncTest, ARestartBetweenKeyAndRequestUsesTheKey) {
  api_.fail_next(Error{Code::kUnavailable, "killed here"});
  step();
  const std::string key = pending_key();
  ASSERT_NE(key, "");
  start();
  step();
  EXPECT_EQ(pending_key(), key);
  EXPECT_EQ(*tls::request_public_key_digest(api_.find(asked()).request_pem),
            *tls::public_key_digest(key));
}

TEST_F(CertificateSyncTest, OneThatWasDeniedMeanwhileIsDenied) {
  step();
  const std::string name = asked();
  api_.deny(name, "Policy: no");
  start();
  const Duration pause = until_wake();
  EXPECT_GT(pause, seconds{1});
  EXPECT_THAT(status().problem, HasSubstr("Policy: no"));
  EXPECT_EQ(status().denied, 1U);
  step_after(pause);
  EXPECT_NE(asked(), name);
}

// The caller decides what an expired one is good for.
TEST_F(CertificateSyncTest, AValidCertificateNeedsNoCallAfterARestartAndAnExpiredOneAtOnce) {
  obtain();
  for (const bool is_expired : {false, true}) {
    if (is_expired) {
      clock_.advance(hours{24 * 30});
    }
    api_.clear_calls();
    issued_.clear();
    start();
    step();
    EXPECT_THAT(issued_, SizeIs(1));
    EXPECT_TRUE(status().not_after);
    EXPECT_EQ(api_.writes(), is_expired ? 1 : 0);
    EXPECT_EQ(status().pending_since.has_value(), is_expired);
  }
}

TEST_F(CertificateSyncTest, ADamagedFileIsReplaced) {
  obtain();
  tree_.remove("pki/slurmlet-server-current.pem").file("pki/slurmlet-server-current.pem", "torn");
  start();
  step();
  EXPECT_TRUE(status().pending_since.has_value());
  api_.issue(asked(), certificate());
  step();
  EXPECT_EQ(status().problem, "");
  EXPECT_TRUE(*store_->current());
}

// --- subjects

TEST_F(CertificateSyncTest, TheOrderOfAddressesIsNoChangeAndOneLessIs) {
  auto subject = serving_subject();
  subject.ip_addresses = {"192.0.2.1", "2001:db8::1"};
  sync_->set_subject(subject);
  step();
  const std::string name = asked();
  subject.ip_addresses = {"2001:DB8::1", "192.0.2.1"};
  sync_->set_subject(subject);
  step();
  EXPECT_EQ(asked(), name);
  api_.issue(asked(), certificate(subject));
  step();
  sync_->set_subject(serving_subject());
  run(minutes{2});
  EXPECT_EQ(status().requests, 2U);
}

TEST_F(CertificateSyncTest, AnotherAddressMakesANewOneDueOnceItHasSettled) {
  obtain();
  auto subject = serving_subject();
  subject.ip_addresses = {"192.0.2.77"};
  sync_->set_subject(subject);
  const Duration settling = until_wake();
  EXPECT_GE(settling, seconds{30});
  EXPECT_LE(settling, minutes{2});
  step_after(settling - seconds{1});
  EXPECT_EQ(status().requests, 1U);
  step_after(seconds{1});
  EXPECT_EQ(status().requests, 2U);
  api_.issue(asked(), certificate(subject));
  step();
  ASSERT_THAT(issued_, SizeIs(2));
  EXPECT_THAT(issued_[1].summary.ip_addresses, ElementsAre("192.0.2.77"));
}

// A second network card on the way to the API server, say.
TEST_F(CertificateSyncTest, AnAddressThatComesAndGoesCostsNeitherKeyNorRequest) {
  obtain();
  const auto calls = api_.calls();
  auto subject = serving_subject();
  for (int i = 0; i < 1000; ++i) {
    subject.ip_addresses = {i % 2 == 0 ? "192.0.2.77" : "192.0.2.1"};
    sync_->set_subject(subject);
    step_after(seconds{20});
    EXPECT_FALSE(store_->has_pending_key());
  }
  EXPECT_EQ(api_.calls(), calls);
}

TEST_F(CertificateSyncTest, AddressesThatChangeEveryFewMinutesAreFollowedEverMoreSlowly) {
  random_ = 0.999;
  obtain();
  auto subject = serving_subject();
  for (int minute = 0; minute < 24 * 60; minute += 3) {
    subject.ip_addresses = {"192.0.2." + std::to_string(minute / 3 % 100 + 100)};
    sync_->set_subject(subject);
    for (int i = 0; i < 6; ++i) {
      step_after(seconds{30});
      if (status().pending_since.has_value()) {
        api_.issue(asked(), certificate(subject, hours{24 * 365}));
        step();
      }
    }
  }
  EXPECT_GE(status().requests, 8U);
  EXPECT_LE(status().requests, 20U);
  EXPECT_EQ(status().problem, "");
  // After a quiet time the next one is followed at once again.
  run(hours{24});
  const auto before = status().requests;
  subject.ip_addresses = {"192.0.2.77"};
  sync_->set_subject(subject);
  run(minutes{2});
  EXPECT_EQ(status().requests, before + 1);
}

TEST_F(CertificateSyncTest, AChangeDropsTheRequestThatWaitsAndItsKey) {
  step();
  const std::string first = asked();
  const std::string key = pending_key();
  auto subject = serving_subject();
  subject.dns_names = {"n1", "alias"};
  sync_->set_subject(subject);
  step();
  EXPECT_EQ(asked(), first);
  run(minutes{2});
  EXPECT_NE(asked(), first);
  EXPECT_NE(pending_key(), key);
  EXPECT_EQ(api_.open_watches(), 1);
  api_.issue(first, "too late");
  step();
  EXPECT_EQ(status().problem, "");
  EXPECT_TRUE(status().pending_since.has_value());
}

TEST_F(CertificateSyncTest, AChangeBackToWhatTheCertificateNamesAsksForNothing) {
  obtain();
  auto subject = serving_subject();
  subject.dns_names = {"alias"};
  sync_->set_subject(subject);
  run(minutes{2});
  ASSERT_TRUE(status().pending_since.has_value());
  sync_->set_subject(serving_subject());
  run(minutes{30});
  EXPECT_FALSE(status().pending_since.has_value());
  EXPECT_EQ(status().requests, 2U);
  EXPECT_FALSE(store_->has_pending_key());
}

TEST_F(CertificateSyncTest, AfterARestartTheNamesOfTheFileCount) {
  obtain();
  start();
  auto subject = serving_subject();
  subject.ip_addresses = {"192.0.2.77"};
  sync_->set_subject(subject);
  step();
  EXPECT_TRUE(status().pending_since.has_value());
}

// A signer that adds names must not be asked without end.
TEST_F(CertificateSyncTest, NamesThatTheSignerAddsAreNoChange) {
  step();
  auto more = serving_subject();
  more.dns_names.emplace_back("added-by-the-signer");
  api_.issue(asked(), certificate(more));
  step();
  EXPECT_EQ(status().problem, "");
  EXPECT_GT(until_wake(), minutes{30});
  EXPECT_EQ(status().requests, 1U);
}

}  // namespace
}  // namespace slurmlet::credentials
