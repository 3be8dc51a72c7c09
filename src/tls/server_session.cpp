#include "tls/server_session.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <system_error>

#include "tls/certificate_summary.h"
#include "tls/openssl_ptr.h"
#include "tls/pem.h"
#include "tls/socket_bio.h"

namespace slurmlet::tls {
namespace {

class OpensslServerSession final : public ServerSession {
 public:
  // Whether it can be used.
  bool open(const ServerIdentity& identity, int socket);

  State handshake() override;
  Io read(char* into, std::size_t size) override;
  void begin_request() override {
    link_.allowance = key_updates_ > kMaxKeyUpdates ? 0 : kMaxRequestBytes;
  }
  Io write(std::string_view bytes) override;
  void close() override;
  bool has_buffered() const override { return is_usable() && SSL_pending(ssl_.get()) > 0; }
  std::optional<CertificateSummary> client_certificate() const override;
  std::string client_certificate_problem() const override;
  std::string error() const override { return error_; }
  bool got_plain_http() const override { return got_plain_http_; }

 private:
  bool is_usable() const { return is_ready_ && error_.empty(); }
  static void on_message(int is_written, int version, int type, const void* message,
                         std::size_t size, SSL* ssl, void* session);
  const X509* shown_certificate() const;
  // What the result of an OpenSSL call means; empties OpenSSL's error queue.
  State judge(int result);
  std::string failure(int ssl_error);

  SocketLink link_;  // outlives ssl_, which holds the BIO
  SessionPtr ssl_;
  bool is_ready_ = false;  // the handshake is over
  int key_updates_ = 0;
  std::string error_;
  bool got_plain_http_ = false;
};

bool OpensslServerSession::open(const ServerIdentity& identity, int socket) {
  ERR_clear_error();
  link_ = {.socket = socket, .allowance = kMaxHandshakeBytes};
  ssl_.reset(SSL_new(static_cast<SSL_CTX*>(identity.context())));
  BioPtr bio = make_socket_bio(link_);
  const bool is_open = ssl_ && bio;
  if (is_open) {
    BIO* both = bio.release();
    SSL_set_bio(ssl_.get(), both, both);
    SSL_set_accept_state(ssl_.get());
    SSL_set_msg_callback(ssl_.get(), on_message);
    SSL_set_msg_callback_arg(ssl_.get(), this);
  }
  ERR_clear_error();
  return is_open;
}

// Sees each message of the handshake protocol, also those after the handshake.
void OpensslServerSession::on_message(int is_written, int /*version*/, int type,
                                      const void* message, std::size_t size, SSL* /*ssl*/,
                                      void* session) {
  if (is_written != 0 || type != SSL3_RT_HANDSHAKE || size == 0 ||
      *static_cast<const unsigned char*>(message) != SSL3_MT_KEY_UPDATE) {
    return;
  }
  auto& self = *static_cast<OpensslServerSession*>(session);
  if (++self.key_updates_ > kMaxKeyUpdates) {
    self.link_.allowance = 0;
  }
}

std::string OpensslServerSession::failure(int ssl_error) {
  const std::string reason = take_openssl_error();
  if (link_.is_overdrawn && key_updates_ > kMaxKeyUpdates) {
    return fmt::format("TLS: more than {} key updates", kMaxKeyUpdates);
  }
  if (link_.is_overdrawn) {
    return is_ready_ ? fmt::format("TLS: more than {} bytes for one request", kMaxRequestBytes)
                     : fmt::format("TLS handshake: more than {} bytes", kMaxHandshakeBytes);
  }
  // Before errno: an alert that OpenSSL sent after that end may have failed, too.
  if (link_.is_at_end) {
    return is_ready_ ? "the connection ended without TLS close_notify"
                     : "the connection ended during the TLS handshake";
  }
  if (link_.error_number != 0) {
    return std::generic_category().message(link_.error_number);
  }
  return ssl_error == SSL_ERROR_SSL ? reason : fmt::format("TLS error {}", ssl_error);
}

ServerSession::State OpensslServerSession::judge(int result) {
  const int ssl_error = SSL_get_error(ssl_.get(), result);
  State state = State::kFailed;
  switch (ssl_error) {
    case SSL_ERROR_NONE:
      state = State::kDone;
      break;
    case SSL_ERROR_WANT_READ:
      state = State::kWantRead;
      break;
    case SSL_ERROR_WANT_WRITE:
      state = State::kWantWrite;
      break;
    case SSL_ERROR_ZERO_RETURN:
      state = State::kClosed;
      break;
    default:
      got_plain_http_ = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
      error_ = failure(ssl_error);
      break;
  }
  ERR_clear_error();
  return state;
}

ServerSession::State OpensslServerSession::handshake() {
  if (!error_.empty()) {
    return State::kFailed;
  }
  if (is_ready_) {
    return State::kDone;
  }
  ERR_clear_error();
  const State state = judge(SSL_do_handshake(ssl_.get()));
  if (state == State::kDone) {
    is_ready_ = true;
    begin_request();
  }
  return state;
}

ServerSession::Io OpensslServerSession::read(char* into, std::size_t size) {
  if (const State ready = handshake(); ready != State::kDone || size == 0) {
    return {ready, 0};
  }
  ERR_clear_error();
  std::size_t got = 0;
  const State state = judge(SSL_read_ex(ssl_.get(), into, size, &got));
  return {state, got};
}

ServerSession::Io OpensslServerSession::write(std::string_view bytes) {
  if (const State ready = handshake(); ready != State::kDone || bytes.empty()) {
    return {ready, 0};
  }
  ERR_clear_error();
  std::size_t put = 0;
  const State state = judge(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put));
  return {state, put};
}

void OpensslServerSession::close() {
  // After a failure OpenSSL has sent its alert, and before the handshake there is nothing to say.
  if (is_usable()) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
}

const X509* OpensslServerSession::shown_certificate() const {
  return is_ready_ ? SSL_get0_peer_certificate(ssl_.get()) : nullptr;
}

std::optional<CertificateSummary> OpensslServerSession::client_certificate() const {
  const X509* certificate = shown_certificate();
  if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) {
    return std::nullopt;
  }
  return summarize(*certificate);
}

std::string OpensslServerSession::client_certificate_problem() const {
  const long result = SSL_get_verify_result(ssl_.get());
  if (shown_certificate() == nullptr || result == X509_V_OK) {
    return {};
  }
  return X509_verify_cert_error_string(result);
}

}  // namespace

std::unique_ptr<ServerSession> ServerSession::make(const ServerIdentity& identity, int socket) {
  auto session = std::make_unique<OpensslServerSession>();
  if (!session->open(identity, socket)) {
    return nullptr;
  }
  return session;
}

}  // namespace slurmlet::tls
