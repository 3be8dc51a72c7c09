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

}  // namespace slurmlet::host
