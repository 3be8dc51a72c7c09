#include "tls/tls_client.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include "tls/pem.h"
#include "tls/test_certificates.h"

namespace slurmlet::tls {
SocketPair::SocketPair() {
  int both[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0);
  server.reset(both[0]);
  client.reset(both[1]);
}

TlsClient::TlsClient(const ClientSpec& spec, int socket)
    : context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX* context = context_.get();
  // Old protocol versions need OpenSSL's lowest level, and a distribution's default forbids them.
  SSL_CTX_set_security_level(context, 0);
  require(SSL_CTX_set_min_proto_version(context, spec.min_version) == 1);
  require(SSL_CTX_set_max_proto_version(context, spec.max_version) == 1);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_NO_AUTO_CHAIN);
  if (!spec.ciphers.empty()) {
    require(SSL_CTX_set_cipher_list(context, spec.ciphers.c_str()) == 1);
  }
  if (!spec.groups.empty()) {
    require(SSL_CTX_set1_groups_list(context, spec.groups.c_str()) == 1);
  }
  if (!spec.protocols.empty()) {
    require(SSL_CTX_set_alpn_protos(context,
                                    reinterpret_cast<const unsigned char*>(spec.protocols.data()),
                                    static_cast<unsigned int>(spec.protocols.size())) == 0);
  }
  if (!spec.certificate.empty()) {
    auto own = parse_credential(spec.certificate, "certificate", spec.key, "key");
    require(own.has_value());
    require(SSL_CTX_use_cert_and_key(context, own->leaf.get(), own->key.get(), own->chain.get(),
                                     1) == 1);
  }
  ssl_.reset(SSL_new(context));
  SSL_set_fd(ssl_.get(), socket);
  SSL_set_connect_state(ssl_.get());
}

bool TlsClient::judge(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  if (error != SSL_ERROR_NONE && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
    const std::string reason = take_openssl_error();
    error_ = error == SSL_ERROR_ZERO_RETURN ? "closed" : reason;
  }
  ERR_clear_error();
  return error == SSL_ERROR_NONE;
}

bool TlsClient::handshake() {
  ERR_clear_error();
  return judge(SSL_do_handshake(ssl_.get()));
}

std::string TlsClient::read() {
  std::string all;
  char buffer[4096];
  std::size_t got = 0;
  ERR_clear_error();
  while (judge(SSL_read_ex(ssl_.get(), buffer, sizeof buffer, &got))) {
    all.append(buffer, got);
  }
  return all;
}

bool TlsClient::write(std::string_view bytes) {
  ERR_clear_error();
  return judge(SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())));
}

void TlsClient::close() {
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

}  // namespace slurmlet::tls
