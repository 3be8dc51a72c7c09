#include "config/rules.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "config/duration.h"
#include "node/labels.h"
#include "node/vocabulary.h"

namespace slurmlet::config {
namespace {

namespace vocabulary = node::vocabulary;

std::string is(std::string_view text, std::string_view rest) {
  return fmt::format("is \"{}\"; {}", text, rest);
}

bool has_space(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; });
}

// What kind of address this is that leads to no node from elsewhere; "" = none of them.
std::string_view useless_kind(std::string_view text) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET6, std::string{text}.c_str(), &v6) == 1) {
    return IN6_IS_ADDR_UNSPECIFIED(&v6) ? "the unspecified address"
           : IN6_IS_ADDR_LOOPBACK(&v6)  ? "a loopback address"
           : IN6_IS_ADDR_LINKLOCAL(&v6) ? "a link-local address"
           : IN6_IS_ADDR_MULTICAST(&v6) ? "a multicast address"
           : IN6_IS_ADDR_V4MAPPED(&v6)  ? "an IPv4 address in IPv6 form"
                                        : "";
  }
  inet_pton(AF_INET, std::string{text}.c_str(), &v4);
  const std::uint32_t address = ntohl(v4.s_addr);
  return address == INADDR_ANY         ? "the unspecified address"
         : address == INADDR_BROADCAST ? "the broadcast address"
         : address >> 24U == 127       ? "a loopback address"
         : IN_MULTICAST(address)       ? "a multicast address"
         : address >> 16U == 0xA9FE    ? "a link-local address"  // 169.254.0.0/16
                                       : "";
}

Problem owned_label_problem(const std::string& key) {
  static const std::map<std::string, std::string> kOwned = {
      {vocabulary::kLabelMetal3Uuid, "set node.metal3UUID instead"},
      {vocabulary::kLabelHostname, "slurmlet sets it to the node's name; set node.name instead"},
      {vocabulary::kLabelOs, "slurmlet sets it from the machine"},
      {vocabulary::kLabelArch, "slurmlet sets it from the machine"},
      {vocabulary::kLabelType, "slurmlet always sets it to virtual-kubelet"},
      {vocabulary::kLabelExcludeBalancers,
       "slurmlet always sets it, because this node runs no pods"},
      {vocabulary::kLabelExcludeDisruption, "set node.excludeFromDisruption instead"},
  };
  if (const auto found = kOwned.find(key); found != kOwned.end()) {
    return found->second;
  }
  // "slurmlet.io/x" and "partition.slurmlet.io/x", not "myslurmlet.io/x"
  const std::string prefix = "." + key.substr(0, key.find('/') + 1);
  if (prefix.ends_with("." + std::string{vocabulary::kDomainPrefix})) {
    return "labels of slurmlet.io are reserved for slurmlet; use a domain of your own";
  }
  return std::nullopt;
}

}  // namespace

Problem absolute_path_problem(std::string_view text) {
  return text.starts_with('/') ? std::nullopt : Problem{is(text, "it must be an absolute path")};
}

Problem server_problem(std::string_view text) {
  constexpr std::string_view kScheme = "https://";
  const std::string_view host = text.starts_with(kScheme) ? text.substr(kScheme.size()) : "";
  const auto colon = host.ends_with(']') ? std::string_view::npos : host.rfind(':');
  const auto port = colon == std::string_view::npos
                        ? std::optional<std::uint16_t>{443}
                        : parse_int<std::uint16_t>(host.substr(colon + 1));
  // '@' would put a password into a place that is logged.
  if (host.empty() || colon == 0 || !port || *port == 0 || has_space(host) ||
      host.find_first_of("/?#@") != std::string_view::npos) {
    return "must be an address of the form https://HOST:PORT, without user, path or query";
  }
  return std::nullopt;
}

// A token must not cross a network in the clear, nor go to whoever has taken a local port.
Problem rest_url_problem(std::string_view text) {
  return text.starts_with("unix:/") || !server_problem(text)
             ? std::nullopt
             : Problem{
                   is(text, "it must be unix:/PATH of slurmrestd's socket or https://HOST:PORT")};
}

Problem slurm_labels_problem(std::string_view text) {
  if (text == "none") {
    return std::nullopt;
  }
  for (const auto kind : split(text, ',')) {
    if (!is_one_of(trim(kind), {"cluster", "version", "partitions", "features", "gpu"})) {
      return is(text, "it must be none, or a list of cluster, version, partitions, features, gpu");
    }
  }
  return std::nullopt;
}

Problem node_name_problem(std::string_view text) {
  return node::is_rfc1123_subdomain(text)
             ? std::nullopt
             : Problem{is(text,
                          "a Node name is lower-case letters, digits, '-' and '.', with a "
                          "letter or digit at both ends of each part")};
}

Problem slurm_name_problem(std::string_view text) {
  return all_alnum(text, "-_.")
             ? std::nullopt
             : Problem{is(text,
                          "it must be one NodeName as in slurm.conf, without brackets, "
                          "commas or spaces")};
}

Problem ip_problem(std::string_view text) {
  const std::string address{text};
  unsigned char bytes[sizeof(in6_addr)];
  if (inet_pton(AF_INET, address.c_str(), bytes) == 1 ||
      inet_pton(AF_INET6, address.c_str(), bytes) == 1) {
    return std::nullopt;
  }
  return is(text, "it must be one IPv4 or IPv6 address");
}

