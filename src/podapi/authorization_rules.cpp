#include <array>
#include <string_view>
#include <utility>

#include "podapi/gate.h"
#include "podapi/request_path.h"

namespace slurmlet::podapi {
namespace {

using Rule = std::pair<std::string_view, std::string_view>;  // path, subresource

// GetRequestAttributes of Kubernetes 1.36 (pkg/kubelet/server/auth.go). The fine-grained
// subresources (KEP-2862) are asked first and "proxy" second, as none of their paths is in the
// second table; what is in the second table never falls back to "proxy".
constexpr std::array<Rule, 4> kFineGrained{{
    {"/pods", "pods"},
    {"/healthz", "healthz"},
    {"/configz", "configz"},
    {"/runningpods/", "pods"},
}};
constexpr std::array<Rule, 6> kCoarse{{
    {"/stats/", "stats"},
    {"/metrics", "metrics"},
    {"/logs/", "log"},  // to match pods/log
    {"/checkpoint/", "checkpoint"},
    {"/statusz", "statusz"},
    {"/flagz", "configz"},
}};

constexpr std::array<Rule, 5> kVerbs{{
    {"GET", "get"},
    {"POST", "create"},
    {"PUT", "update"},
    {"PATCH", "patch"},
    {"DELETE", "delete"},
}};

template <std::size_t N>
std::string_view subresource_of(std::string_view path, const std::array<Rule, N>& rules) {
  for (const auto& [prefix, subresource] : rules) {
    if (is_at_or_below(path, prefix)) {
      return subresource;
    }
  }
  return {};
}

}  // namespace

RequestAttributes request_attributes(const std::string& method, const std::string& path) {
  RequestAttributes attributes;
  // HEAD, OPTIONS and what else there is have no verb at the kubelet: only who may do everything
  // ("*") may do them.
  for (const auto& [name, verb] : kVerbs) {
    if (method == name) {
      attributes.verb = verb;
    }
  }
  const std::string meant = normalized_path(path).value_or("");
  if (const auto fine = subresource_of(meant, kFineGrained); !fine.empty()) {
    attributes.subresources.emplace_back(fine);
  }
  const auto coarse = subresource_of(meant, kCoarse);
  attributes.subresources.emplace_back(coarse.empty() ? "proxy" : coarse);
  return attributes;
}

}  // namespace slurmlet::podapi
