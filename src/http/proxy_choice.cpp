#include "http/proxy_choice.h"

#include <arpa/inet.h>

#include <array>
#include <optional>

#include "base/text.h"

namespace slurmlet::http {
namespace {

HostPort host_and_port(std::string_view text, std::string_view default_port) {
  HostPort out{"", std::string{default_port}};
  std::string_view host = text;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    host = text.substr(1, end == std::string_view::npos ? end : end - 1);
    if (end != std::string_view::npos && text.substr(end + 1).starts_with(':')) {
      out.port = text.substr(end + 2);
    }
  } else if (const auto colon = text.find(':');
             colon != std::string_view::npos && text.find(':', colon + 1) == text.npos) {
    host = text.substr(0, colon);
    out.port = text.substr(colon + 1);
  }
  out.host = to_lower(host);
  return out;
}

struct Address {
  std::array<unsigned char, 16> bytes{};
  std::size_t bits = 0;  // 32 or 128
};

std::optional<Address> parse_address(const std::string& text) {
  Address out;
  if (::inet_pton(AF_INET, text.c_str(), out.bytes.data()) == 1) {
    out.bits = 32;
  } else if (::inet_pton(AF_INET6, text.c_str(), out.bytes.data()) == 1) {
    out.bits = 128;
  }
  return out.bits == 0 ? std::nullopt : std::optional{out};
}

bool is_in_network(const Address& address, const Address& network, std::size_t prefix) {
  if (address.bits != network.bits || prefix > address.bits) {
    return false;
  }
  for (std::size_t bit = 0; bit < prefix; ++bit) {
    const unsigned mask = 0x80U >> (bit % 8);
    if (((address.bytes[bit / 8] ^ network.bytes[bit / 8]) & mask) != 0) {
      return false;
    }
  }
  return true;
}

bool is_this_machine(const std::string& host) {
  const auto address = parse_address(host);
  if (!address) {
    return host == "localhost" || host.ends_with(".localhost");
  }
  static const Address kLoopback6 = *parse_address("::1");
  return address->bits == 32 ? address->bytes[0] == 127 : address->bytes == kLoopback6.bytes;
}

// "a.org" stands for itself and what is below it, ".a.org" and "*.a.org" for what is below.
bool domain_matches(std::string_view domain, const std::string& host) {
  if (domain.starts_with("*.")) {
    domain.remove_prefix(1);
  }
  if (domain.starts_with('.')) {
    return host.ends_with(domain);
  }
  return !domain.empty() && (host == domain || host.ends_with("." + std::string{domain}));
}

bool entry_matches(std::string_view entry, const HostPort& server) {
  if (entry == "*") {
    return true;
  }
  const auto address = parse_address(server.host);
  if (const auto slash = entry.find('/'); slash != std::string_view::npos) {
    const auto network = parse_address(std::string{entry.substr(0, slash)});
    const auto prefix = parse_int<std::size_t>(entry.substr(slash + 1));
    return address && network && prefix && is_in_network(*address, *network, *prefix);
  }
  const HostPort named = host_and_port(entry, "");
  if (!named.port.empty() && named.port != server.port) {
    return false;
  }
  if (const auto other = parse_address(named.host); other || address) {
    return other && address && is_in_network(*address, *other, address->bits);
  }
  return domain_matches(named.host, server.host);
}

}  // namespace

HostPort server_of(std::string_view url) {
  const std::string_view rest = url.substr(url.find("://") + 3);
  return host_and_port(rest.substr(0, rest.find('/')), url.starts_with("https:") ? "443" : "80");
}

std::string proxy_for(std::string_view url, std::string_view https_proxy,
                      std::string_view no_proxy) {
  if (https_proxy.empty() || !url.starts_with("https://")) {
    return "";
  }
  const HostPort server = server_of(url);
  if (is_this_machine(server.host)) {
    return "";
  }
  for (const auto part : split(no_proxy, ',')) {
    const auto entry = trim(part);
    if (!entry.empty() && entry_matches(entry, server)) {
      return "";
    }
  }
  const bool has_scheme = https_proxy.find("://") != std::string_view::npos;
  return (has_scheme ? "" : "http://") + std::string{https_proxy};
}

std::string proxy_shown(std::string_view url) {
  const auto scheme = url.find("://");
  std::string_view rest = scheme == url.npos ? url : url.substr(scheme + 3);
  // The last '@', even behind a '/': what is before it may all be a badly written password.
  if (const auto user_end = rest.rfind('@'); user_end != rest.npos) {
    rest.remove_prefix(user_end + 1);
  }
  return std::string{rest.substr(0, rest.find_first_of("/?#"))};
}

}  // namespace slurmlet::http
