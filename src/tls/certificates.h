#pragma once

// Keys, certificate requests and certificates as PEM text, so that no OpenSSL object leaves this
// component. Keys are ECDSA P-256 (what kubeadm and the kubelet use). Errors are kInvalid for input
// that is wrong, kInternal when OpenSSL fails; they never quote key material. Thread-safe: no
// state.

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tls/client_identity.h"

namespace slurmlet::tls {

// A fresh private key, PEM.
Result<std::string> generate_key();

// PKCS #10 request for `subject`, signed with the key, PEM ("CERTIFICATE REQUEST").
Result<std::string> make_certificate_request(const std::string& key_pem,
                                             const CertificateSubject& subject);

// A self-signed serving certificate (extended key usage: server authentication), PEM.
Result<std::string> make_self_signed(const std::string& key_pem, const CertificateSubject& subject,
                                     WallTime not_before, WallTime not_after);

// What the first certificate of the PEM text says.
Result<CertificateSummary> read_certificate(const std::string& pem, const std::string& name);

// Whether the first certificate of `certificate_pem` belongs to the key.
bool is_pair(const std::string& certificate_pem, const std::string& key_pem);

// Names the public key of a private key: lower-case hex of the SHA-256 of its
// SubjectPublicKeyInfo. Says nothing about the private part.
Result<std::string> public_key_digest(const std::string& key_pem);

// The same name of the public key in a certificate request, which shows whose request it is.
Result<std::string> request_public_key_digest(const std::string& request_pem);

// The subject of a certificate request. Strict, for who decides about it: kInvalid for whatever
// another reader could understand differently (two lists of names, names that are neither DNS nor
// IP, other parts of the subject than one common name and organizations).
Result<CertificateSubject> read_certificate_request(const std::string& pem);

// A certificate and its pin: "sha256:<hex>" of its SubjectPublicKeyInfo, as kubeadm's
// --discovery-token-ca-cert-hash has it.
struct PinnedCertificate {
  std::string pin;
  std::string pem;
};
// Of each certificate, in their order; at least one.
Result<std::vector<PinnedCertificate>> certificates_with_pins(const std::string& certificates_pem,
                                                              const std::string& name);

// SHA-256 of any bytes: 32 raw bytes, or lower-case hex.
std::string sha256(std::string_view bytes);
std::string sha256_hex(std::string_view bytes);

// Whether `jws` is a compact JWS with detached payload (RFC 7515 appendix F), algorithm HS256, key
// id `key_id`, over `payload` with `secret`: how kubeadm signs the ConfigMap cluster-info. Compares
// in constant time.
bool is_signed_with_token(std::string_view jws, std::string_view payload, const std::string& key_id,
                          const std::string& secret);

}  // namespace slurmlet::tls
