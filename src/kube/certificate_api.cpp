#include "kube/certificate_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "kube/certificate_json.h"
#include "kube/rest_send.h"
#include "kube/typed_watch.h"

namespace slurmlet::kube {

namespace {

constexpr const char* kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

std::unique_ptr<Watch<CertificateRequest>> watch_requests(http::Client& client,
                                                          const std::string& selector,
                                                          CallOptions options, Random random) {
  return std::make_unique<TypedWatch<CertificateRequest>>(
      std::make_unique<ListWatch>(client, kRequests, "fieldSelector=" + url_encode(selector),
                                  ListWatch::Fresh::kLatest, std::move(options), std::move(random)),
      certificate_request_from_json);
}

}  // namespace

Result<CertificateRequest> RestCertificateApi::create(const CertificateRequest& request) {
  return send_for(client_, options_,
                  {"POST", std::string(kRequests) + "?fieldManager=slurmlet",
                   certificate_request_body(request), kJson, kCallTimeout},
                  certificate_request_from_json);
}

Result<CertificateRequest> RestCertificateApi::get(const std::string& name) {
  return send_for(client_, options_,
                  {"GET", std::string(kRequests) + "/" + url_encode(name), "", "", kCallTimeout},
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
                    approval_body(request, message), kMergePatch, kCallTimeout});
}

std::unique_ptr<Watch<CertificateRequest>> watch_certificate_requests(http::Client& client,
                                                                      const std::string& signer,
                                                                      CallOptions options,
                                                                      Random random) {
  return watch_requests(client, "spec.signerName=" + signer, std::move(options), std::move(random));
}

}  // namespace slurmlet::kube
