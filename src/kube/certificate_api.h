#pragma once

// certificates.k8s.io/v1 CertificateSigningRequest: how a node gets its certificates
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/).
// The bootstrap identity and a node may create, get, list and watch these, and nothing else of
// them.

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/delay.h"
#include "base/result.h"
#include "kube/api.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

inline constexpr const char* kClientSigner = "kubernetes.io/kube-apiserver-client-kubelet";
inline constexpr const char* kServingSigner = "kubernetes.io/kubelet-serving";

struct CertificateRequest {
  std::string name, uid;
  std::string signer_name;
  std::string request_pem;  // PKCS #10
  std::vector<std::string> usages;
  std::chrono::seconds expiration{0};  // spec.expirationSeconds; 0 = the signer's choice
  // Who made it, by the API server's word.
  std::string username, resource_version;
  std::vector<std::string> groups;
  // What became of it.
  bool approved = false;
  bool denied = false;
  bool failed = false;      // the signer rejects it
  std::string message;      // of the Denied or Failed condition: "Reason: message"
  std::string certificate;  // PEM, once issued
};

// kInvalid when `value` has no metadata.name, or when its base64 is none. A status that says
// nothing is a request that nobody has decided yet. Pure.
Result<CertificateRequest> certificate_request_from_json(const nlohmann::json& value);

class CertificateApi {
 public:
  virtual ~CertificateApi() = default;
  // kConflict: one of that name exists.
  virtual Result<CertificateRequest> create(const CertificateRequest& request) = 0;
  virtual Result<CertificateRequest> get(const std::string& name) = 0;  // kNotFound
  // The one request, until it is destroyed. Must not outlive this.
  virtual std::unique_ptr<Watch<CertificateRequest>> watch(const std::string& name) = 0;
};

// For who decides about the requests of others.
class ApprovalApi {
 public:
  virtual ~ApprovalApi() = default;
  // kConflict: the request has changed since it was read, or another one has its name.
  virtual Status approve(const CertificateRequest& request, const std::string& message) = 0;
};

class RestApprovalApi final : public ApprovalApi, private RestCaller {
 public:
  using RestCaller::RestCaller;
  Status approve(const CertificateRequest& request, const std::string& message) override;
};

// All requests to one signer.
std::unique_ptr<Watch<CertificateRequest>> watch_certificate_requests(http::Client& client,
                                                                      const std::string& signer,
                                                                      CallOptions options,
                                                                      Random random);

class RestCertificateApi final : public CertificateApi, private RestCaller {
 public:
  RestCertificateApi(http::Client& client, CallOptions options, Random random)
      : RestCaller(client, std::move(options)), random_(std::move(random)) {}
  Result<CertificateRequest> create(const CertificateRequest& request) override;
  Result<CertificateRequest> get(const std::string& name) override;
  std::unique_ptr<Watch<CertificateRequest>> watch(const std::string& name) override;

 private:
  Random random_;
};

}  // namespace slurmlet::kube
