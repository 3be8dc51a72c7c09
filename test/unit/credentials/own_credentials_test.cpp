// OwnCredentials: when the node's credential is given up, renewed or reloaded, and when a serving
// certificate is requested.

#include "credentials/own_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "fakes/kubeconfig.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class OwnCredentialsTest : public ::testing::Test {
 protected:
  OwnCredentialsTest() {
    const auto own = certificate_of("n1");
    tree_.file("ca.crt", ca_.certificate)
        .file("own.pem", own.certificate + own.key)
        .file("kubeconfig",
              fakes::kubeconfig("server: 'https://api:6443', certificate-authority: ca.crt",
                                "client-certificate: own.pem, client-key: own.pem"));
    settings_.kubernetes.kubeconfig = tree_.path("kubeconfig").string();
    settings_.kubernetes.bootstrap_kubeconfig = tree_.path("bootstrap").string();
    settings_.kubernetes.cert_dir = tree_.path("pki").string();
    settings_.endpoint.port = 0;
    make();
    // The wall clock of the certificate's time. At a whole minute, because looks at files are
    // aligned to the wall clock.
    const WallTime until = access_->client_certificate()->not_after;
    clock_.step_wall(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::ceil<minutes>(until - hours{1}) - clock_.now().wall));
  }
  tls::Issued certificate_of(const std::string& node) const {
    return tls::issue(ca_,
                      {.common_name = "system:node:" + node, .organizations = {"system:nodes"}});
  }
  // With the files and settings as they are.
  void make() {
    credentials_.reset();
    const auto access = ApiAccess::open(settings_, clock_);
    EXPECT_TRUE(access) << access.error().message;
    access_.emplace(*access);
    serving_.emplace(settings_.endpoint, "n1", access_->ca_pem());
    credentials_.emplace(settings_, *access_, *serving_, "n1", client_,
                         kube::CallOptions{&counter_, {}});
  }
  bool needs_bootstrap() {
    credentials_->step(clock_.now());
    return credentials_->needs_bootstrap(clock_.now());
  }
  std::string problem() const { return credentials_->report(clock_.now().wall).client_problem; }
  void refuse(int times) {
    for (int i = 0; i < times; ++i) {
      counter_.count("PUT", 401);
    }
  }

  void put_own(const tls::Issued& pair) { tree_.file("own.pem", pair.certificate + pair.key); }
  void run(Duration time) {
    clock_.run(time, [this] { return credentials_->step(clock_.now()); });
  }
  // The signers that were asked for a certificate.
  std::vector<std::string> signers() const {
    std::vector<std::string> out;
    for (const auto& request : client_.requests) {
      if (request.method == "POST") {
        const auto body = nlohmann::json::parse(request.body, nullptr, false);
        out.push_back(body["spec"].value("signerName", ""));
      }
    }
    return out;
  }

  tls::Issued ca_ = tls::make_self_signed({.common_name = "test-ca", .is_ca = true});
  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  fakes::FakeHttpClient client_;
  kube::RequestCounter counter_;
  config::Settings settings_;
  std::optional<ApiAccess> access_;
  std::optional<ServingCertificate> serving_;
  std::optional<OwnCredentials> credentials_;
};

TEST_F(OwnCredentialsTest, AClockThatSaysExpiredGivesUpNothingWhileTheApiServerAcceptsIt) {
  EXPECT_FALSE(needs_bootstrap());
  clock_.step_wall(hours{24 * 365 * 9});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) {
    counter_.count("PUT", 200);
    clock_.advance(seconds{10});
    EXPECT_FALSE(needs_bootstrap());
    EXPECT_EQ(problem(), "");
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto said = log.find("by this machine's clock the client certificate expired at");
  EXPECT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("expired at", said + 60), std::string::npos) << log;
}

// An answer that never came says nothing about the credential.
TEST_F(OwnCredentialsTest, WhatIsExpiredAndRefusedIsGivenUpAtOnce) {
  clock_.step_wall(hours{2});
  for (int i = 0; i < 10; ++i) {
    counter_.count("PUT", 0);
  }
  clock_.advance(hours{1});
  EXPECT_FALSE(needs_bootstrap());
  refuse(2);
  EXPECT_FALSE(needs_bootstrap());
  refuse(1);
  EXPECT_TRUE(needs_bootstrap());
  EXPECT_THAT(problem(), AllOf(HasSubstr("401"), HasSubstr("expired at")));
}

