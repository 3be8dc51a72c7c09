#pragma once

// The libcurl implementation of Client (see client.h).

#include <memory>
#include <string>

#include "base/result.h"
#include "http/client.h"
#include "tls/client_identity.h"

namespace slurmlet::http {

struct Endpoint {
  std::string url;          // "https://host:6443", no trailing slash; a path prefix is kept
  std::string proxy;        // "" = none (the environment's proxies are not used)
  std::string server_name;  // tls-server-name of kubeconfig: SNI and verification; "" = from url
  std::string user_agent;
};

// Supplies the bearer token for each request, or "" for none (read per request: tokens rotate).
using TokenSource = std::function<std::string()>;

// `identity` (CA bundle, client certificate and key) may be shared between clients.
Result<std::unique_ptr<Client>> make_curl_client(
    const Endpoint& endpoint, std::shared_ptr<const tls::ClientIdentity> identity,
    TokenSource token);

}  // namespace slurmlet::http
