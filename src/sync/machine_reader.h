#pragma once

// Reads the machine: its pressures at each tick, the rest once per report and when slurmd starts.
// The GPUs' driver may hang, and so may the file system of the state directory: either costs its
// own facts only, and how many GPUs there are and how large the disk is stays known.
//
// A step object; not thread-safe.

#include <optional>

#include "base/clock.h"
#include "base/slow_value.h"
#include "host/gpus.h"
#include "host/pressure.h"
#include "node/facts.h"
#include "sync/facts_options.h"

namespace slurmlet::sync {

class MachineReader {
 public:
  explicit MachineReader(FactsOptions options);

  // Whether the next step() makes a report; other readers follow its schedule.
  bool report_is_due(Now now) const { return now.steady >= next_report_; }
  bool tick_is_due(Now now) const { return now.steady >= next_tick_; }
  bool is_read() const { return next_report_ != SteadyTime{}; }
  // With the next step.
  void read_again() { is_requested_ = true; }

  // Sets facts.machine; `facts.slurm_conf` names the GPUs' files. Returns when to call again.
  SteadyTime step(Now now, node::HostFacts& facts);
  std::vector<int> wake_fds() const { return {gpus_.wake_fd(), disk_.wake_fd()}; }

 private:
  void read_machine(node::MachineFacts& machine);
  void read_gpus(Now now, node::HostFacts& facts);
  void read_pressures(node::MachineFacts& machine);
  void read_disk(Now now, node::MachineFacts& machine);

  FactsOptions options_;
  host::PressureSampler pressures_;
  SlowValue<host::GpuReading> gpus_;
  SlowValue<std::optional<host::FileSystemUsage>> disk_;  // of the state directory
  bool is_requested_ = false;
  bool disk_size_wanted_ = false;  // for the capacity
  SteadyTime next_report_{};
  SteadyTime next_tick_{};
};

}  // namespace slurmlet::sync
