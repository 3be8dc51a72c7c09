#pragma once

// Files that the service manager hands over as credentials (systemd.exec(5), LoadCredential=): each
// well-known name is the default of one setting. Such files lie in memory that is never swapped,
// and only this service can read them.

#include <string_view>
#include <vector>

#include "config/sources.h"

namespace slurmlet::config {

inline constexpr std::string_view kCredentialsVariable = "CREDENTIALS_DIRECTORY";

struct CredentialName {
  std::string_view name;                      // "slurmlet.kubeconfig"
  std::string_view key;                       // of the setting that the file's path becomes
  std::vector<std::string_view> rivals = {};  // settings that exclude this one, by finalize()
};
const std::vector<CredentialName>& credential_names();

// Takes each file of $CREDENTIALS_DIRECTORY that is there for a setting that nobody gave. One that
// another setting contradicts is not used, with a warning: who gave the setting meant it.
// Paths only; what is in the files is neither kept nor logged. To be called after flags, before
// apply_in_cluster().
void apply_credentials(const EnvLookup& environment, const FileReader& files, Draft& draft);

// For a command that a person runs beside the unit: the environment, and where it has no
// $CREDENTIALS_DIRECTORY the first directory in which the unit's credentials can be read: those of
// the running slurmlet.service, else the credential stores (systemd.exec(5)). Where none can, the
// environment as it is.
EnvLookup with_unit_credentials(EnvLookup environment, const FileReader& files);

}  // namespace slurmlet::config
