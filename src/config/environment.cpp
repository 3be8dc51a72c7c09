#include "config/sources.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"

namespace slurmlet::config {
namespace {

constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

std::optional<std::string> lookup(const EnvLookup& environment, const std::string& name) {
  auto value = environment(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::string first_existing(const std::string& list, const FileReader& files) {
  std::string first;
  for (const auto part : split(list, ':')) {
    if (part.empty()) {
      continue;
    }
    std::string path{part};
    const auto content = files(path);
    // One that is there but cannot be read is taken, so that the error names it.
    if (content || content.error().code != Code::kNotFound) {
      return path;
    }
    if (first.empty()) {
      first = std::move(path);
    }
  }
  return first;
}

}  // namespace

EnvLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    return value == nullptr ? std::nullopt : std::optional<std::string>{value};
  };
}

void apply_environment(const EnvLookup& environment, const FileReader& files, Draft& draft) {
  for (const auto& row : settings_table()) {
    if (row.environment.empty()) {
      continue;
    }
    auto value = lookup(environment, std::string{row.environment});
    if (value && row.environment == "KUBECONFIG") {
      value = first_existing(*value, files);
    }
    if (value && !value->empty()) {
      draft.set_text(row, fmt::format("environment variable {}", row.environment), *value);
    }
  }
  const auto either = [&](const char* upper, const char* lower) {
    const auto value = lookup(environment, upper);
    return value ? *value : lookup(environment, lower).value_or("");
  };
  draft.settings.kubernetes.https_proxy = either("HTTPS_PROXY", "https_proxy");
  draft.settings.kubernetes.no_proxy = either("NO_PROXY", "no_proxy");
}

void apply_in_cluster(const EnvLookup& environment, Draft& draft) {
  auto& kubernetes = draft.settings.kubernetes;
  const auto host = lookup(environment, "KUBERNETES_SERVICE_HOST");
  const auto port = lookup(environment, "KUBERNETES_SERVICE_PORT");
  if (!kubernetes.kubeconfig.empty() || !kubernetes.server.empty() ||
      !kubernetes.bootstrap_kubeconfig.empty() || !host || !port) {
    return;
  }
  const bool ipv6 = host->find(':') != std::string::npos;
  draft.set_text(*find_row("kubernetes.server"), "environment variable KUBERNETES_SERVICE_HOST",
                 fmt::format("https://{}{}{}:{}", ipv6 ? "[" : "", *host, ipv6 ? "]" : "", *port));
  if (kubernetes.token_file.empty() && kubernetes.certificate_file.empty()) {
    kubernetes.token_file = fmt::format("{}/token", kServiceAccount);
  }
  if (kubernetes.ca_file.empty()) {
    kubernetes.ca_file = fmt::format("{}/ca.crt", kServiceAccount);
  }
}

}  // namespace slurmlet::config
