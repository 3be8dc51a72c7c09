#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "tls/certificates.h"
#include "tls/pem.h"

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

// How many were left out, being neither DNS names nor addresses.
int add_alternative_names(const GENERAL_NAMES* names, CertificateSubject& out) {
  int others = 0;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
    std::string address =
        type == GEN_IPADD ? address_text(static_cast<const ASN1_OCTET_STRING*>(value)) : "";
    if (type == GEN_DNS) {
      out.dns_names.push_back(octets(static_cast<const ASN1_STRING*>(value)));
    } else if (!address.empty()) {
      out.ip_addresses.push_back(std::move(address));
    } else {
      ++others;
    }
  }
  return others;
}

Error strange(const std::string& what) {
  return {Code::kInvalid, "the certificate request " + what};
}

// Requests carry their extensions in an attribute, of which there might be several.
Status read_requested_names(X509_REQ* request, CertificateSubject& subject) {
  const int attributes = X509_REQ_get_attr_count(request);
  if (attributes == 0) {
    return {};
  }
  if (attributes > 1 || X509_REQ_get_attr_by_NID(request, NID_ext_req, -1) != 0 ||
      X509_ATTRIBUTE_count(X509_REQ_get_attr(request, 0)) != 1) {
    return strange("has attributes besides one list of extensions");
  }
  const ExtensionsPtr extensions{X509_REQ_get_extensions(request)};
  int found = 0;
  const GeneralNamesPtr names{static_cast<GENERAL_NAMES*>(
      X509V3_get_d2i(extensions.get(), NID_subject_alt_name, &found, nullptr))};
  if (!names) {
    constexpr int kAbsent = -1;
    return !extensions || found != kAbsent ? strange("has names that cannot be read") : Status{};
  }
  if (add_alternative_names(names.get(), subject) != 0) {
    return strange("has names that are neither DNS names nor IP addresses");
  }
  return {};
}

std::string without_space(std::string_view text) {
  std::string out;
  std::copy_if(text.begin(), text.end(), std::back_inserter(out),
               [](char c) { return c != ' ' && c != '\n' && c != '\r' && c != '\t'; });
  return out;
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
  summary.not_before = wall_time(X509_get0_notBefore(&certificate));
  summary.not_after = wall_time(X509_get0_notAfter(&certificate));
  const GeneralNamesPtr names{static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr))};
  (void)add_alternative_names(names.get(), summary);
  summary.is_ca = (X509_get_extension_flags(const_cast<X509*>(&certificate)) & EXFLAG_CA) != 0;
  ERR_clear_error();
  return summary;
}

Result<CertificateSubject> read_certificate_request(const std::string& pem) {
  const RequestPtr request = parse_request(pem);
  if (!request) {
    ERR_clear_error();
    return strange("is not a PEM certificate request (-----BEGIN CERTIFICATE REQUEST-----)");
  }
  // Others read PEM differently: what OpenSSL takes for the end of a block, Go takes for a broken
  // one, and goes on to the next.
  if (without_space(to_pem(request.get())) != without_space(pem)) {
    return strange("is more than one PEM certificate request, or not written as usual");
  }
  const X509_NAME* name = X509_REQ_get_subject_name(request.get());
  CertificateSubject subject;
  subject.organizations = name_values(name, NID_organizationName);
  const auto common_names = name_values(name, NID_commonName);
  if (common_names.size() != 1 ||
      X509_NAME_entry_count(name) != static_cast<int>(subject.organizations.size()) + 1) {
    return strange("has a subject that is not one common name and organizations");
  }
  subject.common_name = common_names.front();
  const Status names = read_requested_names(request.get(), subject);
  ERR_clear_error();
  return names ? Result<CertificateSubject>{std::move(subject)} : names.error();
}

}  // namespace slurmlet::tls
