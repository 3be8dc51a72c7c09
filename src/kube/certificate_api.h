#pragma once

// certificates.k8s.io/v1 CertificateSigningRequest: how a node gets its certificates
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/).
// The bootstrap identity and a node may create, get, list and watch these, and nothing else of
// them.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/backoff.h"
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
  // What became of it.
  bool approved = false;
  bool denied = false;
  bool failed = false;      // the signer refuses it
  std::string message;      // of the Denied or Failed condition: "Reason: message"
  std::string certificate;  // PEM, once issued
};

class CertificateApi {
 public:
  virtual ~CertificateApi() = default;
  // kConflict: one of that name exists.
  virtual Result<CertificateRequest> create(const CertificateRequest& request) = 0;
  virtual Result<CertificateRequest> get(const std::string& name) = 0;  // kNotFound
  // The one request, until it is destroyed. Must not outlive this.
  virtual std::unique_ptr<Watch<CertificateRequest>> watch(const std::string& name) = 0;
};

class RestCertificateApi final : public CertificateApi {
 public:
  RestCertificateApi(http::Client& client, CallOptions options, Random random);
  Result<CertificateRequest> create(const CertificateRequest& request) override;
  Result<CertificateRequest> get(const std::string& name) override;
  std::unique_ptr<Watch<CertificateRequest>> watch(const std::string& name) override;

 private:
  http::Client& client_;
  CallOptions options_;
  Random random_;
};

}  // namespace slurmlet::kube