TEST_F(OwnCredentialsTest, WhatLooksGoodAndIsRefusedIsGivenUpAfterAWhile) {
  refuse(3);
  EXPECT_FALSE(needs_bootstrap());
  clock_.advance(seconds{20});
  EXPECT_FALSE(needs_bootstrap());
  clock_.advance(seconds{40});
  EXPECT_TRUE(needs_bootstrap());
  counter_.count("PUT", 200);
  EXPECT_FALSE(needs_bootstrap());
}

TEST_F(OwnCredentialsTest, WithoutABootstrapTheCureIsLoggedOnceAndNobodyKeptAwake) {
  settings_.kubernetes.bootstrap_kubeconfig.clear();
  make();
  refuse(3);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    clock_.advance(hours{1});
    EXPECT_FALSE(needs_bootstrap());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto said = log.find("system:node:n1");
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("system:node:n1", said + 1), std::string::npos) << log;
  EXPECT_GT(credentials_->step(clock_.now()), clock_.now().steady + seconds{1});
}

TEST_F(OwnCredentialsTest, AReplacedCertificateIsUsedUnlessItIsAnotherNodes) {
  run(seconds{1});
  auto before = access_->source()();
  put_own(certificate_of("n1"));
  run(seconds{2});
  EXPECT_NE(access_->source()(), before);
  EXPECT_EQ(credentials_->report(clock_.now().wall).reload_failures, 0U);
  before = access_->source()();
  put_own(certificate_of("n2"));
  run(seconds{2});
  EXPECT_EQ(access_->source()(), before);
  EXPECT_GT(credentials_->report(clock_.now().wall).reload_failures, 0U);
}

// One without an address would have to be replaced at once.
TEST_F(OwnCredentialsTest, AServingCertificateIsRequestedOnceTheNodeHasAnAddress) {
  settings_.endpoint.port = 10250;
  make();
  run(seconds{10});
  credentials_->set_addresses({{"Hostname", "n1"}});
  run(seconds{10});
  EXPECT_THAT(signers(), IsEmpty());
  credentials_->set_addresses({{"InternalIP", "192.0.2.7"}, {"Hostname", "n1"}});
  run(seconds{10});
  ASSERT_THAT(signers(), Not(IsEmpty()));
  EXPECT_THAT(signers(), Each(kube::kServingSigner));
}

TEST_F(OwnCredentialsTest, NoServingCertificateIsRequestedWhereOneIsGivenOrUnwanted) {
  settings_.endpoint.port = 10250;
  for (const bool is_given : {false, true}) {
    settings_.endpoint.server_tls_bootstrap = is_given;
    settings_.endpoint.certificate_file = settings_.endpoint.key_file =
        is_given ? tree_.path("own.pem").string() : "";
    make();
    credentials_->set_addresses({{"InternalIP", "192.0.2.7"}});
    run(minutes{10});
    EXPECT_THAT(signers(), IsEmpty());
  }
}

// Of certDir; a certificate that somebody else put there is theirs to renew.
TEST_F(OwnCredentialsTest, TheCertificateOfTheBootstrapIsRenewed) {
  run(minutes{10});
  EXPECT_THAT(signers(), IsEmpty()) << "it is the administrator's";
  const auto own = certificate_of("n1");
  tree_.file("pki/slurmlet-client-current.pem", own.certificate + own.key);
  tree_.file("kubeconfig",
             fakes::kubeconfig("server: 'https://api:6443', certificate-authority: ca.crt",
                               "client-certificate: pki/slurmlet-client-current.pem, "
                               "client-key: pki/slurmlet-client-current.pem"));
  make();
  run(minutes{1});
  EXPECT_THAT(signers(), IsEmpty()) << "it is fresh";
  run(minutes{44});
  ASSERT_THAT(signers(), Not(IsEmpty())) << "more than 90 % of its hour are over";
  EXPECT_THAT(signers(), Each(kube::kClientSigner));
  client_.requests.clear();
  settings_.kubernetes.rotate_certificates = false;
  make();
  run(minutes{2});
  EXPECT_THAT(signers(), IsEmpty());
}

}  // namespace
}  // namespace slurmlet::credentials
