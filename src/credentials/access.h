#pragma once

// How this daemon reaches the API server: the kubeconfig or the environment form, made into
// connections, and read again when its files were replaced. Checks what can be checked before the
// first request.
//
// reload() and use() belong to one thread, all else may be called from any.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/published.h"
#include "base/result.h"
#include "config/settings.h"
#include "http/curl_client.h"
#include "kube/cluster_access.h"
#include "tls/client_identity.h"

namespace slurmlet::credentials {

class ApiAccess {
  struct Current;  // one reading of everything

 public:
  // kInvalid and the like with file and fix when the credentials cannot be used. `clock` must
  // outlive it and everything that uses its source().
  static Result<ApiAccess> open(const config::Settings& settings, const Clock& clock);

  // What to use now; goes on working after this object is gone.
  http::CredentialSource source() const;
  // All files that went into it, the kubeconfig first. May be others after a reload().
  std::vector<std::filesystem::path> files() const;
  // The one to replace by a fresh credential.
  std::string credential_file() const;
  // Reads all of it again. The new credentials are published only when all is good and something is
  // different; an Error names the file and the reason, and the old ones stay in use. A token
  // file is read here, and by no request. A certificate for another node than `node_name` is
  // rejected, where that is given.
  Status reload(const std::string& node_name = "");
  // Its two halves. The reading may hang; a copy of this object may do it on any thread.
  // Null where nothing is different.
  using Fresh = std::shared_ptr<const Current>;
  Result<Fresh> read_again(const std::string& node_name) const;
  void use(const Fresh& fresh);

  // A connection of its own for one thread, with the credentials of source().
  Result<std::unique_ptr<http::Client>> connect() const;

  std::string server() const;
  // Our own address on the way to the API server, "" if it is a loopback or unknown.
  // Resolves the server's name, so it may block as long as the resolver does.
  std::string route_source() const;
  // Nothing when a token is all there is.
  std::optional<tls::CertificateSummary> client_certificate() const;
  // The CA bundle of the API server as PEM text, "" = the system's.
  std::string ca_pem() const;
  // Server, CA, proxy and server name, without any credential.
  kube::ClusterAccess cluster() const;
  // "n1" when the client certificate is for system:node:n1, else "".
  std::string node_of_credential() const;
  // Another one after the credential was replaced by somebody. A certificate that this daemon asked
  // for, and a token that is read from a file, stay the same credential when they are renewed.
  std::string credential_identity() const;
  // Whose client certificate it is, where that is not a node's; else "".
  std::string credential_warning() const;

 private:
  ApiAccess(config::KubernetesSettings settings, const Clock& clock);
  Result<Current> read(const Current* before) const;
  std::string credential_file(const Current& current) const;
  Status check_replacement(const Current& fresh, const Current& before,
                           const std::string& node_name) const;

  config::KubernetesSettings settings_;
  const Clock* clock_;
  std::shared_ptr<Published<Current>> current_;
};

}  // namespace slurmlet::credentials
