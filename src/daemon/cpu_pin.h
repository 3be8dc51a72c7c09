#pragma once

// The setting cpuAffinity: on which CPUs the daemon and its children run.
//
// "slurmd" takes over what slurmd may use. Where slurm.conf sets CPUs of a node apart
// (CoreSpecCount or CpuSpecList with task/cgroup), slurmd confines itself to them, and that in the
// kernel's numbering, so nothing has to be translated from Slurm's. A slurmd that may use all CPUs
// confines nobody. Called by the main thread.

#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "node/facts.h"

namespace slurmlet::daemon {

// What "slurmd" makes of the CPUs that slurmd may use. Pure: nothing = all of them, so none are set
// apart. A slurmd that keeps off the CPUs that are set apart (`off_spec`,
// TaskPluginParam=SlurmdOffSpec) leaves them to others: those that it may not use.
std::optional<std::set<int>> cpus_set_apart(const std::set<int>& slurmd,
                                            const std::set<int>& online, bool off_spec);

class CpuPin {
 public:
  // `wanted`: "none", "slurmd" or a list of CPUs, as config/ has checked it.
  explicit CpuPin(std::string wanted, std::string proc_root = "/proc",
                  std::string sys_root = "/sys");

  // Gives back what it has bound.
  ~CpuPin();
  CpuPin(const CpuPin&) = delete;
  CpuPin& operator=(const CpuPin&) = delete;

  // For a list: an Error when the machine has none of these CPUs.
  Status start();
  // For "slurmd": looks at the one that runs; it confines itself a moment after its start. What is
  // found is logged when it is news. Until slurm.conf has been read nobody knows which of the two
  // kinds of slurmd it is, so nothing changes.
  void follow(const node::SlurmdFacts& slurmd, const node::SlurmConfFacts& conf);

 private:
  Status take_over(const std::set<int>& slurmd, bool off_spec);
  Status bind(const std::set<int>& cpus);
  void release();
  void say(bool warning, const std::string& line);

  std::string wanted_;
  std::string proc_root_, sys_root_;
  std::set<int> own_;    // what we may use by ourselves
  std::set<int> bound_;  // empty = not bound
  std::string said_;
};

}  // namespace slurmlet::daemon