// As the kubelet's --node-ip: two must be of different families, and each one that others reach.
Problem node_ips_problem(std::string_view text) {
  const auto parts = split(text, ',');
  for (const auto part : parts) {
    if (ip_problem(trim(part))) {
      return is(text, "it must be one IPv4 or IPv6 address, or one of each with a comma between");
    }
    if (const auto kind = useless_kind(trim(part)); !kind.empty()) {
      return is(text, fmt::format("{} is {}; use an address at which other machines reach this "
                                  "node, or leave the setting out to have one chosen",
                                  trim(part), kind));
    }
  }
  const auto is_ipv6 = [](std::string_view part) { return part.find(':') != part.npos; };
  if (parts.size() > 2 || (parts.size() == 2 && is_ipv6(parts[0]) == is_ipv6(parts[1]))) {
    return is(text, "of several addresses one must be IPv4 and the other IPv6");
  }
  return std::nullopt;
}

Problem taints_problem(std::string_view text) {
  const auto taints = node::parse_taints(text);
  return taints ? std::nullopt : Problem{taints.error().message};
}

// CAPM3 knows its nodes by metal3://<namespace>/<BareMetalHost>/<Metal3Machine>; since 1.14 the
// older metal3://<uuid> is an "unsupported providerID format".
Problem provider_id_problem(std::string_view text) {
  constexpr std::string_view kMetal3 = "metal3://";
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0 || scheme_end + 3 == text.size() ||
      has_space(text)) {
    return is(text, "it must have the form SCHEME://ID");
  }
  if (!text.starts_with(kMetal3)) {
    return std::nullopt;
  }
  const auto parts = split(text.substr(kMetal3.size()), '/');
  if (parts.size() == 1) {
    return is(text,
              "the form metal3://UUID is no longer supported by Cluster API's Metal3 provider; use "
              "metal3://NAMESPACE/HOST/MACHINE (metadata key providerid), or leave it out and the "
              "provider sets it");
  }
  if (parts.size() != 3 || !std::all_of(parts.begin(), parts.end(), node::is_rfc1123_subdomain)) {
    return is(text,
              "a metal3 providerID has exactly three parts, metal3://NAMESPACE/HOST/MACHINE; leave "
              "it out and Cluster API's Metal3 provider sets it");
  }
  return std::nullopt;
}

Problem label_text_problem(std::string_view text) {
  const auto problem = node::label_value_problem(text);
  return problem ? Problem{is(text, *problem)} : std::nullopt;
}

Problem pem_problem(std::string_view text) {
  return text.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos
             ? std::nullopt
             : Problem{"contains no PEM certificate (-----BEGIN CERTIFICATE-----)"};
}

Problem key_hashes_problem(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  for (const auto hash : split(text, ',')) {
    const auto hex = hash.starts_with(kAlgorithm) ? hash.substr(kAlgorithm.size()) : "";
    if (hex.size() != 64 || hex.find_first_not_of("0123456789abcdefABCDEF") != hex.npos) {
      return is(text, "each hash must be sha256: and 64 hexadecimal digits, as kubeadm prints it");
    }
  }
  return std::nullopt;
}

Problem gpu_resource_problem(const std::string& gres, const std::string& resource) {
  const auto parts = split(gres, ':');
  if (parts.size() > 2 || std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
        return part.empty() || has_space(part) || part.find_first_of("(),=") != part.npos;
      })) {
    return fmt::format("has \"{}\"; the left side must be a Gres name or name:type, e.g. gpu:a100",
                       gres);
  }
  const auto slash = resource.find('/');
  if (slash == std::string::npos || node::label_key_problem(resource) ||
      resource.substr(0, slash).ends_with("kubernetes.io")) {
    return fmt::format(
        "has \"{}\" for \"{}\"; it must be an extended resource like nvidia.com/gpu, outside "
        "kubernetes.io",
        resource, gres);
  }
  return std::nullopt;
}

Problem template_problem(std::string_view text) {
  constexpr std::string_view kMissing = "CI_MISSING_JINJA_VAR";
  if (text.find(kMissing) == std::string_view::npos) {
    return std::nullopt;
  }
  return is(text,
            "cloud-init had no value for this template variable; give the metadata this key "
            "(Metal3DataTemplate spec.metaData) or leave the setting out");
}

Problem label_problem(const std::string& key, const std::string& value) {
  for (const auto& problem :
       {node::label_key_problem(key), owned_label_problem(key), node::node_restriction_problem(key),
        template_problem(value), node::label_value_problem(value)}) {
    if (problem) {
      return fmt::format("has the label \"{}\": {}", key, *problem);
    }
  }
  return std::nullopt;
}

Problem text_problem(const Row& row, std::string_view text) {
  if (auto problem = template_problem(text)) {
    return problem;
  }
  if (row.rule != nullptr) {
    return row.rule(text);
  }
  return text.find('\0') == std::string_view::npos ? std::nullopt
                                                   : Problem{"contains a NUL character"};
}

Problem range_problem(const Row& row, std::int64_t value) {
  const bool duration = is_duration(row);
  const auto show = [duration](std::int64_t number) {
    return duration ? format_duration(Milliseconds{number}) : std::to_string(number);
  };
  if (value < row.minimum) {
    return fmt::format("is {}; it must be at least {}", show(value), show(row.minimum));
  }
  if (value > row.maximum) {
    return fmt::format("is {}; it must be at most {}", show(value), show(row.maximum));
  }
  return std::nullopt;
}

}  // namespace slurmlet::config
