#pragma once

// What the client tests share: one CA, a server certificate for localhost and 127.0.0.1, a client
// certificate, and a client for a server.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "http/curl_client.h"
#include "http/test_server.h"
#include "tls/client_identity.h"
#include "tls/test_certificates.h"

namespace slurmlet::http {

struct TestPki {
  tls::Issued ca = tls::make_self_signed({.common_name = "test-ca", .is_ca = true});
  tls::Issued server =
      tls::issue(ca, {.common_name = "server", .names = {"DNS:localhost", "IP:127.0.0.1"}});
  tls::Issued client = tls::issue(ca, {.common_name = "system:node:n1"});
};

inline const TestPki& pki() {
  static const TestPki instance;
  return instance;
}

inline std::shared_ptr<const tls::ClientIdentity> make_identity(const std::string& ca,
                                                                const tls::Issued& own = {}) {
  tls::PemSources pem{.ca_name = "ca", .certificate_name = "certificate", .key_name = "key"};
  if (!ca.empty()) {
    pem.ca = ca;
  }
  if (!own.certificate.empty()) {
    pem.certificate = own.certificate;
    pem.key = own.key;
  }
  auto identity = tls::ClientIdentity::make(pem);
  EXPECT_TRUE(identity);
  return *identity;
}

inline std::unique_ptr<Client> make_client(const Endpoint& endpoint, TokenSource token = {},
                                           const tls::Issued& own = {}) {
  auto client =
      make_curl_client(endpoint, make_identity(pki().ca.certificate, own), std::move(token));
  EXPECT_TRUE(client);
  return std::move(*client);
}

inline Endpoint endpoint_of(const TestServer& server) {
  return {.url = server.url(), .proxy = "", .server_name = "", .user_agent = "slurmlet/test"};
}

inline Request get(const std::string& path, Duration timeout = std::chrono::seconds{10}) {
  Request request;
  request.path = path;
  request.timeout = timeout;
  return request;
}

inline void respond_ok(Exchange& exchange) { exchange.respond(200, "ok"); }

inline SteadyTime steady_now() { return std::chrono::steady_clock::now(); }

}  // namespace slurmlet::http
