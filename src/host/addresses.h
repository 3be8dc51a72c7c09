#pragma once

// IP addresses by which others can reach this machine, best first. A Node's address must not change
// on its own, so the order depends only on the routing table and the kernel's order of interfaces,
// and transient addresses (IPv6 privacy addresses, container bridges) are omitted.
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
  bool loopback = false;
  bool transient = false;  // IPv6: temporary, deprecated, tentative or a duplicate
};

// Interfaces of the default routes; "" = none.
struct DefaultInterfaces {
  std::string ipv4;
  std::string ipv6;
};

DefaultInterfaces default_interfaces(std::string_view route, std::string_view ipv6_route);

// Whether others can reach this numeric address: it is not loopback, link-local, multicast,
// unspecified or IPv4-mapped. Pure.
bool is_global_address(const std::string& numeric);

// The reachable ones of `all`: that of the default route first, then IPv4 before IPv6, else in the
// given order. Pure.
std::vector<std::string> order_addresses(const std::vector<LocalAddress>& all,
                                         const DefaultInterfaces& defaults);

// The same for this machine, from getifaddrs(3) and the tables in paths.proc.
std::vector<std::string> read_addresses(const Paths& paths);

// Our address from which the kernel would reach the API server: the best guess for the Node's
// InternalIP on machines with several networks. Numeric; "" if the name does not resolve, there is
// no route, or the address is loopback or link-local (such as for a local proxy), where others
// cannot reach us. `host`: a name or an address, without brackets.
//
// Connecting a UDP socket sends no packet. Resolving a host name may block: call it at start-up, or
// with the IP address of the HTTP client's connection. Thread-safe.
std::string route_source(const std::string& host, const std::string& port);

}  // namespace slurmlet::host
