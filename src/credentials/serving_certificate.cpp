#include "credentials/serving_certificate.h"

#include <utility>

#include "base/detached_task.h"
#include "base/file.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;

constexpr hours kSelfSignedLife{24 * 365};
constexpr std::chrono::seconds kPatience{1};  // with the files, at the start
constexpr hours kClockAllowance{1};           // a peer's clock may be behind

ServingCertificate::FileText read_pem(const std::string& what, const std::string& path) {
  if (path.empty()) {
    return std::optional<std::string>{};
  }
  auto text = read_file(path);
  if (!text) {
    return text.error().with_prefix(what);
  }
  return std::optional{*std::move(text)};
}

// The API server's CA, for its clients; there is none where the system's are trusted.
std::optional<std::string> unless_empty(const std::string& ca) {
  return ca.empty() ? std::nullopt : std::optional{ca};
}

}  // namespace

ServingCertificate::ServingCertificate(config::EndpointSettings settings, std::string node_name,
                                       std::string cluster_ca)
    : settings_(std::move(settings)),
      node_name_(std::move(node_name)),
      cluster_ca_(std::move(cluster_ca)) {}

ServingCertificate::Files ServingCertificate::read(const config::EndpointSettings& settings) {
  return {read_pem("endpoint.clientCAFile", settings.client_ca_file),
          read_pem("endpoint.certificateFile", settings.certificate_file),
          read_pem("endpoint.keyFile", settings.key_file)};
}

ServingCertificate::FileText ServingCertificate::client_ca(const Files& files) const {
  return settings_.client_ca_file.empty() ? unless_empty(cluster_ca_) : files.client_ca;
}

Status ServingCertificate::publish(tls::ServerPem pem) {
  pem.client_ca_name =
      settings_.client_ca_file.empty() ? "the cluster's CA" : settings_.client_ca_file;
  auto identity = TRY(tls::ServerIdentity::make(pem));
  pem_ = std::move(pem);
  identity_.set(std::move(identity));
  return {};
}

Status ServingCertificate::make_self_signed(WallTime now, const Files& files) {
  auto key = TRY(tls::generate_key());
  const tls::CertificateSubject subject{node_name_, {}, {node_name_}, {}};
  auto certificate =
      TRY(tls::make_self_signed(key, subject, now - kClockAllowance, now + kSelfSignedLife));
  const auto ca = client_ca(files);
  tls::ServerPem pem;
  pem.certificate = std::move(certificate);
  pem.key = std::move(key);
  pem.client_ca = ca ? *ca : std::nullopt;
  pem.certificate_name = pem.key_name = kSelfSigned;
  const Status published = publish(pem);
  if (!published && pem.client_ca) {  // no client certificate counts until the file is repaired
    pem.client_ca.reset();
    TRY(publish(std::move(pem)));
  }
  return published && !ca ? Status{ca.error()} : published;
}

Status ServingCertificate::start(WallTime now) {
  DetachedTask<Result<Files>> reading;
  const auto read_now = in_time(
      reading, [settings = settings_] { return Result{read(settings)}; }, kPatience);
  const Files files =
      read_now ? *read_now : Files{read_now.error(), read_now.error(), read_now.error()};
  if (!is_given()) {
    return make_self_signed(now, files);
  }
  const Status given = use(files);
  if (given) {
    return {};
  }
  if (const Status fallback = make_self_signed(now, files); !fallback && !identity()) {
    return fallback;
  }
  return given;
}

Status ServingCertificate::use(const Files& files) {
  tls::ServerPem pem = pem_;
  pem.client_ca = TRY(client_ca(files));
  if (is_given()) {
    pem.certificate = TRY(files.certificate).value_or("");
    pem.key = TRY(files.key).value_or("");
    pem.certificate_name = settings_.certificate_file;
    pem.key_name = settings_.key_file;
  }
  return publish(std::move(pem));
}

Status ServingCertificate::use(const tls::StoredCertificate& issued) {
  tls::ServerPem pem = pem_;
  pem.certificate = issued.certificate_pem;
  pem.key = issued.key_pem;
  pem.certificate_name = pem.key_name = "the serving certificate in kubernetes.certDir";
  return publish(std::move(pem));
}

Status ServingCertificate::set_cluster_ca(const std::string& pem) {
  if (pem == cluster_ca_) {
    return {};
  }
  if (serves() && settings_.client_ca_file.empty()) {
    tls::ServerPem with_ca = pem_;
    with_ca.client_ca = unless_empty(pem);
    TRY(publish(std::move(with_ca)));
  }
  cluster_ca_ = pem;
  return {};
}

std::vector<std::filesystem::path> ServingCertificate::files() const {
  std::vector<std::filesystem::path> out;
  if (!serves()) {
    return out;
  }
  for (const auto& file :
       {settings_.certificate_file, settings_.key_file, settings_.client_ca_file}) {
    if (!file.empty()) {
      out.emplace_back(file);
    }
  }
  return out;
}

std::shared_ptr<const tls::ServerIdentity> ServingCertificate::identity() const {
  const auto published = identity_.get();
  return published ? *published : nullptr;
}

std::optional<WallTime> ServingCertificate::not_after() const {
  const auto current = identity();
  return current ? std::optional{current->certificate().not_after} : std::nullopt;
}

}  // namespace slurmlet::credentials
