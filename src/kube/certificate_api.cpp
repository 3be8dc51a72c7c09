#include "kube/certificate_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/certificate_json.h"
#include "kube/rest_send.h"
#include "kube/typed_watch.h"

namespace slurmlet::kube {

namespace {

constexpr const char* kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

}  // namespace

RestCertificateApi::RestCertificateApi(http::Client& client, CallOptions options, Random random)
    : client_(client), options_(std::move(options)), random_(std::move(random)) {}

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
  return std::make_unique<TypedWatch<CertificateRequest>>(
      std::make_unique<ListWatch>(client_, kRequests, "metadata.name=" + name, options_, random_),
      certificate_request_from_json);
}

}  // namespace slurmlet::kube
