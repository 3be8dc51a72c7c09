#include "kube/cluster_access.h"

#include <algorithm>
#include <string_view>

namespace slurmlet::kube {

namespace {

bool is_loopback(std::string_view authority) {
  for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
    if (authority.starts_with(host) &&
        (authority.size() == host.size() || authority[host.size()] == ':')) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string server_url_problem(const std::string& url) {
  constexpr std::string_view kHttps = "https://";
  constexpr std::string_view kHttp = "http://";
  const bool tls = url.starts_with(kHttps);
  if (!tls && !url.starts_with(kHttp)) {
    return "is not the URL of an API server; write https://HOST:PORT";
  }
  const std::string_view rest = std::string_view(url).substr(tls ? kHttps.size() : kHttp.size());
  const std::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.empty() || authority.front() == ':') {
    return "has no host; write https://HOST:PORT";
  }
  if (url.find_first_of(" \t\r\n?#") != std::string::npos) {
    return "has white space, a query or a fragment in it; write https://HOST:PORT";
  }
  if (!std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c < 0x7f; })) {
    return "has a character in it that is not ASCII, perhaps an invisible one; type it again";
  }
  if (authority.find('@') != std::string_view::npos) {
    return "has a user name in it; remove it, and give the user entry a client certificate or a "
           "token";
  }
  if (!tls && !is_loopback(authority)) {
    return "is not encrypted; write https://HOST:PORT";
  }
  return "";
}

}  // namespace slurmlet::kube
