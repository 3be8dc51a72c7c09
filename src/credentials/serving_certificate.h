#pragma once

// The certificate that the kubelet endpoint shows, and the CA by which it believes its clients.
// From files that the operator gave, or issued by the cluster (CertificateSync brings it); until
// there is one, a self-signed certificate serves, so that those who do not verify (metrics-server
// with
// --kubelet-insecure-tls) are served from the first moment.
//
// identity() may be called from any thread; the rest belongs to one.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/published.h"
#include "base/result.h"
#include "config/settings.h"
#include "tls/certificate_store.h"
#include "tls/certificates.h"
#include "tls/server_session.h"

namespace slurmlet::credentials {

class ServingCertificate {
 public:
  // `cluster_ca` believes the clients where endpoint.clientCAFile is not set; may be "".
  ServingCertificate(config::EndpointSettings settings, std::string node_name,
                     std::string cluster_ca);

  // Makes the first identity. An Error says why the files given cannot be used; the self-signed
  // certificate serves all the same, unless even that failed.
  Status start(WallTime now);
  // PEM, each of its file; nothing of one that is not configured.
  using FileText = Result<std::optional<std::string>>;
  struct Files {
    FileText client_ca, certificate, key;
  };
  // May hang.
  static Files read(const config::EndpointSettings& settings);
  // On an Error the old identity stays.
  Status use(const Files& files);
  // The cluster issued this one.
  Status use(const tls::StoredCertificate& issued);
  // The CA in use changed; without effect on what is served where endpoint.clientCAFile is set.
  Status set_cluster_ca(const std::string& pem);

  // Files that read() reads; none where endpoint.port is 0 and nothing is served.
  std::vector<std::filesystem::path> files() const;
  bool is_given() const { return !settings_.certificate_file.empty(); }

  // nullptr before start().
  std::shared_ptr<const tls::ServerIdentity> identity() const;
  bool is_self_signed() const { return pem_.certificate_name == kSelfSigned; }
  std::optional<WallTime> not_after() const;

 private:
  static constexpr const char* kSelfSigned = "the self-signed serving certificate";

  bool serves() const { return settings_.port != 0; }
  FileText client_ca(const Files& files) const;
  Status make_self_signed(WallTime now, const Files& files);
  Status publish(tls::ServerPem pem);

  config::EndpointSettings settings_;
  std::string node_name_;
  std::string cluster_ca_;
  tls::ServerPem pem_;  // in use; the key too, to be paired with another client CA
  Published<std::shared_ptr<const tls::ServerIdentity>> identity_;
};

}  // namespace slurmlet::credentials
