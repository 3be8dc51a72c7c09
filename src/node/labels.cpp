#include "node/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

constexpr std::size_t kMaxNameLength = 63;
constexpr std::size_t kMaxSubdomainLength = 253;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// What a label's name and a non-empty value have in common.
std::optional<std::string> name_problem(std::string_view what, std::string_view name) {
  if (name.size() > kMaxNameLength) {
    return fmt::format("{} is longer than {} characters", what, kMaxNameLength);
  }
  const bool good_ends =
      !name.empty() && all_alnum(name.substr(0, 1)) && all_alnum(name.substr(name.size() - 1));
  if (!good_ends || !all_alnum(name, "-_.")) {
    return fmt::format(
        "{} must be letters, digits, '-', '_' or '.', and start and end with a letter or digit",
        what);
  }
  return std::nullopt;
}

bool is_dns_label(std::string_view part) {
  return !part.empty() && is_lower_or_digit(part.front()) && is_lower_or_digit(part.back()) &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '-'; });
}

bool is_in_domain(std::string_view name, std::string_view domain) {
  return name == domain || (name.size() > domain.size() && name.ends_with(domain) &&
                            name[name.size() - domain.size() - 1] == '.');
}

constexpr std::array<std::string_view, 11> kKubeletLabels = {
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
};

Error bad_taint(std::string_view taint, std::string_view why) {
  return {Code::kInvalid, fmt::format("has the taint \"{}\": {}", taint, why)};
}

Result<Taint> parse_taint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return bad_taint(text, "it must be KEY=VALUE:EFFECT or KEY:EFFECT");
  }
  const std::string_view front = text.substr(0, colon);
  const auto equals = front.find('=');
  Taint out;
  out.key = front.substr(0, equals);
  out.value = equals == std::string_view::npos ? "" : front.substr(equals + 1);
  out.effect = text.substr(colon + 1);
  if (out.effect != "NoSchedule" && out.effect != "PreferNoSchedule" && out.effect != "NoExecute") {
    return bad_taint(text, "the effect must be NoSchedule, PreferNoSchedule or NoExecute");
  }
  if (const auto problem = label_key_problem(out.key)) {
    return bad_taint(text, *problem);
  }
  if (const auto problem = label_value_problem(out.value)) {
    return bad_taint(text, *problem);
  }
  if (out.key == vocabulary::kTaintKey) {
    return bad_taint(text, "slurmlet always sets taints of this key");
  }
  return out;
}

}  // namespace

std::optional<std::string> label_key_problem(std::string_view key) {
  if (key.empty()) {
    return "the key is empty";
  }
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) {
    return name_problem("the key", key);
  }
  if (!is_rfc1123_subdomain(key.substr(0, slash))) {
    return "the part of the key before '/' must be a lower-case DNS name of at most 253 characters";
  }
  return name_problem("the part of the key after '/'", key.substr(slash + 1));
}

std::optional<std::string> label_value_problem(std::string_view value) {
  return value.empty() ? std::nullopt : name_problem("the value", value);
}

std::optional<std::string> node_restriction_problem(std::string_view key) {
  const auto slash = key.find('/');
  const auto domain = slash == std::string_view::npos ? std::string_view{} : key.substr(0, slash);
  if (!is_in_domain(domain, "kubernetes.io") && !is_in_domain(domain, "k8s.io")) {
    return std::nullopt;
  }
  if (is_in_domain(domain, "node-restriction.kubernetes.io")) {
    return "Kubernetes does not allow a node to set labels of node-restriction.kubernetes.io on "
           "itself; have an administrator or Cluster API (MachineDeployment "
           "spec.template.metadata.labels) set it";
  }
  if (is_in_domain(domain, "kubelet.kubernetes.io") || is_in_domain(domain, "node.kubernetes.io") ||
      std::find(kKubeletLabels.begin(), kKubeletLabels.end(), key) != kKubeletLabels.end()) {
    return std::nullopt;
  }
  if (is_in_domain(domain, "node-role.kubernetes.io") || key == "kubernetes.io/role") {
    return "Kubernetes does not allow a node to give itself a role; have an administrator (kubectl "
           "label node) or Cluster API (MachineDeployment spec.template.metadata.labels) set it";
  }
  return fmt::format(
      "Kubernetes (NodeRestriction) does not allow a node to set labels of {} on itself; use a "
      "domain of your own, or have an administrator set it",
      domain);
}

bool is_rfc1123_subdomain(std::string_view name) {
  if (name.empty() || name.size() > kMaxSubdomainLength) {
    return false;
  }
  const auto parts = split(name, '.');
  return std::all_of(parts.begin(), parts.end(), is_dns_label);
}

Result<std::vector<Taint>> parse_taints(std::string_view text) {
  std::vector<Taint> out;
  for (const auto part : split(text, ',')) {
    if (trim(part).empty()) {
      continue;
    }
    auto taint = TRY(parse_taint(trim(part)));
    const bool twice = std::any_of(out.begin(), out.end(), [&](const Taint& other) {
      return other.key == taint.key && other.effect == taint.effect;
    });
    if (twice) {
      return bad_taint(trim(part), "another taint has the same key and effect");
    }
    out.push_back(std::move(taint));
  }
  return out;
}

}  // namespace slurmlet::node
