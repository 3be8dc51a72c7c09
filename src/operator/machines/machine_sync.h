#pragma once

// Handles Machines from their deletion in Cluster API to the removal of our hook
// (rules/machine_rules.h). All state is in Slurm, on Nodes or on Machines. While a Machine waits,
// each dump is followed by one squeue for all.
//
// A step object; its calls to the API server block. One thread, that of the API's clients.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/delay.h"
#include "kube/api.h"
#include "operator/machines/controller_machines.h"
#include "operator/machines/drain_policy.h"
#include "operator/machines/machine_calls.h"
#include "operator/machines/machine_events.h"
#include "operator/machines/machine_place.h"
#include "operator/machines/site_machines.h"
#include "operator/machines/slurm_jobs.h"
#include "operator/rules/machine_rules.h"
#include "operator/site/node_changes.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

// Round-robin over `map`, starting after the key `last`.
template <class Map, class Visit>
void round_robin(Map& map, const std::string& last, const Visit& visit) {
  auto at = map.upper_bound(last);
  for (std::size_t left = map.size(); left > 0; --left, ++at) {
    if (at == map.end()) {
      at = map.begin();
    }
    visit(*at);
  }
}

// Of Slurm's commands; a runner runs one at a time.
using RunnerFactory = std::function<std::unique_ptr<CommandRunner>()>;

struct MachineSettings {
  slurm::ClientSettings client;
  slurm::SlurmIdentity self;  // user of Slurm's commands
  DrainPolicy policy;         // for Machines without the annotation
  bool all_clusters = true;   // no Cluster was configured, so there must be only one
  bool dry_run = false;
};

// Must outlive it.
struct MachineContext {
  kube::Watch<kube::Machine>& machines;
  kube::MachineApi& api;
  kube::SiteApi& site;  // for Nodes
  sync::EventSink& node_events;
  sync::EventSink& machine_events;  // on the Machines' server
  // That server's time, for deadlines; nothing = not known yet.
  std::function<std::optional<WallTime>(SteadyTime)> server_time;
};

// For metrics and health.
struct MachineStatus {
  std::size_t waiting = 0, jobs = 0;
  std::set<std::string> without_backup;   // of controllers that wait for a backup slurmctld
  std::optional<WallTime> waiting_since;  // longest wait
  std::uint64_t released = 0, requeued = 0, cancelled = 0, failures = 0;
  std::string problem;
};

class MachineSync {
 public:
  MachineSync(MachineSettings settings, MachineContext context, std::function<bool()> may_act,
              const RunnerFactory& runner, Random random);

  // Appends to `changes` what the last dump requires in Slurm.
  SteadyTime step(Now now, SiteNodes& nodes, const DumpedNodes& dump,
                  std::vector<NodeChange>& changes);
  std::vector<int> wake_fds() const;
  const SiteMachines& machines() const { return machines_; }
  // The state of the Node's Machine; kNone while that is not certain.
  MachineOf machine_of(const std::string& node) const;
  // Where a live Machine's Slurm nodes are in the last dump.
  MachinePlace place(const kube::Machine& machine, SiteNodes& nodes,
                     const DumpedNodes& dump) const {
    return find(machine, {nodes, dump, hosts_});
  }
  const MachineStatus& status() const { return status_; }
  // Resets to the state after a restart.
  void forget();

 private:
  // Input and output of one pass over all Machines.
  struct Pass {
    Now now;
    const SiteView& site;
    std::vector<NodeChange>& changes;
    std::set<std::string> placed = {};  // Slurm nodes of waiting Machines
  };
  struct Claims {  // Machines of a Node
    MachineOf machine = MachineOf::kNone;
    std::size_t count = 0;
  };
  void count_claims(const SiteView& site);
  MachinePlace find(const kube::Machine& machine, const SiteView& site) const;
  MachineFacts facts(const kube::Machine& machine, const MachinePlace& place, const Pass& pass);
  std::optional<NodeJobs> jobs_on(const MachinePlace& place, SteadyTime now);
  void evaluate(kube::Machine& machine, Pass& pass);
  std::set<std::string> leaving_controllers(SteadyTime now) const;
  // Returns whether another slurmctld is in charge, or it is no controller's Machine.
  bool hands_over(kube::Machine& machine, const MachinePlace& place, const Pass& pass);
  void evaluate_all(Pass& pass);
  void execute_ruling(const MachineRuling& ruling, const MachinePlace& place,
                      kube::Machine& machine, const Pass& pass);
  void end_jobs(const MachineRuling& ruling, const MachinePlace& place, kube::Machine& machine,
                Now now);
  void release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
               const Pass& pass);
  void undrain_next(Pass& pass) const;
  void delete_left_behind(Pass& pass) const;
  bool is_current(kube::Machine& machine, Now now);
  bool mark(const std::string& key, const std::string& node, const char* value, const Pass& pass);
  void unmark(const Pass& pass);
  void failed(const std::string& key, const std::string& what, const Error& error, Now now);
  void report_command(const JobCommand& command, const SiteView& site, Now now);
  void report_problem();

  MachineSettings settings_;
  MachineContext context_;
  SlurmJobs jobs_;
  ControllerMachines controllers_;
  SiteMachines machines_;
  MachineCalls calls_;
  MachineEvents events_;
  std::map<std::string, Claims> claims_;        // by Node
  std::map<std::string, std::size_t> jobs_on_;  // by Machine, last known
  HostIndex hosts_;                             // in the last dump
  std::uint64_t dumps_seen_ = 0;
  bool dirty_ = false;                       // a pass is due
  std::string last_called_, last_unmarked_;  // a Machine; a Node
  MachineStatus status_;
};

}  // namespace slurmlet::op
