#pragma once

// Certificates and private keys as PEM text (RFC 7468), both ways. When reading, blocks of another
// kind are skipped, so a file that holds certificate and key together, as kubelet writes it, serves
// as both. Errors are kInvalid, start with the source's name and never quote the text. Internal to
// the component; leaves OpenSSL's per-thread error queue empty.

#include <string>
#include <vector>

#include "base/result.h"
#include "tls/openssl_ptr.h"

namespace slurmlet::tls {

// All certificates of `text`, at least one.
Result<std::vector<CertificatePtr>> parse_certificates(const std::string& text,
                                                       const std::string& name);

// The first private key of `text`. An encrypted key is an error: there is nobody to ask.
Result<KeyPtr> parse_private_key(const std::string& text, const std::string& name);

// "" when memory is short. A key is written as PKCS #8.
std::string to_pem(const X509* certificate);
std::string to_pem(const X509_REQ* request);
std::string to_pem(const EVP_PKEY* key);

// What OpenSSL last complained about on this thread; empties its queue.
std::string take_openssl_error();

}  // namespace slurmlet::tls
