#pragma once

// How to reach one API server and as which user: the common result of a kubeconfig and of the
// environment form (single files). Holds secrets: never print one.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "tls/client_identity.h"

namespace slurmlet::kube {

struct ClusterAccess {
  std::string server;           // "https://host:6443", no trailing slash
  std::string proxy_url;        // "" = none
  std::string tls_server_name;  // "" = the host of `server`
  tls::PemSources pem;
  std::string token;       // fixed bearer token, "" = none
  std::string token_file;  // read anew as it rotates (TokenFile); wins over `token`
  // Every file that this came from, to notice a rotated credential.
  std::vector<std::filesystem::path> files;
};

// Nothing if `url` can be an API server's: https://, or http:// to this machine itself (plain text
// to another one would show the credential to the network). Else what is wrong, with the fix.
std::string server_url_problem(const std::string& url);

}  // namespace slurmlet::kube
