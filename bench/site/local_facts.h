#pragma once

// Stands in for sync::FactsSync, which needs processes and files: what happens on the machine is
// told to it, and reaches the real ControllerPoll as evidence by the same rules (slurmd came or
// went, a step came or went, slurmctld says NOT_RESPONDING while slurmd runs). Facts that never
// change here (the machine, pressures) are there from the start.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/conditions.h"
#include "node/facts.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::site {

inline constexpr int kNodeCpus = 128;

// What runs on a machine; outlives the daemon.
struct Machine {
  int slurmd_pid = 0;               // 0: none runs
  std::vector<std::uint32_t> jobs;  // with a step here
  bool operator==(const Machine&) const = default;
};

class LocalFacts {
 public:
  LocalFacts(const std::string& node, int number, const SitePlace& place, const Machine& machine,
             std::unique_ptr<slurm::ControllerPoll> poll);

  void set_record(const std::optional<std::string>& record) { poll_->set_record(record); }
  SteadyTime step(Now now);
  const node::HostFacts& facts() const { return facts_; }
  node::ReadyContext ready_context(Now now) const;
  // Whether facts or circumstances may be others than before the last step.
  bool changed() const { return changed_; }

 private:
  void look_at_machine(Now now);
  void read_jobs();
  void take_arrivals(node::SlurmAnswer answer);
  SteadyTime follow_answer(Now now);

  const Machine& machine_;
  std::unique_ptr<slurm::ControllerPoll> poll_;
  node::HostFacts facts_;
  Machine seen_;
  std::optional<SteadyTime> absent_since_;
  std::optional<SteadyTime> doubt_at_;
  std::optional<SteadyTime> read_jobs_at_;
  std::optional<WallTime> jobs_of_answer_;
  bool jobs_changed_ = false;  // and have not been read since
  bool changed_ = true;
};

}  // namespace slurmlet::site
