#pragma once

// Dynamic nodes of Slurm that were deleted with their Machine. Until the host is switched off its
// slurmd may register one anew: then it gets no job, and it is deleted once it has died. Known to
// this process only: what came back after a restart of it stays an administrator's.
//
// Pure but for what it remembers; not thread-safe.

#include <map>
#include <string>
#include <vector>

#include "operator/machine_place.h"

namespace slurmlet::op {

inline constexpr Duration kMayComeBack = std::chrono::hours{1};

class EndedNodes {
 public:
  struct CameBack {
    KubeNode stand_in;  // for whose sake it is drained
    bool is_dead = false;
  };
  void note(const std::string& slurm_node, const std::string& machine_uid, Now now) {
    ended_.insert_or_assign(slurm_node, Ended{machine_uid, now});
  }
  // Whether this Machine's node was deleted and has not come back, by what is known since. Of the
  // only node there was no dump tells.
  bool is_gone(const std::string& machine_uid, const SiteView& site, SteadyTime now) const;
  // Those that are back, and have neither a Node nor a Machine that lives.
  std::vector<CameBack> look(const SiteView& site, const Machines& machines, SteadyTime now);
  void forget() { ended_.clear(); }

 private:
  struct Ended {
    std::string machine_uid;
    Now at;
  };
  std::map<std::string, Ended> ended_;  // by name in Slurm
};

}  // namespace slurmlet::op
