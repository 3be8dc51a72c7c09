#pragma once

// Which IP addresses of this machine others may reach it by, best first. The address that a Node
// publishes must not change on its own, so the order depends only on the routing table and on the
// order in which the kernel lists interfaces, and addresses that come and go (IPv6 privacy
// addresses, container bridges) are left out.
//
// Formats: /proc/net/route and /proc/net/ipv6_route (proc_pid_net(5), net/ipv6/route.c),
// /proc/net/if_inet6 (net/ipv6/addrconf.c); flags from linux/if_addr.h and linux/route.h.

#include <string>
#include <string_view>
#include <vector>

#include "host/host_paths.h"

namespace slurmlet::host {

struct LocalAddress {
  std::string interface;
  std::string address;  // numeric, without a scope suffix
  bool ipv6 = false;
  bool interface_up = true;
  bool loopback = false;  // the interface is a loopback one
  bool passing = false;   // IPv6: temporary, deprecated, tentative or a duplicate
};

// Interfaces that carry the default routes; "" where there is none.
struct DefaultInterfaces {
  std::string ipv4;
  std::string ipv6;
};

DefaultInterfaces default_interfaces(std::string_view route, std::string_view ipv6_route);

// Whether others may reach it: a numeric address that is not loopback, link-local, multicast,
// unspecified or IPv4-mapped. Pure.
bool is_global_address(const std::string& numeric);

// Pure: what is left of `all`, that of the default route first, then IPv4 before IPv6, else in the
// order given.
std::vector<std::string> order_addresses(const std::vector<LocalAddress>& all,
                                         const DefaultInterfaces& defaults);

// The same for this machine: getifaddrs(3) and the tables below paths.proc.
std::vector<std::string> read_addresses(const Paths& paths);

// Which of our addresses the kernel would use to reach the API server: the best guess for the
// Node's InternalIP on machines with several networks. Numeric; "" if the name does not resolve, no
// route leads there, or the server is reached through the loopback or a link-local address (a proxy
// on this machine, say), which is of no use to others. `host`: a name or an address, without
// brackets.
//
// Connecting a UDP socket only picks a route: no packet is sent. A host name is resolved first,
// which blocks for as long as the resolver does; call it at start-up or hand in the IP address that
// the HTTP client has connected to. Thread-safe.
std::string route_source(const std::string& host, const std::string& port);

}  // namespace slurmlet::host
