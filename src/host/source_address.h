#pragma once

// Which of our addresses the kernel would use to reach the API server: the best guess for the
// Node's InternalIP on machines with several networks.
//
// Connecting a UDP socket only picks a route: no packet is sent. A host name is resolved first,
// which blocks for as long as the resolver does; call it at start-up or hand in the IP address that
// the HTTP client has connected to. Thread-safe.

#include <string>

namespace slurmlet::host {

// Numeric; "" if the name does not resolve, no route leads there, or the server is reached through
// the loopback or a link-local address (a proxy on this machine, say), which is of no use to
// others. `host`: a name or an address, without brackets.
std::string route_source(const std::string& host, const std::string& port);

}  // namespace slurmlet::host
