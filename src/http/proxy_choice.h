#pragma once

// Whether a server is reached through the proxy of the environment, by the rules that client-go and
// the kubelet follow (golang.org/x/net/http/httpproxy): HTTPS_PROXY for https servers, NO_PROXY
// with names, domains, addresses, networks and "*"; never for this machine itself. Pure.

#include <string>
#include <string_view>

namespace slurmlet::http {

struct HostPort {
  std::string host;  // lower case, without brackets
  std::string port;
};
// Of an http or https URL.
HostPort server_of(std::string_view url);

// The proxy's URL, "" = connect directly. `https_proxy` may lack the scheme (http:// then).
std::string proxy_for(std::string_view url, std::string_view https_proxy,
                      std::string_view no_proxy);

// "HOST:PORT" of a proxy's URL, for people: what else is in it may be secret.
std::string proxy_shown(std::string_view url);

}  // namespace slurmlet::http
