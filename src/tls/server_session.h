#pragma once

// The server's side of TLS: what a listener shows (ServerIdentity) and one connection of it
// (ServerSession), on a non-blocking socket and without any OpenSSL type.
//
// A client certificate is asked for but not demanded, and a bad one does not end the handshake:
// token clients must get in, and a wrong certificate is answered with 401 by the one who asks
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

#include "base/result.h"
#include "tls/client_identity.h"

namespace slurmlet::tls {

struct ServerPem {
  std::string certificate;  // leaf first
  std::string key;
  std::string client_ca;  // "" = no client certificate is believed
  // What to call each in errors: a file name.
  std::string certificate_name, key_name, client_ca_name;
};

// Immutable; safe to share between threads. Sessions keep the one they were made with.
class ServerIdentity {
 public:
  // kInvalid with the source's name, as ClientIdentity::make.
  static Result<std::shared_ptr<const ServerIdentity>> make(const ServerPem& pem);
  virtual ~ServerIdentity() = default;
  // Of the serving certificate.
  virtual const CertificateSummary& certificate() const = 0;
  // An SSL_CTX*, for this component only.
  virtual void* context() const = 0;
};

// Not thread-safe. Does not own the socket.
class ServerSession {
 public:
  enum class State {
    kDone,       // it happened
    kWantRead,   // call again when the socket is readable
    kWantWrite,  // call again when it is writable
    kClosed,     // the peer ended it in an orderly way
    kFailed,     // see error()
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
  virtual ~ServerSession() = default;

  virtual State handshake() = 0;
  virtual Io read(char* into, std::size_t size) = 0;
  // Another request may be read.
  virtual void begin_request() = 0;
  virtual Io write(std::string_view bytes) = 0;
  // Says good-bye (close_notify) without waiting for the other side's.
  virtual void close() = 0;
  // Whether decrypted bytes wait in memory, which no poll(2) would tell.
  virtual bool has_buffered() const = 0;

  // The peer's certificate after the handshake, if it showed one that chains to the client CA, is
  // valid now and is for client authentication.
  virtual std::optional<CertificateSummary> client_certificate() const = 0;
  // Why a certificate that was shown is not believed ("certificate has expired"); "" if none was
  // shown or it is believed.
  virtual std::string client_certificate_problem() const = 0;
  // Why the last operation failed, for people ("no shared cipher", "http request").
  virtual std::string error() const = 0;
  // The handshake failed because the client speaks HTTP without TLS.
  virtual bool got_plain_http() const = 0;
};

}  // namespace slurmlet::tls
