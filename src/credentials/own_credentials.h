#pragma once

// Keeps valid what this daemon shows of itself while it runs: renews the client certificate that it
// got by bootstrap, requests the serving certificate of the kubelet endpoint, and reloads files
// that somebody replaces. A loop of the main thread.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"
#include "credentials/access.h"
#include "credentials/certificate_sync.h"
#include "credentials/credential_files.h"
#include "credentials/serving_certificate.h"
#include "http/client.h"
#include "kube/certificate_api.h"
#include "node/facts.h"
#include "tls/certificate_store.h"

namespace slurmlet::credentials {

class OwnCredentials {
 public:
  // All references must outlive it.
  OwnCredentials(const config::Settings& settings, ApiAccess& access, ServingCertificate& serving,
                 const std::string& node_name, http::Client& client, kube::CallOptions calls);

  SteadyTime step(Now now);
  int fd() const { return files_->fd(); }

  // Addresses of the Node, once it is registered: before that no serving certificate is requested.
  void set_addresses(const std::vector<node::Address>& addresses);

  // Whether it is time to get another credential with the bootstrap token: the API server rejects
  // this one, and it has expired or that has been so for a while (a minute, spread, so that a fleet
  // does not ask for certificates because an API server hiccuped). Never true without a bootstrap.
  bool needs_bootstrap(Now now) const;
  // Whether the credential was reloaded since the last call, but for the one at the start.
  bool take_replaced() { return std::exchange(replaced_, false); }
  CertificateReport report(WallTime now) const;

 private:
  // By the API server, of the credential.
  struct Rejection {
    Duration patience;  // with it
    std::optional<SteadyTime> since = {};
    bool reported_expiry = false;
  };
  void watch_files();
  bool is_own_certificate() const;
  std::optional<std::string> loss(WallTime now) const;
  bool is_expired(WallTime now) const;
  void notice_expiry(WallTime now);
  SteadyTime notice_loss(Now now);

  const config::Settings& settings_;
  ApiAccess& access_;
  ServingCertificate& serving_;
  std::string node_name_;
  kube::CallOptions calls_;
  kube::RestCertificateApi api_;
  std::optional<CertificateSync> client_sync_;
  std::optional<CertificateSync> serving_sync_;
  std::vector<node::Address> addresses_;  // that its subject was made of
  std::vector<std::filesystem::path> watched_;
  std::unique_ptr<CredentialFiles> files_;
  std::uint64_t past_failures_ = 0;  // of files_ before the one now
  bool replaced_ = false;
  bool is_started_ = false;  // the first step reads everything again
  Rejection rejection_;
};

// The request for the node's client certificate, the same at bootstrap and at renewal.
CertificateSyncOptions client_certificate_options(const config::Settings& settings,
                                                  const std::string& node_name);
tls::CertificateSubject client_certificate_subject(const std::string& node_name);
inline constexpr const char* kClientStoreName = "slurmlet-client";
inline constexpr const char* kServingStoreName = "slurmlet-server";

}  // namespace slurmlet::credentials
