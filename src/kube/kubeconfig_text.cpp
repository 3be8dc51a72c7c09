#include "kube/kubeconfig_text.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "tls/client_identity.h"
#include "yaml/emit.h"

namespace slurmlet::kube {

using nlohmann::ordered_json;

namespace {

// The names that the kubelet writes.
constexpr const char* kCluster = "default-cluster";
constexpr const char* kUser = "default-auth";
constexpr const char* kContext = "default-context";

ordered_json cluster_json(const ClusterAccess& access) {
  ordered_json cluster;
  if (!access.pem.ca.empty()) {
    cluster["certificate-authority-data"] = tls::base64_encode(access.pem.ca);
  }
  if (!access.proxy_url.empty()) {
    cluster["proxy-url"] = access.proxy_url;
  }
  cluster["server"] = access.server;
  if (!access.tls_server_name.empty()) {
    cluster["tls-server-name"] = access.tls_server_name;
  }
  return cluster;
}

ordered_json named(const char* name, const char* kind, ordered_json content) {
  ordered_json entry;
  entry["name"] = name;
  entry[kind] = std::move(content);
  return ordered_json::array({std::move(entry)});
}

}  // namespace

std::string node_kubeconfig_text(const ClusterAccess& access, const std::string& node_name,
                                 const std::filesystem::path& certificate_and_key) {
  // A relative path would be taken as relative to the kubeconfig's folder.
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(certificate_and_key, ignored);
  const std::string pair = (ignored ? certificate_and_key : absolute).string();
  ordered_json user{{"client-certificate", pair}, {"client-key", pair}};
  ordered_json context{{"cluster", kCluster}, {"user", kUser}};
  if (!access.namespace_name.empty()) {
    context["namespace"] = access.namespace_name;
  }
  ordered_json config;
  config["apiVersion"] = "v1";
  config["kind"] = "Config";
  config["clusters"] = named(kCluster, "cluster", cluster_json(access));
  config["users"] = named(kUser, "user", std::move(user));
  config["contexts"] = named(kContext, "context", std::move(context));
  config["current-context"] = kContext;
  return "# Written by slurmlet when it bootstrapped node " + node_name + ".\n" +
         yaml::emit(config);
}

}  // namespace slurmlet::kube
