#pragma once

// The names of this host that are not its host name, by /etc/hosts and DNS. May take as long as a
// name server does.

#include <string>
#include <vector>

#include "base/result.h"

namespace slurmlet::slurm {

// In the order in which slurmd looks for them in slurm.conf: the canonical name, those of the other
// addresses, the aliases, "localhost" (slurm_conf_get_aliased_nodename() of
// src/common/read_config.c). kUnavailable: the name server does not answer. A host without an
// address has the last only.
Result<std::vector<std::string>> other_host_names(const std::string& hostname);

}  // namespace slurmlet::slurm
