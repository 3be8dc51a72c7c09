#pragma once

// How this daemon reaches the API server: the kubeconfig or the environment form, made into
// connections. Checks what can be checked before the first request.

#include <memory>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "http/curl_client.h"
#include "kube/cluster_access.h"

namespace slurmlet::app {

class ApiAccess {
 public:
  // kInvalid and the like with file and cure when the credentials cannot be used.
  static Result<ApiAccess> open(const config::Settings& settings, const Clock& clock);

  // A connection of its own for one thread.
  Result<std::unique_ptr<http::Client>> connect() const;

  const std::string& server() const { return access_.server; }
  // Our own address on the way to the API server, "" if it is a loopback or cannot be told.
  // Resolves the server's name, so it may block as long as the resolver does.
  std::string route_source() const;
  // "n1" when the client certificate is for system:node:n1, else "".
  std::string node_of_credential() const;
  // What deserves a warning about the credential: not a node's, expired or soon so; "" if nothing.
  std::string credential_warning(WallTime now) const;

 private:
  kube::ClusterAccess access_;
  std::shared_ptr<const tls::ClientIdentity> identity_;
  http::TokenSource token_;
};

}  // namespace slurmlet::app
