#include "slurm/answers/slurm_command.h"

namespace slurmlet::slurm {

CommandSpec slurm_command(const std::string& bin_dir, const std::string& program,
                          const std::string& conf) {
  CommandSpec spec;
  spec.argv = {bin_dir.empty() ? program : bin_dir + "/" + program};
  if (!conf.empty()) {
    spec.extra_environment.push_back("SLURM_CONF=" + conf);
  }
  return spec;
}

}  // namespace slurmlet::slurm
