#pragma once

// How many Machines the queue of Slurm needs. Wanted are those that are in use, those that pending
// jobs need, and at least the minimum. More come at once, within a rate. Fewer are wanted slowly:
// an idle machine is drained, found empty by a later dump and squeue, marked for Cluster API, and
// only then `replicas` is lowered. A job that got in, or demand, ends the drain. Where another
// program sets `replicas`, only marks are made. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "node/pending_job.h"

namespace slurmlet::op {

// Of one machine.
struct MachineSize {
  std::int64_t cpus = 0, memory_mib = 0, gpus = 0;
  bool operator==(const MachineSize&) const = default;
};

// A Machine that is not being deleted.
struct ScaleMachine {
  enum class State : std::uint8_t {
    kBooting,  // may become idle within its boot timeout
    kIdle,     // or planned for a pending job
    kLeaving,  // drained by us
    kLeft,     // and empty, by a later squeue
    kInUse,    // runs jobs, sleeps, or is another's to decide (drain, reservation, failure)
    kLate,     // no node, or none that responds, after its boot timeout; takes a place until then
  };
  std::string name;
  State state = State::kBooting;
  Duration idle_for{};
  bool has_job = false;  // by the last squeue
  bool marked = false;   // with our annotation for Cluster API
  // It has our hook, which protects its jobs, is no slurmctld's, and no other has marked it.
  bool may_go = true;
};

// Who decides how many Machines a MachineDeployment has.
enum class ScaledBy : std::uint8_t {
  kQueue,
  kOther,  // another program; idle Machines are marked for it
  kNone,   // nothing is asked of us any more: what we have begun ends
};

// A MachineDeployment with Machines for Slurm.
struct ScaleGroup {
  std::string name;
  ScaledBy by = ScaledBy::kQueue;
  std::set<std::string> partitions;
  std::set<std::string> features;
  std::optional<MachineSize> size;  // nothing: not known
  std::int64_t min = 0, max = 0, replicas = 0;
  Duration idle_after{};
  std::vector<ScaleMachine> machines;
};

struct ScaleRuling {
  std::int64_t wanted = 0;                       // machines, whatever the rate
  std::int64_t replicas = 0;                     // to be set now
  std::vector<std::string> drain, mark, unmark;  // Machines
  std::map<std::string, std::string> undrain;    // Machines, and why, after "as"
  std::string why;                               // for people; "" = nothing to change
};

struct ScaleRulings {
  std::vector<ScaleRuling> groups;     // in the order of the groups
  std::vector<std::string> too_large;  // of jobs that no machine can hold, one of each kind
  std::int64_t too_large_jobs = 0;
};

// `may_add`: machines that the rate allows now. Of those that another program scales, up to ten
// machines that are idle are marked, and no others.
ScaleRulings rule_scale(const std::vector<ScaleGroup>& groups,
                        const std::vector<node::PendingJob>& jobs, std::int64_t may_add);

// Whether nodes with `features` satisfy the expression of a job. Of alternatives and of counted
// sets ("[a*2&b*1]") one is enough.
bool satisfies(const std::set<std::string>& features, std::string_view expression);

}  // namespace slurmlet::op
