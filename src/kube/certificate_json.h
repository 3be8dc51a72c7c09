#pragma once

// certificates.k8s.io/v1 CertificateSigningRequest as JSON
// (https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/certificate-signing-request-v1/).
// PEM texts travel base64-encoded. Pure functions.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "kube/certificate_api.h"

namespace slurmlet::kube {

// Body of POST: name, signer, usages and the request itself.
std::string certificate_request_body(const CertificateRequest& request);

// JSON merge patch of the subresource approval: approved, by slurmlet-operator.
std::string approval_body(const CertificateRequest& request, const std::string& message);

// kInvalid when `value` has no metadata.name, or when its base64 is none. A status that says
// nothing is a request that nobody has decided yet.
Result<CertificateRequest> certificate_request_from_json(const nlohmann::json& value);

}  // namespace slurmlet::kube
