#include "slurm/local/slurmd_version.h"

#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "slurm/answers/slurmd_status.h"

namespace slurmlet::slurm {

std::vector<std::string> slurmd_programs(const std::string& configured,
                                         const std::string& bin_dir) {
  std::vector<std::string> candidates;
  if (!configured.empty()) {
    candidates.push_back(configured);
  }
  if (!bin_dir.empty()) {
    candidates.push_back(bin_dir + "/slurmd");
    candidates.push_back(bin_dir + "/../sbin/slurmd");
  }
  const char* path = std::getenv("PATH");
  for (const auto directory : split(path != nullptr ? path : "", ':')) {
    if (directory.starts_with('/')) {
      candidates.push_back(std::string{directory} + "/slurmd");
    }
  }
  candidates.insert(candidates.end(), {"/usr/sbin/slurmd", "/usr/local/sbin/slurmd"});
  return candidates;
}

void SlurmdVersion::ask(std::vector<std::string> programs, SteadyTime now) {
  if (runner_->running()) {
    return;
  }
  CommandSpec spec;
  spec.argv = {"slurmd", "-V"};
  spec.programs = std::move(programs);
  spec.timeout = std::chrono::seconds{5};
  spec.max_output_bytes = 4096;
  (void)runner_->start(spec, now);  // no version is no error: it is only shown to people
}

bool SlurmdVersion::step(SteadyTime now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now, output)) {
    return false;
  }
  auto version = output.succeeded() ? parse_slurmd_version(output.out) : "";
  if (version.empty() || version == version_) {
    return false;
  }
  version_ = std::move(version);
  return true;
}

}  // namespace slurmlet::slurm
