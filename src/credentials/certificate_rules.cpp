#include "credentials/certificate_rules.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rfc3339.h"
#include "base/text.h"

namespace slurmlet::credentials {
namespace {

constexpr std::size_t kDigestDigits = 40;

void sort_unique(std::vector<std::string>& texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
}

std::vector<std::string> missing(const std::vector<std::string>& wanted,
                                 const std::vector<std::string>& there) {
  std::vector<std::string> out;
  std::set_difference(wanted.begin(), wanted.end(), there.begin(), there.end(),
                      std::back_inserter(out));
  return out;
}

}  // namespace

std::string canonical_address(const std::string& text) {
  unsigned char bytes[16];
  char canonical[INET6_ADDRSTRLEN];
  for (const int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, text.c_str(), bytes) == 1) {
      return ::inet_ntop(family, bytes, canonical, sizeof canonical);
    }
  }
  return text;
}

tls::CertificateSubject normalized(tls::CertificateSubject subject) {
  std::transform(subject.dns_names.begin(), subject.dns_names.end(), subject.dns_names.begin(),
                 [](const std::string& name) { return to_lower(name); });
  std::transform(subject.ip_addresses.begin(), subject.ip_addresses.end(),
                 subject.ip_addresses.begin(), canonical_address);
  sort_unique(subject.organizations);
  sort_unique(subject.dns_names);
  sort_unique(subject.ip_addresses);
  return subject;
}

std::string certificate_request_name(const std::string& public_key_digest,
                                     const std::string& signer_name,
                                     const tls::CertificateSubject& subject) {
  // Each text with its length in front, so that no two lists read the same.
  std::string text;
  const auto add = [&text](char kind, const std::string& part) {
    text += fmt::format("{}{}:{}\n", kind, part.size(), part);
  };
  add('k', public_key_digest);
  add('s', signer_name);
  add('c', subject.common_name);
  for (const auto& [kind, parts] :
       {std::pair{'o', &subject.organizations}, std::pair{'d', &subject.dns_names},
        std::pair{'i', &subject.ip_addresses}}) {
    for (const std::string& part : *parts) {
      add(kind, part);
    }
  }
  return "node-csr-" + tls::sha256_hex(text).substr(0, kDigestDigits);
}

bool names_exactly(const tls::CertificateSummary& certificate,
                   const tls::CertificateSubject& subject) {
  return normalized(certificate) == subject;
}

std::string issued_problem(const tls::CertificateSummary& certificate,
                           const tls::CertificateSubject& subject, WallTime now) {
  const tls::CertificateSubject named = normalized(certificate);
  if (named.common_name != subject.common_name || named.organizations != subject.organizations) {
    return fmt::format("it names {} ({}) instead of {} ({})", named.common_name,
                       join(named.organizations, ", "), subject.common_name,
                       join(subject.organizations, ", "));
  }
  auto absent = missing(subject.dns_names, named.dns_names);
  for (auto& address : missing(subject.ip_addresses, named.ip_addresses)) {
    absent.push_back(std::move(address));
  }
  if (!absent.empty()) {
    return "it lacks the names " + join(absent, ", ");
  }
  if (certificate.not_after <= now) {
    return "it had expired at " + rfc3339(certificate.not_after) +
           " when it came; check this machine's clock";
  }
  return "";
}

WallTime renewal_time(const tls::StoredCertificate& certificate, double random) {
  const WallTime not_before = certificate.summary.not_before;
  const WallTime not_after = std::max(not_before, certificate.summary.not_after);
  const WallTime begin = std::clamp(certificate.stored_at, not_before, not_after);
  const auto life = not_after - begin;
  const double share = 0.7 + 0.2 * random;
  return begin + WallTime::duration{static_cast<WallTime::duration::rep>(
                     static_cast<double>(life.count()) * share)};
}

}  // namespace slurmlet::credentials
