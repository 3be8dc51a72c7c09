#pragma once

// `slurmlet check`: with what this machine proves who it is. Reads files only.

#include <optional>
#include <string>

#include "base/clock.h"
#include "check/finding.h"
#include "config/settings.h"
#include "credentials/access.h"
#include "status/daemon_status.h"
#include "tls/client_identity.h"

namespace slurmlet::cli {

// The credential in use: the node's own, else that of the bootstrap.
struct CredentialInUse {
  std::optional<credentials::ApiAccess> access;  // nothing: none can be used
  bool by_bootstrap = false;
};

check::Findings credential_findings(const config::Settings& settings, const std::string& node_name,
                                    const Clock& clock, CredentialInUse& out);
check::Findings bootstrap_findings(const config::Settings& settings, const std::string& node_name,
                                   const Clock& clock, CredentialInUse& out);
check::Finding serving_finding(const config::Settings& settings,
                               const std::optional<status::DaemonStatus>& daemon, WallTime now);

// Of the client certificate in `source`, where there is no bootstrap that replaces a bad one.
// Pure.
check::Finding certificate_finding(const tls::CertificateSummary& certificate,
                                   const std::string& source, const std::string& node_name,
                                   WallTime now);

}  // namespace slurmlet::cli
