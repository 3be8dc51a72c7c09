#pragma once

// Reads the fields of a certificate that an administrator asks for. Internal to the component: the
// summary itself is public (client_identity.h).

#include "tls/client_identity.h"
#include "tls/openssl_ptr.h"

namespace slurmlet::tls {

CertificateSummary summarize(const X509& certificate);

}  // namespace slurmlet::tls
