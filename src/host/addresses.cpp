#include "host/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace slurmlet::host {
namespace {

constexpr std::uint32_t kRouteUp = 0x0001;
constexpr std::uint32_t kRouteReject = 0x0200;
constexpr std::uint32_t kAddressTemporary = 0x01;
constexpr std::uint32_t kAddressDuplicate = 0x08;
constexpr std::uint32_t kAddressDeprecated = 0x20;
constexpr std::uint32_t kAddressTentative = 0x40;

// Columns of a routing table; numbers are hexadecimal but for IPv4's metric.
struct RouteColumns {
  std::size_t count, interface, destination, mask, flags, metric;
  int base_of_metric;
};
// Iface Destination Gateway Flags RefCnt Use Metric Mask …
constexpr RouteColumns kIpv4Route{.count = 8,
                                  .interface = 0,
                                  .destination = 1,
                                  .mask = 7,
                                  .flags = 3,
                                  .metric = 6,
                                  .base_of_metric = 10};
// destination length source length next-hop metric references use flags interface
constexpr RouteColumns kIpv6Route{.count = 10,
                                  .interface = 9,
                                  .destination = 0,
                                  .mask = 1,
                                  .flags = 8,
                                  .metric = 5,
                                  .base_of_metric = 16};

bool is_zero(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos;
}

// The interface of the usable default route with the lowest metric, the first of equal ones.
std::string default_interface(std::string_view table, const RouteColumns& at) {
  std::string_view best;
  std::uint32_t lowest = 0;
  for (const std::string_view line : split(table, '\n')) {
    const auto field = words(line);
    if (field.size() < at.count || !is_zero(field[at.destination]) || !is_zero(field[at.mask])) {
      continue;
    }
    const auto flags = parse_int<std::uint32_t>(field[at.flags], 16);
    const auto metric = parse_int<std::uint32_t>(field[at.metric], at.base_of_metric);
    const bool usable = flags && metric && (*flags & kRouteUp) != 0 && (*flags & kRouteReject) == 0;
    if (usable && (best.empty() || *metric < lowest)) {
      best = field[at.interface];
      lowest = *metric;
    }
  }
  return std::string{best};
}

bool is_container_interface(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kPrefixes = {
      "docker", "br-",     "veth", "virbr",  "podman", "cni",
      "cali",   "flannel", "lxc",  "cilium", "kube-",  "nerdctl"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_global_ipv4(const std::string& text) {
  in_addr address{};
  if (::inet_pton(AF_INET, text.c_str(), &address) != 1) {
    return false;
  }
  const std::uint32_t ip = ntohl(address.s_addr);
  const bool link_local = (ip >> 16) == 0xA9FE;
  const bool loopback_or_zero = (ip >> 24) == 127 || (ip >> 24) == 0;
  return !link_local && !loopback_or_zero && (ip >> 28) < 0xE;  // multicast and above
}

bool is_global_ipv6(const std::string& text) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, text.c_str(), &address) == 1 && !IN6_IS_ADDR_LOOPBACK(&address) &&
         !IN6_IS_ADDR_UNSPECIFIED(&address) && !IN6_IS_ADDR_LINKLOCAL(&address) &&
         !IN6_IS_ADDR_SITELOCAL(&address) && !IN6_IS_ADDR_MULTICAST(&address) &&
         !IN6_IS_ADDR_V4MAPPED(&address);
}

bool is_candidate(const LocalAddress& local, const DefaultInterfaces& defaults) {
  const bool routes = local.interface == defaults.ipv4 || local.interface == defaults.ipv6;
  return local.interface_up && !local.loopback && !local.transient &&
         (routes || !is_container_interface(local.interface)) && is_global_address(local.address);
}

// IPv6 addresses as 32 hex digits → flags.
std::map<std::string, std::uint32_t, std::less<>> ipv6_flags(std::string_view if_inet6) {
  std::map<std::string, std::uint32_t, std::less<>> out;
  for (const std::string_view line : split(if_inet6, '\n')) {
    const auto field = words(line);
    if (field.size() >= 6) {
      out.emplace(field[0], parse_int<std::uint32_t>(field[4], 16).value_or(0));
    }
  }
  return out;
}

std::string hex_digits(const in6_addr& address) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : address.s6_addr) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 0xF];
  }
  return out;
}

