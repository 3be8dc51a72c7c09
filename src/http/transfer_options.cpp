#include "http/transfer_options.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace slurmlet::http {
namespace {

// A dead peer is noticed within 20 s: while idle by probes (8 s, then three at 4 s), while data is
// unacknowledged by the user timeout (tcp(7)).
constexpr int kKeepIdleSeconds = 8;
constexpr int kKeepIntervalSeconds = 4;
constexpr int kKeepCount = 3;
constexpr int kUserTimeoutMilliseconds = 18000;

constexpr long kBufferBytes = 16384;
// Idle connections are kept however rarely they are used; libcurl checks them before reuse.
constexpr long kMaxIdleSeconds = 24L * 60 * 60;

template <typename T>
bool set(CURL* easy, CURLoption option, T value) {
  return curl_easy_setopt(easy, option, value) == CURLE_OK;
}

int on_socket(void* /*data*/, curl_socket_t fd, curlsocktype /*purpose*/) {
  // libcurl opens it without; no child, and not our own program after a reload, may have it.
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const auto set_socket = [fd](int level, int name, int value) {
    // Best effort: without them only the detection of dead peers is slower.
    (void)::setsockopt(fd, level, name, &value, sizeof value);
  };
  set_socket(SOL_SOCKET, SO_KEEPALIVE, 1);
  set_socket(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set_socket(IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set_socket(IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set_socket(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
  return CURL_SOCKOPT_OK;
}

CURLcode on_ssl_context(CURL* /*easy*/, void* ssl_ctx, void* identity) {
  return static_cast<const tls::ClientIdentity*>(identity)->apply_to(ssl_ctx)
             ? CURLE_OK
             : CURLE_SSL_CERTPROBLEM;
}

// RFC 9110 section 5.6.2, "token".
bool is_token(std::string_view text) { return !text.empty() && all_alnum(text, "!#$%&'*+-.^_`|~"); }

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) == 0x7f;
  });
}

// libcurl sends a header without a value only when it is written with a semicolon.
std::string header_line(const std::string& name, const std::string& value) {
  return value.empty() ? name + ";" : name + ": " + value;
}

bool set_protocols(CURL* easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
  return set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  return set(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

}  // namespace

bool set_policy(CURL* easy, const Target& target) {
  // "" turns the environment's http_proxy and no_proxy off. Through a proxy even http is tunnelled,
  // and our headers (the token) go to the server only.
  return set_protocols(easy) && set(easy, CURLOPT_FOLLOWLOCATION, 0L) &&
         set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED)) &&
         set(easy, CURLOPT_PROXY, target.proxy.c_str()) && set(easy, CURLOPT_NOPROXY, "") &&
         set(easy, CURLOPT_HTTPPROXYTUNNEL, target.proxy.empty() ? 0L : 1L) &&
         set(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE)) &&
         set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) && set(easy, CURLOPT_PATH_AS_IS, 1L);
}

bool set_tls(CURL* easy, const tls::ClientIdentity* identity) {
  const bool verify = identity->verifies_server();
  bool good = set(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L) &&
              set(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L) &&
              set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2)) &&
              set(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L) &&
              set(easy, CURLOPT_SSL_CTX_FUNCTION, on_ssl_context) &&
              set(easy, CURLOPT_SSL_CTX_DATA, const_cast<tls::ClientIdentity*>(identity));
  // The identity brings the trust store; parsing the system's bundle would cost memory for nothing.
  const char* none = nullptr;
  good = good && set(easy, CURLOPT_CAINFO, none) && set(easy, CURLOPT_CAPATH, none) &&
         set(easy, CURLOPT_PROXY_CAINFO, none) && set(easy, CURLOPT_PROXY_CAPATH, none) &&
         set(easy, CURLOPT_PROXY_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
#if LIBCURL_VERSION_NUM >= 0x075700
  good = good && set(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
  return good;
}

bool set_connection(CURL* easy) {
  bool good = set(easy, CURLOPT_NOSIGNAL, 1L) && set(easy, CURLOPT_TCP_NODELAY, 1L) &&
              set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)) &&
              set(easy, CURLOPT_BUFFERSIZE, kBufferBytes) &&
              set(easy, CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes) &&
              set(easy, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds) &&
              set(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Giving up must not wait for a resolver thread that is stuck on a dead DNS server.
  good = good && set(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  return good;
}

bool set_request(CURL* easy, const Target& target, const Request& request,
                 const std::string& body) {
  if (!set(easy, CURLOPT_URL, (target.base + request.path).c_str())) {
    return false;
  }
  if (request.method == "HEAD") {
    return set(easy, CURLOPT_NOBODY, 1L);
  }
  const bool must_have_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if ((must_have_body || !body.empty()) &&
      !(set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size())) &&
        set(easy, CURLOPT_POSTFIELDS, body.data()))) {
    return false;
  }
  return set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

Status check_headers(const Request& request) {
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || has_control(value)) {
      return Error{
          Code::kInvalid,
          request.method + " " + request.path +
              ": a header of the request contains a control character or has no valid name"};
    }
  }
  return {};
}

HeaderList make_headers(const Target& target, const Request& request, const std::string& token) {
  HeaderList headers;
  const auto add = [&headers](const std::string& line) {
    return append_header(headers, line.c_str());
  };
  // "Expect:" without a value: libcurl would wait a second for "100 Continue" before long bodies.
  bool good = add("Accept: " + request.accept) && add("Expect:") &&
              add(request.content_type.empty() ? "Content-Type:"
                                               : "Content-Type: " + request.content_type) &&
              (target.user_agent.empty() || add("User-Agent: " + target.user_agent)) &&
              (target.host_header.empty() || add(target.host_header));
  good = good && (token.empty() || add("Authorization: Bearer " + token));
  for (const auto& [name, value] : request.headers) {
    good = good && add(header_line(name, value));
  }
  return good ? std::move(headers) : HeaderList{};
}

}  // namespace slurmlet::http
