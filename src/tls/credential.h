#pragma once

// What a TLS endpoint shows and trusts, parsed from PEM text: shared by client and server
// identities. Errors are kInvalid and start with the source's name. Internal to the component.

#include <string>

#include "base/result.h"
#include "tls/openssl_ptr.h"

namespace slurmlet::tls {

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

}  // namespace slurmlet::tls
