#include "tls/server_session.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "tls/pem.h"

namespace slurmlet::tls {
namespace {

using State = ServerSession::State;

SocketLink& link_of(BIO* bio) { return *static_cast<SocketLink*>(BIO_get_data(bio)); }

template <typename Call>
int attempt(const Call& call) {
  ssize_t n = -1;
  do {
    n = call();
  } while (n < 0 && errno == EINTR);
  return static_cast<int>(n);
}

int read_socket(BIO* bio, char* into, int size) {
  SocketLink& link = link_of(bio);
  BIO_clear_retry_flags(bio);
  if (link.allowance == 0) {
    return -1;
  }
  const std::size_t wanted = std::min(static_cast<std::size_t>(size), link.allowance);
  const int n = attempt([&] { return ::recv(link.socket, into, wanted, 0); });
  if (n > 0) {
    link.allowance -= static_cast<std::size_t>(n);
  } else if (n == 0) {
    link.is_at_end = true;
  } else if (errno == EAGAIN) {
    BIO_set_retry_read(bio);
  }
  return n;
}

int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const int n = attempt([&] {
    return ::send(link_of(bio).socket, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  });
  if (n < 0 && errno == EAGAIN) {
    BIO_set_retry_write(bio);
  }
  return n;
}

long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  switch (command) {
    case BIO_CTRL_FLUSH:
      return 1;
    case BIO_CTRL_EOF:
      return link_of(bio).is_at_end ? 1 : 0;
    default:
      return 0;
  }
}

struct Method {
  BIO_METHOD* value = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "slurmlet socket");
  Method() {
    if (value != nullptr) {
      BIO_meth_set_read(value, read_socket);
      BIO_meth_set_write(value, write_socket);
      BIO_meth_set_ctrl(value, control);
    }
  }
  ~Method() { BIO_meth_free(value); }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
};

// To a non-blocking socket that it does not own: unlike OpenSSL's own socket BIO it raises no
// SIGPIPE and takes no more from the peer than it is allowed to. nullptr when memory is short.
BioPtr make_socket_bio(SocketLink& link) {
  static const Method method;  // a table of functions, for all of them
  BioPtr bio{method.value == nullptr ? nullptr : BIO_new(method.value)};
  if (bio) {
    BIO_set_data(bio.get(), &link);
    BIO_set_init(bio.get(), 1);
  }
  return bio;
}

}  // namespace

ServerSession::ServerSession(const ServerIdentity& identity, int socket)
    : link_{.socket = socket, .allowance = kMaxHandshakeBytes},
      ssl_(SessionPtr{SSL_new(identity.context())}) {}

std::unique_ptr<ServerSession> ServerSession::make(const ServerIdentity& identity, int socket) {
  ERR_clear_error();
  std::unique_ptr<ServerSession> session{new ServerSession{identity, socket}};
  SSL* const ssl = session->ssl_.get();
  BioPtr bio = make_socket_bio(session->link_);
  if (ssl != nullptr && bio) {
    BIO* both = bio.release();
    SSL_set_bio(ssl, both, both);
    SSL_set_accept_state(ssl);
    SSL_set_msg_callback(ssl, on_message);
    SSL_set_msg_callback_arg(ssl, session.get());
  } else {
    session.reset();
  }
  ERR_clear_error();
  return session;
}

// Sees each message of the handshake protocol, also those after the handshake.
void ServerSession::on_message(int is_written, int /*version*/, int type, const void* message,
                               std::size_t size, SSL* /*ssl*/, void* session) {
  if (is_written != 0 || type != SSL3_RT_HANDSHAKE || size == 0 ||
      *static_cast<const unsigned char*>(message) != SSL3_MT_KEY_UPDATE) {
    return;
  }
  auto& self = *static_cast<ServerSession*>(session);
  if (++self.key_updates_ > kMaxKeyUpdates) {
    self.link_.allowance = 0;
  }
}

State ServerSession::judge(int result) {
  State state = State::kFailed;
  switch (SSL_get_error(ssl_.get(), result)) {
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
      has_failed_ = true;
      break;
  }
  ERR_clear_error();
  return state;
}

State ServerSession::handshake() {
  if (has_failed_) {
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

ServerSession::Io ServerSession::read(char* into, std::size_t size) {
  if (const State ready = handshake(); ready != State::kDone || size == 0) {
    return {ready, 0};
  }
  ERR_clear_error();
  std::size_t got = 0;
  const State state = judge(SSL_read_ex(ssl_.get(), into, size, &got));
  return {state, got};
}

void ServerSession::begin_request() {
  link_.allowance = key_updates_ > kMaxKeyUpdates ? 0 : kMaxRequestBytes;
}

ServerSession::Io ServerSession::write(std::string_view bytes) {
  if (const State ready = handshake(); ready != State::kDone || bytes.empty()) {
    return {ready, 0};
  }
  ERR_clear_error();
  std::size_t put = 0;
  const State state = judge(SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &put));
  return {state, put};
}

void ServerSession::close() {
  // After a failure OpenSSL has sent its alert, and before the handshake there is nothing to say.
  if (is_usable()) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
}

bool ServerSession::has_buffered() const { return is_usable() && SSL_pending(ssl_.get()) > 0; }

std::optional<CertificateSummary> ServerSession::client_certificate() const {
  const X509* certificate = is_ready_ ? SSL_get0_peer_certificate(ssl_.get()) : nullptr;
  if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) {
    return std::nullopt;
  }
  return summarize(*certificate);
}

}  // namespace slurmlet::tls
