#pragma once

// The server's side of TLS: what a listener shows (ServerIdentity) and one connection of it
// (ServerSession), on a non-blocking socket.
//
// A client certificate is requested but not required, and a bad one does not end the handshake:
// token clients must get in, and a wrong certificate is answered with 401 by the caller
// (the kubelet's x509 authenticator does the same). TLS 1.2 or newer, no renegotiation, no session
// resumption or tickets, no compression, no early data; ALPN http/1.1.
//
// What an unauthenticated client can make a session hold or do: for the handshake at most
// kMaxHandshakeBytes are taken from the socket, then kMaxRequestBytes for each request, whatever
// they are: content in tiny records, empty records, renegotiation attempts. Key updates, which cost
// most, are bounded for the whole session (kMaxKeyUpdates; no client needs them before gigabytes).
// That bounds what a session costs and how long one call can be kept busy. A client's chain is at
// most 32 KiB, of 8 intermediates. In memory a session is about 20 KiB when idle after its
// handshake and below 256 KiB at any time: OpenSSL reserves what a hello claims to be, at most 128
// KiB, before it has come. Those who hold sessions bound their number and their time.
//
// Sockets are written with MSG_NOSIGNAL: a peer that is gone raises no SIGPIPE.

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "tls/client_identity.h"

struct ssl_ctx_st;  // OpenSSL's SSL_CTX
struct ssl_st;      // OpenSSL's SSL

namespace slurmlet::tls {

struct ServerPem {
  std::string certificate;  // leaf first
  std::string key;
  std::optional<std::string> client_ca;  // nothing = no client certificate is believed
  // What to call each in errors: a file name.
  std::string certificate_name, key_name, client_ca_name;
};

// Immutable; safe to share between threads. Sessions keep the one they were made with.
class ServerIdentity {
 public:
  // kInvalid with the source's name, as ClientIdentity::make.
  static Result<std::shared_ptr<const ServerIdentity>> make(const ServerPem& pem);
  ServerIdentity(std::shared_ptr<ssl_ctx_st> context, CertificateSummary summary)
      : context_(std::move(context)), summary_(std::move(summary)) {}
  // Of the serving certificate.
  const CertificateSummary& certificate() const { return summary_; }
  // For this component only.
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
  CertificateSummary summary_;
};

// OpenSSL's way to the socket.
struct SocketLink {
  int socket = -1;
  std::size_t allowance = 0;  // bytes that may still be read; reading beyond is an error
  bool is_at_end = false;     // the peer ended its side
};

// Not thread-safe. Does not own the socket.
class ServerSession {
 public:
  enum class State {
    kDone,       // it happened
    kWantRead,   // call again when the socket is readable
    kWantWrite,  // call again when it is writable
    kClosed,     // the peer ended it in an orderly way
    kFailed,     // for good
  };
  static constexpr std::size_t kMaxHandshakeBytes = std::size_t{64} << 10;
  static constexpr std::size_t kMaxRequestBytes = std::size_t{40} << 10;
  static constexpr int kMaxKeyUpdates = 32;

  struct Io {
    State state = State::kFailed;
    std::size_t bytes = 0;  // with kDone
  };

  // nullptr when memory is short.
  static std::unique_ptr<ServerSession> make(const ServerIdentity& identity, int socket);
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  State handshake();
  Io read(char* into, std::size_t size);
  // Another request may be read.
  void begin_request();
  Io write(std::string_view bytes);
  // Says good-bye (close_notify) without waiting for the other side's.
  void close();
  // Whether decrypted bytes wait in memory, which no poll(2) would report.
  bool has_buffered() const;

  // The peer's certificate after the handshake, if it showed one that chains to the client CA, is
  // valid now and is for client authentication.
  std::optional<CertificateSummary> client_certificate() const;
  // The handshake failed because the client speaks HTTP without TLS.
  bool got_plain_http() const { return got_plain_http_; }

 private:
  ServerSession(const ServerIdentity& identity, int socket);
  static void on_message(int is_written, int version, int type, const void* message,
                         std::size_t size, ssl_st* ssl, void* session);
  bool is_usable() const { return is_ready_ && !has_failed_; }
  // What the result of an OpenSSL call means; empties OpenSSL's error queue.
  State judge(int result);

  SocketLink link_;  // outlives ssl_, which holds the BIO
  std::shared_ptr<ssl_st> ssl_;
  bool is_ready_ = false;  // the handshake is over
  bool has_failed_ = false;
  int key_updates_ = 0;
  bool got_plain_http_ = false;
};

}  // namespace slurmlet::tls
