#include "slurm/slurm_command.h"

namespace slurmlet::slurm {

CommandSpec slurm_command(const std::string& bin_dir, const std::string& program,
                          const std::string& conf) {
  CommandSpec spec;
  spec.argv = {bin_dir.empty() ? program : bin_dir + "/" + program};
  if (!conf.empty()) {
    spec.extra_environment.push_back("SLURM_CONF=" + conf);
  }
  spec.unset_environment = {
      // Another cluster, or the slurmd of another node.
      "SLURM_CLUSTERS", "SLURMD_NODENAME",
      // Another credential than AuthType= says (src/interfaces/auth.c, src/common/sack_api.c).
      "SLURM_JWT", "SLURM_SACK_KEY", "SLURM_SACK_JWKS", "SLURM_SACK_SOCKET",
      "SLURM_MUNGE_AUTH_FAIL_TEST", "SLURM_CONFIG_FETCH",
      // Other words on standard error and output.
      "SLURM_DEBUG_FLAGS", "SLURM_BITSTR_LEN", "ABORT_ON_FATAL",
      // Options of sinfo and of scontrol.
      "SINFO_ALL", "SINFO_FEDERATION", "SINFO_FORMAT", "SINFO_LOCAL", "SINFO_PARTITION",
      "SINFO_SORT", "SCONTROL_ALL", "SCONTROL_FEDERATION", "SCONTROL_FUTURE", "SCONTROL_LOCAL",
      "SCONTROL_SIBLING"};
  return spec;
}

}  // namespace slurmlet::slurm
