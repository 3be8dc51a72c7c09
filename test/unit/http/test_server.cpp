#include "http/test_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>

#include <csignal>
#include <optional>
#include <stdexcept>

#include "base/text.h"

namespace slurmlet::http {
namespace {

constexpr std::chrono::seconds kPatience{10};

void require(bool good, const char* what) {
  if (!good) {
    throw std::runtime_error(std::string{"test server: "} + what);
  }
}

tls::CertificatePtr read_certificate(const std::string& pem) {
  const tls::BioPtr bio{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  return tls::CertificatePtr{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)};
}

tls::ContextPtr make_context(const ServerSpec& spec) {
  tls::ContextPtr context{SSL_CTX_new(TLS_server_method())};
  const tls::CertificatePtr certificate = read_certificate(spec.certificate.certificate);
  const tls::BioPtr bio{
      BIO_new_mem_buf(spec.certificate.key.data(), static_cast<int>(spec.certificate.key.size()))};
  const tls::KeyPtr key{PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr)};
  require(SSL_CTX_use_cert_and_key(context.get(), certificate.get(), key.get(), nullptr, 1) == 1,
          "certificate");
  if (!spec.client_ca.empty()) {
    const tls::CertificatePtr ca = read_certificate(spec.client_ca);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  if (spec.max_version != 0) {
    // Old versions need SHA-1, which present security levels forbid.
    SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0");
    SSL_CTX_set_min_proto_version(context.get(), 0);
    SSL_CTX_set_max_proto_version(context.get(), spec.max_version);
  }
  return context;
}

std::string common_name_of_peer(SSL* ssl) {
  const tls::CertificatePtr certificate{SSL_get1_peer_certificate(ssl)};
  if (!certificate) {
    return {};
  }
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name,
                            sizeof name);
  return name;
}

bool read_more(SSL* ssl, std::string& buffer) {
  char piece[16384];
  const int n = SSL_read(ssl, piece, sizeof piece);
  if (n > 0) {
    buffer.append(piece, static_cast<std::size_t>(n));
  }
  return n > 0;
}

}  // namespace

void Event::set() {
  const std::lock_guard lock{mutex_};
  set_ = true;
  changed_.notify_all();
}

bool Event::wait() {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, kPatience, [this] { return set_; });
}

UniqueFd listen_on_loopback(int& port) {
  UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  require(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  require(::listen(fd.get(), 16) == 0, "listen");
  require(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "name");
  port = ntohs(address.sin_port);
  return fd;
}

bool Exchange::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const int n = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    if (n <= 0) {
      open_ = false;
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

void Exchange::respond(int status, const std::string& body, const std::string& more_headers) {
  write(
      fmt::format("HTTP/1.1 {} Test\r\nDate: Fri, 20 Nov 2026 14:02:11 GMT\r\n"
                  "Content-Length: {}\r\n{}\r\n{}",
                  status, body.size(), more_headers, body));
}

void Exchange::start_chunked(int status) {
  write(fmt::format("HTTP/1.1 {} Test\r\nTransfer-Encoding: chunked\r\n\r\n", status));
}

bool Exchange::chunk(std::string_view data) {
  return write(fmt::format("{:x}\r\n{}\r\n", data.size(), data));
}

void Exchange::wait_for_client_to_close() {
  std::string ignored;
  while (read_more(ssl_, ignored)) {
  }
  open_ = false;
}

TestServer::TestServer(const ServerSpec& spec, Handler handler)
    : handler_(std::move(handler)), context_(make_context(spec)) {
  std::signal(SIGPIPE, SIG_IGN);
  listener_ = listen_on_loopback(port_);
  acceptor_ = std::thread{[this] { accept_loop(); }};
}

TestServer::~TestServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const std::lock_guard lock{mutex_};
    for (const UniqueFd& fd : fds_) {
      ::shutdown(fd.get(), SHUT_RDWR);
    }
  }
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

std::vector<SeenRequest> TestServer::requests() const {
  const std::lock_guard lock{mutex_};
  return requests_;
}

bool TestServer::wait_closed(int count) {
  std::unique_lock lock{mutex_};
  return changed_.wait_for(lock, kPatience, [&] { return closed_ >= count; });
}

void TestServer::accept_loop() {
  while (true) {
    UniqueFd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd) {
      return;
    }
    const int number = ++accepted_;
    const std::lock_guard lock{mutex_};
    fds_.push_back(std::move(fd));
    workers_.emplace_back([this, raw = fds_.back().get(), number] { serve(raw, number); });
  }
}

bool TestServer::read_request(SSL* ssl, std::string& buffer, SeenRequest& request) {
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more(ssl, buffer)) {
      return false;
    }
  }
  const std::string head = buffer.substr(0, end);
  buffer.erase(0, end + 4);
  const auto lines = split(head, '\n');
  const auto words = split(trim(lines.front()), ' ');
  request.method = words.at(0);
  request.path = words.at(1);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto colon = lines[i].find(':');
    request.headers[to_lower(lines[i].substr(0, colon))] = trim(lines[i].substr(colon + 1));
  }
  const auto declared = request.headers.find("content-length");
  const std::size_t length =
      declared == request.headers.end() ? 0 : parse_int<std::size_t>(declared->second).value_or(0);
  while (buffer.size() < length) {
    if (!read_more(ssl, buffer)) {
      return false;
    }
  }
  request.body = buffer.substr(0, length);
  buffer.erase(0, length);
  return true;
}

void TestServer::serve(int fd, int number) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::unique_ptr<SSL, tls::Releaser<SSL_free>> ssl{SSL_new(context_.get())};
  SSL_set_fd(ssl.get(), fd);
  bool orderly = SSL_accept(ssl.get()) == 1;
  std::string buffer;
  for (bool open = orderly; open;) {
    SeenRequest request;
    request.connection = number;
    request.client_name = common_name_of_peer(ssl.get());
    if (const char* name = SSL_get_servername(ssl.get(), TLSEXT_NAMETYPE_host_name)) {
      request.server_name = name;
    }
    if (!read_request(ssl.get(), buffer, request)) {
      break;
    }
    {
      const std::lock_guard lock{mutex_};
      requests_.push_back(request);
    }
    Exchange exchange{ssl.get(), std::move(request)};
    handler_(exchange);
    open = exchange.open();
    orderly = exchange.orderly();
  }
  if (orderly) {
    SSL_shutdown(ssl.get());
  }
  ERR_clear_error();
  // The descriptor itself stays until the end, so that its number is not used again meanwhile.
  ::shutdown(fd, SHUT_RDWR);
  const std::lock_guard lock{mutex_};
  ++closed_;
  changed_.notify_all();
}

}  // namespace slurmlet::http
