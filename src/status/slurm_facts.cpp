#include "status/slurm_facts.h"

namespace slurmlet::status {

node::HostFacts slurm_facts(const Report& report) {
  node::HostFacts facts;
  facts.slurm = report.slurm;
  facts.slurmd = report.slurmd;
  facts.slurm_conf = report.slurm_conf;
  facts.jobs = report.jobs;
  facts.confirmed = report.confirmed;
  return facts;
}

}  // namespace slurmlet::status
