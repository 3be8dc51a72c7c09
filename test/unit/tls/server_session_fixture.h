#pragma once

// A server session and a TLS client with a socket pair between them.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tls/server_session.h"
#include "tls/test_certificates.h"
#include "tls/tls_client.h"

namespace slurmlet::tls {

struct ServerPki {
  Issued ca = make_self_signed({.common_name = "kubernetes", .is_ca = true});
  Issued other_ca = make_self_signed({.common_name = "elsewhere", .is_ca = true});
  Issued server = issue(ca, {.common_name = "n1", .names = {"DNS:n1"}, .purposes = "serverAuth"});
  Issued client = issue(
      ca, {.common_name = "prometheus", .organizations = {"monitoring"}, .purposes = "clientAuth"});
};

inline const ServerPki& server_pki() {
  static const ServerPki instance;
  return instance;
}

inline ServerPem server_pem() {
  return {.certificate = server_pki().server.certificate,
          .key = server_pki().server.key,
          .client_ca = server_pki().ca.certificate,
          .certificate_name = "/pki/serving.crt",
          .key_name = "/pki/serving.key",
          .client_ca_name = "/pki/ca.crt"};
}

using State = ServerSession::State;

struct Pair {
  explicit Pair(const ClientSpec& spec = {}, const ServerPem& pem = server_pem())
      : identity(std::move(*ServerIdentity::make(pem))),
        server(ServerSession::make(*identity, sockets.server.get())),
        client(spec, sockets.client.get()) {}

  // Lets both sides talk until each is through with its handshake or has failed; returns the
  // server's last state. All is in memory, so each turn moves what there is.
  State handshake() {
    State state = State::kWantRead;
    bool client_is_done = false;
    for (int turn = 0; turn < 1000; ++turn) {
      client_is_done = client_is_done || client.has_failed() || client.handshake();
      if (state != State::kDone && state != State::kFailed) {
        state = server->handshake();
      }
      if (client_is_done && (state == State::kDone || state == State::kFailed)) {
        return state;
      }
    }
    return state;
  }

  std::shared_ptr<const ServerIdentity> identity;
  SocketPair sockets;
  std::unique_ptr<ServerSession> server;
  TlsClient client;
};

}  // namespace slurmlet::tls
