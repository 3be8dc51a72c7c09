#pragma once

// Where requests go: an Endpoint, checked and taken apart once. Internal to the component.

#include <string>

#include "base/result.h"
#include "http/curl_client.h"

namespace slurmlet::http {

struct Target {
  std::string shown;  // what error messages call the server: the URL as configured, "unix:/path"
  std::string base;   // what request paths are appended to; names server_name if there is one
  std::string connect_to;   // CURLOPT_CONNECT_TO entry that leads `base` to the real host, or ""
  std::string host_header;  // "Host: …" of the real host where `base` names another, or ""
  std::string proxy;
  std::string user_agent;
  std::string unix_socket;  // connected to in the place of the host of `base`, or ""
  std::string
      name;  // to be resolved for a connection: the server's or the proxy's; "" = an address
  std::string port;  // of it
  bool tls = false;
};

// kInvalid when the URL is none, is not http or https, or holds a password, query or fragment, or
// when the path of the socket is none that can be connected to.
Result<Target> make_target(const Endpoint& endpoint);

}  // namespace slurmlet::http
