#include "tls/certificate_summary.h"

#include <openssl/asn1.h>
#include <openssl/objects.h>

#include <ctime>
#include <utility>

namespace slurmlet::tls {
namespace {

// Every value that the name has for `nid`, in order, as UTF-8.
std::vector<std::string> name_values(const X509_NAME* name, int nid) {
  std::vector<std::string> values;
  for (int at = X509_NAME_get_index_by_NID(name, nid, -1); at >= 0;
       at = X509_NAME_get_index_by_NID(name, nid, at)) {
    unsigned char* utf8 = nullptr;
    const int length =
        ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (length >= 0) {
      values.emplace_back(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(length));
      OPENSSL_free(utf8);
    }
  }
  return values;
}

// RFC 2253 with UTF-8 left readable: "CN=kubernetes,O=site".
std::string name_text(const X509_NAME* name) {
  const BioPtr bio{BIO_new(BIO_s_mem())};
  X509_NAME_print_ex(bio.get(), name, 0,
                     XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB));
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  return length > 0 ? std::string(data, static_cast<std::size_t>(length)) : std::string{};
}

WallTime wall_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return {};
  }
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

}  // namespace

CertificateSummary summarize(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  CertificateSummary summary;
  // The last common name is the most specific one, as OpenSSL and Go have it.
  if (auto names = name_values(subject, NID_commonName); !names.empty()) {
    summary.common_name = std::move(names.back());
  }
  summary.organizations = name_values(subject, NID_organizationName);
  summary.issuer = name_text(X509_get_issuer_name(&certificate));
  summary.not_before = wall_time(X509_get0_notBefore(&certificate));
  summary.not_after = wall_time(X509_get0_notAfter(&certificate));
  return summary;
}

}  // namespace slurmlet::tls
