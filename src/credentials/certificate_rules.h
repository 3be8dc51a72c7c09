#pragma once

// What CertificateSync decides by value: the name of a request, a certificate's subject, when it
// is to be renewed. Pure.

#include <string>

#include "base/clock.h"
#include "tls/certificate_store.h"
#include "tls/certificates.h"
#include "tls/client_identity.h"

namespace slurmlet::credentials {

// As inet_ntop(3) writes it; what is no address stays as it is.
std::string canonical_address(const std::string& text);

// The same names in one order and one form: sorted, each once, DNS names in lower case, addresses
// as inet_ntop(3) writes them.
tls::CertificateSubject normalized(tls::CertificateSubject subject);

// "node-csr-<40 hex digits>": one name for one key, signer and subject, so that asking again after
// a restart finds the request of before, and requests that differ do not meet. `subject`
// normalized.
std::string certificate_request_name(const std::string& public_key_digest,
                                     const std::string& signer_name,
                                     const tls::CertificateSubject& subject);

// Whether the certificate names just `subject` (normalized).
bool names_exactly(const tls::CertificateSummary& certificate,
                   const tls::CertificateSubject& subject);

// Why a certificate that was issued for `subject` (normalized) cannot be used: it has expired, is
// somebody else's, or lacks a name that was asked for. "" if it can.
std::string issued_problem(const tls::CertificateSummary& certificate,
                           const tls::CertificateSubject& subject, WallTime now);

// 70 to 90 % of the certificate's life, by `random` in [0, 1). Life begins when the certificate
// came here: signers date not_before back by minutes, which may be more than a short life.
WallTime renewal_time(const tls::StoredCertificate& certificate, double random);

}  // namespace slurmlet::credentials
