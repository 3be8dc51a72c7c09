#include "http/target.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/un.h>

#include <utility>

#include "base/text.h"
#include "http/curl_handle.h"

namespace slurmlet::http {
namespace {

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) {
    return {};
  }
  const std::unique_ptr<char, CurlReleaser<curl_free>> owner{text};
  return text;
}

// An IPv6 address needs brackets inside a URL.
std::string in_url(const std::string& host) {
  return host.find(':') != std::string::npos && host.front() != '[' ? "[" + host + "]" : host;
}

bool is_address(const std::string& host) {
  in6_addr buffer{};
  return host.find(':') != std::string::npos || ::inet_pton(AF_INET, host.c_str(), &buffer) == 1;
}

// Where connections go.
void set_name(Target& target, std::string host, std::string port) {
  if (!target.proxy.empty()) {
    const UrlHandle proxy{curl_url()};
    constexpr unsigned kAny = CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME;
    if (!proxy ||
        curl_url_set(proxy.get(), CURLUPART_URL, target.proxy.c_str(), kAny) != CURLUE_OK) {
      return;
    }
    host = part_of(proxy.get(), CURLUPART_HOST);
    port = part_of(proxy.get(), CURLUPART_PORT);
    if (port.empty()) {  // as libcurl has it
      port = part_of(proxy.get(), CURLUPART_SCHEME) == "https" ? "443" : "1080";
    }
  }
  if (!is_address(host) && target.unix_socket.empty()) {
    target.name = std::move(host);
    target.port = std::move(port);
  }
}

Error bad_url(const Endpoint& endpoint, const char* why) {
  // The URL itself is left out where it may hold a password.
  const std::string shown = endpoint.url.find('@') == std::string::npos ? endpoint.url : "(hidden)";
  return {Code::kInvalid,
          fmt::format("server URL {}: {}; write it as https://HOST:PORT", shown, why)};
}

// unix(7): the path and its end must fit.
Status check_socket(const std::string& path) {
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.front() != '/' || path.size() > kLongest) {
    return Error{Code::kInvalid,
                 fmt::format("unix socket {}: it must be an absolute path of at most {} bytes",
                             path, kLongest)};
  }
  return {};
}

}  // namespace

Result<Target> make_target(const Endpoint& endpoint) {
  const UrlHandle url{curl_url()};
  if (!url || curl_url_set(url.get(), CURLUPART_URL, endpoint.url.c_str(), 0) != CURLUE_OK) {
    return bad_url(endpoint, "is not a URL");
  }
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http") {
    return bad_url(endpoint, "is neither https nor http");
  }
  for (const CURLUPart part :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY, CURLUPART_FRAGMENT}) {
    if (!part_of(url.get(), part).empty()) {
      return bad_url(endpoint, "contains a user, query or fragment");
    }
  }
  const std::string host = part_of(url.get(), CURLUPART_HOST);
  const std::string port = part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  std::string prefix = part_of(url.get(), CURLUPART_PATH);
  while (!prefix.empty() && prefix.back() == '/') {
    prefix.pop_back();
  }
  Target target;
  target.shown = fmt::format("{}://{}:{}{}", scheme, host, port, prefix);
  target.base = target.shown;
  target.proxy = endpoint.proxy;
  target.user_agent = endpoint.user_agent;
  target.tls = scheme == "https";
  if (!endpoint.unix_socket.empty()) {
    TRY(check_socket(endpoint.unix_socket));
    target.unix_socket = endpoint.unix_socket;
    target.shown = "unix:" + endpoint.unix_socket;
  }
  if (target.tls && !endpoint.server_name.empty() && in_url(endpoint.server_name) != host) {
    // libcurl takes SNI and the name to verify from the URL, so the URL gets the server name and
    // the connection is led to the real host. The Host header stays that of the real host.
    const std::string name = in_url(endpoint.server_name);
    target.base = fmt::format("{}://{}:{}{}", scheme, name, port, prefix);
    target.connect_to = fmt::format("{}:{}:{}:{}", name, port, host, port);
    target.host_header = fmt::format("Host: {}:{}", host, port);
  }
  set_name(target, host, port);
  return target;
}

}  // namespace slurmlet::http
