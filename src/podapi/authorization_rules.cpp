#include <array>
#include <string_view>
#include <utility>

#include "podapi/gate.h"
#include "podapi/request_path.h"

namespace slurmlet::podapi {
namespace {

using Rule = std::pair<std::string_view, std::string_view>;  // path, subresource

// GetRequestAttributes of Kubernetes 1.37 (pkg/kubelet/server/auth.go). The fine-grained
// subresources (KEP-2862) come first, with "proxy" as fallback, which paths in the second table do
// not have.
constexpr std::array<Rule, 5> kFineGrained{{
    {"/pods", "pods"},
    {"/allocatedPods", "pods"},
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
  // Other methods, such as HEAD, have no verb in the kubelet, so they require the right to all
  // verbs ("*").
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
