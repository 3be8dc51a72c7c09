#include "tls/certificate_summary.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
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

// WallTime counts nanoseconds and ends in 2262; the end of time in certificates is the year 9999
// (RFC 5280 section 4.1.2.5).
WallTime wall_time(const ASN1_TIME* time) {
  using std::chrono::seconds;
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) {
    return {};
  }
  constexpr auto kFirst = std::chrono::ceil<seconds>(WallTime::min()).time_since_epoch();
  constexpr auto kLast = std::chrono::floor<seconds>(WallTime::max()).time_since_epoch();
  return WallTime{std::clamp(seconds{::timegm(&parts)}, kFirst, kLast)};
}

std::string octets(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(ASN1_STRING_length(string))};
}

// "" for what is neither an IPv4 nor an IPv6 address.
std::string address_text(const ASN1_OCTET_STRING* address) {
  const int length = ASN1_STRING_length(address);
  if (length != 4 && length != 16) {
    return {};
  }
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address), text, sizeof text);
  return text;
}

void add_alternative_names(const X509& certificate, CertificateSummary& summary) {
  const GeneralNamesPtr names{static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names.get(), i), &type);
    if (type == GEN_DNS) {
      summary.dns_names.push_back(octets(static_cast<const ASN1_STRING*>(value)));
    } else if (type == GEN_IPADD) {
      if (auto text = address_text(static_cast<const ASN1_OCTET_STRING*>(value)); !text.empty()) {
        summary.ip_addresses.push_back(std::move(text));
      }
    }
  }
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
  add_alternative_names(certificate, summary);
  summary.is_ca = (X509_get_extension_flags(const_cast<X509*>(&certificate)) & EXFLAG_CA) != 0;
  ERR_clear_error();
  return summary;
}

}  // namespace slurmlet::tls
