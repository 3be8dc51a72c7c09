#pragma once

// Puts the facts about this machine, its slurmd and its jobs together with slurmctld's answer.
//
// Each source has a reader of its own, which reads aside what may hang (base/slow_value.h), sets
// its facts and says when it is to be called again; step() calls them in turn. What happens here,
// slurmd that comes or goes and jobs that do, is evidence on which slurmctld is queried
// (ControllerPoll). Ticks fall on multiples of the wall clock, so that all nodes of a parallel job
// are disturbed at one moment.
//
// A step object; not thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/command.h"
#include "node/conditions.h"
#include "node/facts.h"
#include "slurm/sources/controller_poll.h"
#include "sync/facts_options.h"
#include "sync/job_tracker.h"
#include "sync/machine_reader.h"
#include "sync/slurm_conf_reader.h"
#include "sync/slurmd_monitor.h"

namespace slurmlet::sync {

class FactsSync {
 public:
  struct Parts {
    FactsOptions options;
    std::optional<node::Metal3Facts> metal3;
    Discover discover;
    SlurmSetup unread;  // as long as slurm.conf has not been read
    std::unique_ptr<slurm::ControllerPoll> poll;
    std::unique_ptr<CommandRunner> version_runner;  // `slurmd -V`
    std::unique_ptr<CommandRunner> unit_runner;     // `systemctl show slurmd.service`
  };
  explicit FactsSync(Parts parts);

  // Before the first step: where in its site this node stands, by slurm.conf if it can be read so
  // soon.
  const SitePlace& await_site(Now now, Duration patience);
  const SitePlace& site() const { return conf_.setup().site; }
  SteadyTime step(Now now);
  std::vector<int> wake_fds() const;

  // As of the last step; before the first one nothing is known.
  const node::HostFacts& facts() const { return facts_; }
  // Puts this address of the machine, if it is one, before the others: the one that reaches the API
  // server is the one the cluster can reach us at.
  void prefer_address(const std::string& address);
  node::ReadyContext ready_context(Now now) const;
  // NodeSync::record(); whether it was new, so that a step is due.
  bool set_record(const std::optional<std::string>& record) { return poll_->set_record(record); }
  const SlurmSetup& setup() const { return conf_.setup(); }
  slurm::PollCounters poll_counters() const { return poll_->counters(); }
  // slurmd's program is being run for its version.
  bool learns_version() const { return slurmd_.learns_version(); }
  // It is being read for the first time, and not late.
  bool reads_slurm_conf() const { return !conf_.is_read() && conf_.problem().empty(); }

 private:
  void follow_slurm_conf(Now now, bool is_report);
  void use_setup();
  void follow_slurmd(Now now);
  void set_slurmd();

  Duration first_patience_;
  SlurmConfReader conf_;
  SlurmdMonitor slurmd_;
  JobTracker jobs_;
  MachineReader machine_;
  std::unique_ptr<slurm::ControllerPoll> poll_;
  node::HostFacts facts_;
};

}  // namespace slurmlet::sync
