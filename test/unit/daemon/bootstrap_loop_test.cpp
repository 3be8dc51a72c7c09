#include "daemon/bootstrap_loop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "fakes/kubeconfig.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::daemon {
namespace {

using namespace std::chrono_literals;

// Runs ahead for its first `wrong` readings; then somebody sets it.
class WrongClock final : public Clock {
 public:
  explicit WrongClock(int wrong) : wrong_(wrong) {}
  Now now() const override {
    Now out = SystemClock{}.now();
    out.wall += wrong_ > 0 ? 48h : 0h;
    --wrong_;
    return out;
  }
  bool is_set() const { return wrong_ < 0; }

 private:
  mutable std::atomic<int> wrong_;
};

// Ends what does not end by itself.
class Patience {
 public:
  explicit Patience(std::chrono::seconds patience)
      : thread_([this, patience] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, patience, [this] { return done_; })) {
            ::kill(::getpid(), SIGTERM);
          }
        }) {}
  ~Patience() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

TEST(Bootstrap, EndsWhenTheClockIsSetAndTheCertificateHasNotExpiredAfterAll) {
  fakes::TempTree tree;
  const auto ca = tls::make_self_signed({.common_name = "test-ca", .is_ca = true});
  const auto own =
      tls::issue(ca, {.common_name = "system:node:n1", .organizations = {"system:nodes"}});
  const auto kubeconfig = [](const std::string& user) {
    return fakes::kubeconfig("server: 'https://127.0.0.1:1', certificate-authority: ca.crt", user);
  };
  tree.file("ca.crt", ca.certificate)
      .file("pki/slurmlet-client-current.pem", own.certificate + own.key)
      .file("kubeconfig", kubeconfig("client-certificate: pki/slurmlet-client-current.pem, "
                                     "client-key: pki/slurmlet-client-current.pem"))
      .file("bootstrap", kubeconfig("token: abcdef.0123456789abcdef"));
  config::Settings settings;
  settings.kubernetes.kubeconfig = tree.path("kubeconfig").string();
  settings.kubernetes.bootstrap_kubeconfig = tree.path("bootstrap").string();
  settings.kubernetes.cert_dir = tree.path("pki").string();
  settings.endpoint.healthz_port = 0;

  auto signals = Signals::open();
  ASSERT_TRUE(signals);
  const Patience patience{20s};
  const WrongClock clock{3};
  status::ServiceReport service{status::Notifier{}, std::nullopt};
  Shared shared{service, clock};
  EXPECT_TRUE(run_bootstrap(settings, "n1", *signals, shared));
  EXPECT_TRUE(clock.is_set());
}

}  // namespace
}  // namespace slurmlet::daemon
