#pragma once

// A CertificateSync with a real store in a directory of its own, before an API server in memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "credentials/certificate_rules.h"
#include "credentials/certificate_sync.h"
#include "fakes/fake_certificate_api.h"
#include "fakes/fake_clock.h"
#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::credentials {

inline tls::CertificateSubject serving_subject() {
  return {"system:node:n1", {"system:nodes"}, {"n1"}, {"192.0.2.1"}};
}

class CertificateSyncFixture : public ::testing::Test {
 protected:
  CertificateSyncFixture() { start(); }

  // A daemon that has just been started: what is on disk is all it has.
  void start() {
    sync_.reset();
    store_ = std::make_unique<tls::CertificateStore>(tree_.path("pki"), "slurmlet-server");
    sync_ = std::make_unique<CertificateSync>(
        api_, *store_,
        CertificateSyncOptions{"serving certificate",
                               kube::kServingSigner,
                               {"digital signature", "server auth"},
                               "n1",
                               unanswered_,
                               std::chrono::hours{12}},
        [this] { return random_; },
        [this](const tls::StoredCertificate& stored) { issued_.push_back(stored); });
    sync_->set_subject(serving_subject());
  }
  SteadyTime step() { return sync_->step(clock_.now()); }
  SteadyTime step_after(Duration time) {
    clock_.advance(time);
    return step();
  }
  Duration until_wake() { return step() - clock_.now().steady; }
  int run(Duration time) {
    return clock_.run(time, [this] { return step(); });
  }

  // What hung is under way for a while yet.
  template <typename Condition>
  void step_until(Condition condition) {
    for (int tries = 0; !condition() && tries < 10000; ++tries) {
      step_after(std::chrono::milliseconds{100});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    EXPECT_TRUE(condition()) << status().problem;
  }

  CertificateStatus status() const { return sync_->status(); }
  std::string asked() const { return status().request_name; }
  // A certificate for the key of the request under way, as a signer would make it.
  std::string certificate(const tls::CertificateSubject& subject = serving_subject(),
                          Duration life = std::chrono::hours{10}) {
    const WallTime now = clock_.now().wall;
    const auto pem =
        tls::make_self_signed(*store_->pending_key(), subject, now,
                              now + std::chrono::duration_cast<WallTime::duration>(life));
    EXPECT_TRUE(pem);
    return pem ? *pem : "";
  }
  // Asks, is granted, and has it.
  void obtain() {
    step();
    api_.issue(asked(), certificate());
    step();
    ASSERT_FALSE(status().pending_since.has_value()) << status().problem;
    ASSERT_TRUE(status().not_after);
  }
  std::string key_file() const { return tree_.path("pki/slurmlet-server.key.tmp").string(); }
  std::string pending_key() const { return tree_.content("pki/slurmlet-server.key.tmp"); }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  fakes::FakeCertificateApi api_;
  double random_ = 0.0;
  Delay unanswered_ = Delay::kCertificateRetry;
  std::vector<tls::StoredCertificate> issued_;
  std::unique_ptr<tls::CertificateStore> store_;
  std::unique_ptr<CertificateSync> sync_;
};

}  // namespace slurmlet::credentials
