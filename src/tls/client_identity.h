#pragma once

// What a TLS client shows and trusts: CA certificates, client certificate chain and private key,
// parsed once from PEM. The only way OpenSSL objects leave this component is apply_to(), which is
// handed the SSL_CTX of a connection by the HTTP library.
//
// Immutable after make(); safe to share between threads.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

struct x509_store_st;  // OpenSSL's X509_STORE

namespace slurmlet::tls {

// The subject of a certificate. The kubelet signers allow no SAN in a client certificate and ask
// for at least one in a serving certificate
// (https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/).
struct CertificateSubject {
  std::string common_name = {};
  std::vector<std::string> organizations = {};
  // Of the subjectAltName, in order; addresses as inet_ntop(3) writes them.
  std::vector<std::string> dns_names = {}, ip_addresses = {};
  bool operator==(const CertificateSubject&) const = default;
};

// What a certificate says about its owner.
struct CertificateSummary : CertificateSubject {
  WallTime not_before;
  WallTime not_after;
  bool is_ca = false;  // basicConstraints: it may sign others
};

// What is not named is nothing; what is named must hold something: an empty text is an error.
struct PemSources {
  std::optional<std::string> ca;           // nothing = the system's trust store
  std::optional<std::string> certificate;  // may hold intermediates after the leaf
  std::optional<std::string> key;
  // What to call each in errors: a file name or "kubeconfig key …".
  std::string ca_name, certificate_name, key_name;
};

struct Credential;  // pem.h

class ClientIdentity {
 public:
  // kInvalid with the source's name for text that is no PEM, a key that does not fit, an empty CA
  // bundle; never quotes key material.
  static Result<std::shared_ptr<const ClientIdentity>> make(const PemSources& pem);
  // Believes any server and carries no credential. For the discovery of the cluster's CA alone:
  // what comes over such a connection is to be verified by other means before it is used.
  static Result<std::shared_ptr<const ClientIdentity>> make_untrusting();
  // No trust: any server is believed. `own` may be null.
  ClientIdentity(std::shared_ptr<x509_store_st> trust, std::shared_ptr<const Credential> own);

  // Whether the server's certificate and name are verified. An HTTP library that has switches of
  // its own for this must follow.
  bool verifies_server() const { return trust_ != nullptr; }

  // Summary of the client certificate, nothing if there is none.
  const std::optional<CertificateSummary>& certificate() const { return summary_; }

  // Configures a connection: trust store, client certificate, key, TLS 1.2 or newer. `ssl_ctx` is
  // an OpenSSL SSL_CTX*. Returns false when OpenSSL rejects it.
  bool apply_to(void* ssl_ctx) const;

 private:
  std::shared_ptr<x509_store_st> trust_;
  std::shared_ptr<const Credential> own_;
  std::optional<CertificateSummary> summary_;
};

// Base64 of kubeconfig's *-data fields (standard alphabet, padding and newlines allowed).
Result<std::string> base64_decode(std::string_view text);
// Of the URL-safe alphabet without padding (RFC 7515 section 2).
std::optional<std::string> base64url_decode(std::string_view text);
std::string base64_encode(std::string_view bytes);

}  // namespace slurmlet::tls
