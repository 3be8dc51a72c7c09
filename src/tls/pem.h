#pragma once

// Certificates and private keys as PEM text (RFC 7468), both ways, and what a TLS endpoint shows
// and trusts, made of them. When reading, blocks of another kind are skipped, so a file that holds
// certificate and key together, as kubelet writes it, serves as both. Errors are kInvalid, start
// with the source's name and never quote the text. Internal to the component; leaves OpenSSL's
// per-thread error queue empty.

#include <string>
#include <vector>

#include "base/result.h"
#include "tls/client_identity.h"
#include "tls/openssl_ptr.h"

namespace slurmlet::tls {

// All certificates of `text`, at least one.
Result<std::vector<CertificatePtr>> parse_certificates(const std::string& text,
                                                       const std::string& name);

// The first private key of `text`. An encrypted key is an error: there is nobody to prompt.
Result<KeyPtr> parse_private_key(const std::string& text, const std::string& name);

// The first certificate request of `text`; if there is none, null and the reason in OpenSSL's
// queue.
RequestPtr parse_request(const std::string& text);

struct Credential {
  CertificatePtr leaf;
  CertificatesPtr chain;  // intermediates; never null
  KeyPtr key;
};

// The first certificate of `certificate` and the key must be a pair.
Result<Credential> parse_credential(const std::string& certificate,
                                    const std::string& certificate_name, const std::string& key,
                                    const std::string& key_name);

// A store in which any certificate of the bundle is an anchor, self-signed or not, as in Go's
// crypto/x509, which is what the other parties of a cluster use.
Result<StorePtr> parse_trust(const std::string& ca, const std::string& ca_name);

// An empty store of that kind.
StorePtr make_store();

// The fields of a certificate that an administrator wants to know.
CertificateSummary summarize(const X509& certificate);

// "" when memory is short. A key is written as PKCS #8.
std::string to_pem(const X509* certificate);
std::string to_pem(const X509_REQ* request);
std::string to_pem(const EVP_PKEY* key);

// What OpenSSL last complained about on this thread; empties its queue.
std::string take_openssl_error();

}  // namespace slurmlet::tls
