#pragma once

// The rules of `slurmlet check` about who this machine is and with what it proves it: facts in,
// findings out. Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/check/check_finding.h"
#include "daemon/node_identity.h"
#include "status/daemon_status.h"
#include "tls/client_identity.h"

namespace slurmlet::cli {

// `state_dir`: where facts that an earlier run saved come from.
Findings metadata_findings(const daemon::NodeIdentity& identity, const std::string& state_dir);

// A file with a secret.
struct SecretFile {
  std::string path;
  unsigned mode = 0;  // permission bits
};

struct CredentialSeen {
  std::string node_name;
  std::string source;                                  // the kubeconfig, or what stands for it
  std::optional<Error> problem;                        // why it cannot be used
  std::optional<tls::CertificateSummary> certificate;  // nothing: a token
  std::vector<SecretFile> secrets;
  bool has_bootstrap = false;
  bool is_missing = false;  // the kubeconfig is not there yet
  bool has_server = true;   // one is configured
};
Findings credential_findings(const CredentialSeen& seen, WallTime now);

struct BootstrapSeen {
  std::string file;
  std::optional<Error> problem;  // cannot be read, or holds no token
  std::vector<SecretFile> secrets;
  bool needed = false;  // there is no usable credential
};
Findings bootstrap_findings(const BootstrapSeen& seen);

struct ServingSeen {
  std::string given_file;  // endpoint.certificateFile
  bool asked_of_cluster = false;
  std::optional<Error> problem;  // of the file or the stored one
  std::optional<tls::CertificateSummary> certificate;
  std::optional<status::DaemonStatus> daemon;
};
Finding serving_finding(const ServingSeen& seen, WallTime now);

}  // namespace slurmlet::cli
