#include "kube/certificate_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"
#include "kube/rest_send.h"
#include "kube/status_error.h"
#include "kube/typed_watch.h"
#include "tls/client_identity.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr const char* kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

Result<std::string> pem_at(const json& object, const char* key) {
  auto text = tls::base64_decode(string_at(object, key));
  if (!text) {
    return Error{Code::kInvalid,
                 std::string("not a CertificateSigningRequest: ") + key + " is not valid base64"};
  }
  return text;
}

// "Reason: message", or the one of them that is there.
std::string words_of(const json& condition) {
  const std::string reason = string_at(condition, "reason");
  const std::string message = string_at(condition, "message");
  return one_line(reason + (reason.empty() || message.empty() ? "" : ": ") + message);
}

void read_conditions(const json& status, CertificateRequest& request) {
  for (const json& condition : list_at(status, "conditions")) {
    const std::string type = string_at(condition, "type");
    if (const std::string state = string_at(condition, "status");
        !state.empty() && state != "True") {
      continue;
    }
    request.approved = request.approved || type == "Approved";
    request.denied = request.denied || type == "Denied";
    request.failed = request.failed || type == "Failed";
    if (type == "Denied" || type == "Failed") {
      request.message = words_of(condition);
    }
  }
}

// Body of POST. PEM texts travel base64-encoded.
std::string certificate_request_body(const CertificateRequest& request) {
  json spec{{"request", tls::base64_encode(request.request_pem)},
            {"signerName", request.signer_name},
            {"usages", request.usages}};
  if (request.expiration.count() != 0) {
    spec["expirationSeconds"] = request.expiration.count();
  }
  return to_text({{"apiVersion", "certificates.k8s.io/v1"},
                  {"kind", "CertificateSigningRequest"},
                  {"metadata", {{"name", request.name}}},
                  {"spec", std::move(spec)}});
}

// JSON merge patch of the subresource approval. Nobody has decided yet, so there are no conditions
// that this would replace.
std::string approval_body(const CertificateRequest& request, const std::string& message) {
  const json approved{{"type", "Approved"},
                      {"status", "True"},
                      {"reason", "SlurmletOperatorApproved"},
                      {"message", message}};
  return to_text(
      {{"metadata", {{"uid", request.uid}, {"resourceVersion", request.resource_version}}},
       {"status", {{"conditions", json::array({approved})}}}});
}

std::unique_ptr<Watch<CertificateRequest>> watch_requests(http::Client& client,
                                                          const std::string& selector,
                                                          CallOptions options, Random random) {
  return std::make_unique<TypedWatch<CertificateRequest>>(
      std::make_unique<ListWatch>(client, kRequests, "fieldSelector=" + url_encode(selector),
                                  ListWatch::Fresh::kLatest, std::move(options), std::move(random)),
      certificate_request_from_json);
}

}  // namespace

Result<CertificateRequest> certificate_request_from_json(const json& value) {
  const json& metadata = member(value, "metadata");
  CertificateRequest request;
  request.name = string_at(metadata, "name");
  if (request.name.empty()) {
    return Error{Code::kInvalid, "not a CertificateSigningRequest: metadata.name is missing"};
  }
  request.uid = string_at(metadata, "uid");
  request.resource_version = string_at(metadata, "resourceVersion");
  const json& spec = member(value, "spec");
  request.signer_name = string_at(spec, "signerName");
  request.request_pem = TRY(pem_at(spec, "request"));
  request.usages = strings_of(member(spec, "usages"));
  request.username = string_at(spec, "username");
  request.groups = strings_of(member(spec, "groups"));
  const json& status = member(value, "status");
  read_conditions(status, request);
  request.certificate = TRY(pem_at(status, "certificate"));
  return request;
}

Result<CertificateRequest> RestCertificateApi::create(const CertificateRequest& request) {
  return send_for(client_, options_,
                  {"POST", std::string(kRequests) + "?fieldManager=slurmlet",
                   certificate_request_body(request), kJson},
                  certificate_request_from_json);
}

Result<CertificateRequest> RestCertificateApi::get(const std::string& name) {
  return send_for(client_, options_, {"GET", std::string(kRequests) + "/" + url_encode(name)},
                  certificate_request_from_json);
}

std::unique_ptr<Watch<CertificateRequest>> RestCertificateApi::watch(const std::string& name) {
  return watch_requests(client_, "metadata.name=" + name, options_, random_);
}

Status RestApprovalApi::approve(const CertificateRequest& request, const std::string& message) {
  return send_only(client_, options_,
                   {"PATCH",
                    std::string(kRequests) + "/" + url_encode(request.name) +
                        "/approval?fieldManager=slurmlet-operator",
                    approval_body(request, message), kMergePatch});
}

std::unique_ptr<Watch<CertificateRequest>> watch_certificate_requests(http::Client& client,
                                                                      const std::string& signer,
                                                                      CallOptions options,
                                                                      Random random) {
  return watch_requests(client, "spec.signerName=" + signer, std::move(options), std::move(random));
}

}  // namespace slurmlet::kube
