#pragma once

// A TLS client for tests, over a non-blocking socket, with the means to misbehave.

#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "tls/openssl_ptr.h"

namespace slurmlet::tls {

struct ClientSpec {
  std::string certificate = {}, key = {};  // PEM, leaf first
  int min_version = TLS1_2_VERSION;
  int max_version = TLS1_3_VERSION;
  std::string ciphers = {};    // TLS 1.2's
  std::string protocols = {};  // ALPN's wire form: "\x08http/1.1"
  std::string groups = {};
};

// Two connected, non-blocking sockets.
struct SocketPair {
  SocketPair();
  UniqueFd server, client;
};

class TlsClient {
 public:
  TlsClient(const ClientSpec& spec, int socket);

  // One attempt; true once the handshake is over.
  bool handshake();
  bool has_failed() const { return !error_.empty(); }
  const std::string& error() const { return error_; }
  // What can be read now.
  std::string read();
  bool write(std::string_view bytes);
  void close();
  SSL* ssl() const { return ssl_.get(); }

 private:
  bool judge(int result);

  ContextPtr context_;
  SessionPtr ssl_;
  std::string error_;
};

}  // namespace slurmlet::tls