// "" for other families.
std::string numeric(const sockaddr* local) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (local->sa_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, local, sizeof address);
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  } else if (local->sa_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, local, sizeof address);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

std::optional<LocalAddress> to_local(
    const ifaddrs& entry, const std::map<std::string, std::uint32_t, std::less<>>& flags) {
  LocalAddress local;
  local.address = entry.ifa_addr == nullptr ? "" : numeric(entry.ifa_addr);
  if (local.address.empty()) {
    return std::nullopt;
  }
  local.interface = entry.ifa_name;
  local.interface_up = (entry.ifa_flags & IFF_UP) != 0;
  local.loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, entry.ifa_addr, sizeof address);
    local.ipv6 = true;
    const auto found = flags.find(hex_digits(address.sin6_addr));
    local.transient =
        found != flags.end() && (found->second & (kAddressTemporary | kAddressDuplicate |
                                                  kAddressDeprecated | kAddressTentative)) != 0;
  }
  return local;
}

std::string content_or_empty(const std::filesystem::path& path) {
  auto content = read_file(path);
  return content ? *std::move(content) : std::string{};
}

std::string source_towards(const addrinfo& target) {
  const UniqueFd fd{::socket(target.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (!fd || ::connect(fd.get(), target.ai_addr, target.ai_addrlen) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&local), &length) != 0) {
    return {};
  }
  std::string source = numeric(reinterpret_cast<const sockaddr*>(&local));
  return is_global_address(source) ? source : std::string{};
}

}  // namespace

DefaultInterfaces default_interfaces(std::string_view route, std::string_view ipv6_route) {
  return {default_interface(route, kIpv4Route), default_interface(ipv6_route, kIpv6Route)};
}

bool is_global_address(const std::string& numeric) {
  return is_global_ipv4(numeric) || is_global_ipv6(numeric);
}

std::vector<std::string> order_addresses(const std::vector<LocalAddress>& all,
                                         const DefaultInterfaces& defaults) {
  std::vector<LocalAddress> kept;
  std::copy_if(all.begin(), all.end(), std::back_inserter(kept),
               [&](const LocalAddress& local) { return is_candidate(local, defaults); });
  const auto rank = [&](const LocalAddress& local) {
    const std::string& preferred = local.ipv6 ? defaults.ipv6 : defaults.ipv4;
    return (local.interface == preferred ? 0 : 2) + (local.ipv6 ? 1 : 0);
  };
  std::stable_sort(kept.begin(), kept.end(),
                   [&](const LocalAddress& a, const LocalAddress& b) { return rank(a) < rank(b); });
  std::vector<std::string> out;
  for (LocalAddress& local : kept) {
    if (std::find(out.begin(), out.end(), local.address) == out.end()) {
      out.push_back(std::move(local.address));
    }
  }
  return out;
}

std::vector<std::string> read_addresses(const Paths& paths) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner{first, &::freeifaddrs};
  const auto flags = ipv6_flags(content_or_empty(paths.proc / "net/if_inet6"));
  std::vector<LocalAddress> all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (auto local = to_local(*entry, flags)) {
      all.push_back(*std::move(local));
    }
  }
  return order_addresses(all, default_interfaces(content_or_empty(paths.proc / "net/route"),
                                                 content_or_empty(paths.proc / "net/ipv6_route")));
}

std::string route_source(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  for (const addrinfo* target = found; target != nullptr; target = target->ai_next) {
    if (std::string source = source_towards(*target); !source.empty()) {
      return source;
    }
  }
  return {};
}

}  // namespace slurmlet::host
