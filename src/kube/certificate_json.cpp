#include "kube/certificate_json.h"

#include <nlohmann/json.hpp>

#include "base/try.h"
#include "kube/json_read.h"
#include "kube/status_error.h"
#include "tls/client_identity.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

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

}  // namespace

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

// Nobody has decided yet, so there are no conditions that this would replace.
std::string approval_body(const CertificateRequest& request, const std::string& message) {
  const json approved{{"type", "Approved"},
                      {"status", "True"},
                      {"reason", "SlurmletOperatorApproved"},
                      {"message", message}};
  return to_text(
      {{"metadata", {{"uid", request.uid}, {"resourceVersion", request.resource_version}}},
       {"status", {{"conditions", json::array({approved})}}}});
}

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

}  // namespace slurmlet::kube
