// OwnCredentials: when the node's credential is given up.

#include "credentials/own_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

class OwnCredentialsTest : public ::testing::Test {
 protected:
  OwnCredentialsTest() {
    const auto ca = tls::make_self_signed({.common_name = "test-ca", .is_ca = true});
    const auto own =
        tls::issue(ca, {.common_name = "system:node:n1", .organizations = {"system:nodes"}});
    tree_.file("ca.crt", ca.certificate)
        .file("own.pem", own.certificate + own.key)
        .file("kubeconfig",
              "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
              "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
              "clusters: [{name: k, cluster: {server: 'https://api:6443', "
              "certificate-authority: ca.crt}}]\n"
              "users: [{name: u, user: {client-certificate: own.pem, client-key: own.pem}}]\n");
    settings_.kubernetes.kubeconfig = tree_.path("kubeconfig").string();
    settings_.kubernetes.bootstrap_kubeconfig = tree_.path("bootstrap").string();
    settings_.kubernetes.cert_dir = tree_.path("pki").string();
    settings_.endpoint.port = 0;
    const auto access = ApiAccess::open(settings_, clock_);
    EXPECT_TRUE(access) << access.error().message;
    access_.emplace(*access);
    serving_.emplace(settings_.endpoint, "n1", access_->ca_pem());
    credentials_.emplace(settings_, *access_, *serving_, "n1", client_,
                         kube::CallOptions{&counter_, {}});
    // The wall clock of the certificate's time, and then what somebody has set it to.
    const auto until = access_->client_certificate()->not_after;
    clock_.step_wall(std::chrono::duration_cast<std::chrono::milliseconds>(until - hours{1} -
                                                                           clock_.now().wall));
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

TEST_F(OwnCredentialsTest, WhatIsExpiredAndRefusedIsGivenUpAtOnce) {
  clock_.step_wall(hours{2});
  EXPECT_FALSE(needs_bootstrap());
  refuse(2);
  EXPECT_FALSE(needs_bootstrap());
  refuse(1);
  EXPECT_TRUE(needs_bootstrap());
  EXPECT_THAT(problem(), HasSubstr("401"));
  EXPECT_THAT(problem(), HasSubstr("expired at"));
}

TEST_F(OwnCredentialsTest, WhatLooksGoodAndIsRefusedIsGivenUpAfterAWhile) {
  refuse(3);
  EXPECT_FALSE(needs_bootstrap());
  clock_.advance(seconds{29});
  EXPECT_FALSE(needs_bootstrap());
  clock_.advance(seconds{31});
  EXPECT_TRUE(needs_bootstrap());
  counter_.count("PUT", 200);
  EXPECT_FALSE(needs_bootstrap());
}

// An answer that never came says nothing about the credential.
TEST_F(OwnCredentialsTest, AnApiServerThatIsAwayIsNoRefusal) {
  clock_.step_wall(hours{2});
  for (int i = 0; i < 10; ++i) {
    counter_.count("PUT", 0);
  }
  clock_.advance(hours{1});
  EXPECT_FALSE(needs_bootstrap());
}

}  // namespace
}  // namespace slurmlet::credentials
