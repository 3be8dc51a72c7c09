#include "kube/cluster_access.h"

#include <string_view>

#include "base/file.h"

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

Status read_into(ClusterAccess& access, const char* what, const std::string& path,
                 std::string& text, std::string& name) {
  if (path.empty()) {
    return {};
  }
  auto content = read_file(path);
  if (!content) {
    return content.error().with_prefix(what);
  }
  text = *std::move(content);
  name = path;
  access.files.emplace_back(path);
  return {};
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
  if (authority.find('@') != std::string_view::npos) {
    return "has a user name in it; put the credential in the user entry";
  }
  if (!tls && !is_loopback(authority)) {
    return "is not encrypted; write https://HOST:PORT";
  }
  return "";
}

Result<ClusterAccess> access_from_files(const AccessFiles& files) {
  ClusterAccess access;
  access.server = files.server;
  while (access.server.ends_with('/')) {
    access.server.pop_back();
  }
  if (const std::string problem = server_url_problem(access.server); !problem.empty()) {
    return Error{Code::kInvalid, "API server \"" + files.server + "\" " + problem};
  }
  tls::PemSources& pem = access.pem;
  TRY(read_into(access, "CA certificate", files.ca_file, pem.ca, pem.ca_name));
  TRY(read_into(access, "client certificate", files.certificate_file, pem.certificate,
                pem.certificate_name));
  TRY(read_into(access, "client key", files.key_file, pem.key, pem.key_name));
  access.token_file = files.token_file;
  return access;
}

}  // namespace slurmlet::kube
