#include "kube/cluster_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"
#include "kube/status_error.h"
#include "tls/certificates.h"
#include "tls/client_identity.h"
#include "yaml/document.h"

namespace slurmlet::kube {

namespace {

constexpr const char* kClusterInfo = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
constexpr const char* kSource = "ConfigMap kube-public/cluster-info";
constexpr std::size_t kIdLength = 6;
constexpr std::size_t kSecretLength = 16;

bool is_token_text(std::string_view text, std::size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

Error disbelieved(const std::string& why) {
  return {Code::kDenied, std::string(kSource) + " " + why};
}

// The kubeconfig that the token signed.
Result<std::string> signed_kubeconfig(const nlohmann::json& config_map,
                                      const BootstrapToken& token) {
  const auto data = string_map_at(config_map, "data");
  const auto kubeconfig = data.find("kubeconfig");
  if (kubeconfig == data.end()) {
    return disbelieved("has no key \"kubeconfig\"; give the cluster's CA as a file");
  }
  const auto signature = data.find("jws-kubeconfig-" + token.id);
  if (signature == data.end()) {
    return disbelieved("is not signed with token " + token.id +
                       ": it has expired or must not be used for signing; create one with " +
                       kNewToken);
  }
  if (!tls::is_signed_with_token(signature->second, kubeconfig->second, token.id, token.secret)) {
    return disbelieved("has a wrong signature for token " + token.id +
                       ": the token is wrong, or the connection to the API server is intercepted; "
                       "check token and server address");
  }
  return kubeconfig->second;
}

// The one cluster of the kubeconfig: the unnamed one, as kubeadm writes it, or the only one.
const yaml::Value* cluster_of(const yaml::Value& root) {
  const yaml::Value* list = root.find("clusters");
  if (list == nullptr) {
    return nullptr;
  }
  for (const yaml::Value& item : list->items()) {
    const yaml::Value* name = item.find("name");
    if (name == nullptr || name->text().empty() || list->items().size() == 1) {
      return item.find("cluster");
    }
  }
  return nullptr;
}

Result<std::string> ca_of(const std::string& kubeconfig) {
  const auto document = yaml::parse(kubeconfig, kSource);
  if (!document) {
    return Error{Code::kDenied, document.error().message};
  }
  const yaml::Value* cluster = cluster_of(document->root());
  const yaml::Value* data =
      cluster == nullptr ? nullptr : cluster->find("certificate-authority-data");
  auto pem =
      data == nullptr ? Result<std::string>(std::string{}) : tls::base64_decode(data->text());
  if (!pem || pem->empty()) {
    return disbelieved("contains no certificate-authority-data; give the cluster's CA as a file");
  }
  return pem;
}

// Those certificates of the bundle that have a pin. The others are not believed: whoever holds a
// token can sign a bundle to which a CA of his own is added.
Result<std::string> keep_pinned(const std::string& ca, const std::vector<std::string>& pins) {
  const auto certificates = tls::certificates_with_pins(ca, kSource);
  if (!certificates) {
    return Error{Code::kDenied, certificates.error().message};
  }
  std::string kept;
  std::vector<std::string> found;
  for (const auto& certificate : *certificates) {
    found.push_back(certificate.pin);
    if (std::find(pins.begin(), pins.end(), certificate.pin) != pins.end()) {
      kept += certificate.pem;
    }
  }
  if (kept.empty()) {
    return disbelieved(
        "has a CA with public key " + join(found, ", ") +
        ", which does not match the expected hash (" + join(pins, ", ") +
        "): the hash is for another cluster, or the connection to the API server is intercepted");
  }
  return kept;
}

}  // namespace

Result<BootstrapToken> parse_bootstrap_token(const std::string& text) {
  const std::string_view token = trim(TRY(utf8_text(text)));
  const auto dot = std::min(token.find('.'), token.size());
  const std::string_view id = token.substr(0, dot);
  const std::string_view secret = token.substr(std::min(dot + 1, token.size()));
  if (!is_token_text(id, kIdLength) || !is_token_text(secret, kSecretLength)) {
    return Error{Code::kInvalid,
                 "not a bootstrap token: it has six characters, a dot and sixteen characters of "
                 "a-z and 0-9 (" +
                     std::string{kNewToken} + " makes one)"};
  }
  return BootstrapToken{std::string(id), std::string(secret)};
}

Result<std::string> discover_cluster_ca(http::Client& untrusting, const BootstrapToken& token,
                                        const std::vector<std::string>& pins,
                                        const CallOptions& options) {
  std::vector<std::string> expected;
  for (const std::string& pin : pins) {
    expected.push_back(to_lower(pin));
  }
  const http::Request request{"GET", kClusterInfo};
  const auto response = rest_call(untrusting, request, options, "GET");
  if (!response) {
    Error error = response.error();
    if (error.code == Code::kNotFound || error.code == Code::kDenied) {
      error.message += "; the cluster does not offer discovery: give its CA as a file";
    }
    return error;
  }
  const auto config_map = TRY(answer_json(request, *response));
  const auto kubeconfig = TRY(signed_kubeconfig(config_map, token));
  auto ca = ca_of(kubeconfig);
  if (!ca) {
    return ca;
  }
  return keep_pinned(*ca, expected);
}

}  // namespace slurmlet::kube
