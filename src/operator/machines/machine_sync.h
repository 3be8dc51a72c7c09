#pragma once

// Machines that are being deleted, from Cluster API's deletion to the removal of our hook
// (rules/machine_rules.h). Nothing is kept here that is not in Slurm, on Nodes or on Machines.
// While one waits, each dump of slurmctld is followed by one squeue for all.
//
// A step object; its calls of the API server block. One thread, that of the API's clients.

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

// Round-robin over a map, beginning behind the key `last`.
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

struct MachineSettings {
  slurm::ClientSettings client;
  slurm::SlurmIdentity self;  // who its commands act as
  DrainPolicy policy;         // of Machines without the annotation
  bool all_clusters = true;   // no cluster was named: only where there is no doubt which it is
  bool dry_run = false;
};

// What must outlive it.
struct MachineContext {
  kube::Watch<kube::Machine>& machines;
  kube::MachineApi& api;
  kube::SiteApi& site;  // of the Nodes
  sync::EventSink& node_events;
  sync::EventSink& machine_events;  // on the server of the Machines
  // The time by that server, from which deadlines count; nothing = it has not said.
  std::function<std::optional<WallTime>(SteadyTime)> server_time;
};

// For metrics and health.
struct MachineStatus {
  std::size_t waiting = 0, jobs = 0;
  std::optional<WallTime> waiting_since;  // of the one that waits longest
  std::uint64_t released = 0, requeued = 0, cancelled = 0, failures = 0;
  std::string problem;
};

class MachineSync {
 public:
  MachineSync(MachineSettings settings, MachineContext context, std::function<bool()> may_act,
              std::unique_ptr<CommandRunner> runner, Random random);

  // `changes` gets what is to be done in Slurm, by the last dump.
  SteadyTime step(Now now, SiteNodes& nodes, const DumpedNodes& dump,
                  std::vector<NodeChange>& changes);
  std::vector<int> wake_fds() const { return jobs_.wake_fds(); }
  // The Machines, as far as they are known.
  const SiteMachines& machines() const { return machines_; }
  // Of a Node, by name; kNone while that is not certain.
  MachineOf machine_of(const std::string& node) const;
  const MachineStatus& status() const { return status_; }
  // As after a restart.
  void forget();

 private:
  // What a look at all Machines goes by, and what comes of it.
  struct Look {
    Now now;
    const SiteView& site;
    std::vector<NodeChange>& changes;
    std::set<std::string> placed = {};  // Slurm nodes of the Machines that wait
  };
  struct Claims {  // on a Node
    MachineOf machine = MachineOf::kNone;
    std::size_t count = 0;  // of Machines
  };
  void count_claims(const SiteView& site);
  MachinePlace find(const kube::Machine& machine, const SiteView& site) const;
  MachineFacts facts(const kube::Machine& machine, const MachinePlace& place, const Look& look);
  std::optional<NodeJobs> jobs_on(const MachinePlace& place, SteadyTime now);
  void look_at(kube::Machine& machine, Look& look);
  void look_at_all(Look& look);
  void carry_out(const MachineRuling& ruling, const MachinePlace& place, kube::Machine& machine,
                 const Look& look);
  void end_jobs(const MachineRuling& ruling, const MachinePlace& place, kube::Machine& machine,
                Now now);
  void release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
               const Look& look);
  void undrain_next(Look& look) const;
  void delete_left_behind(Look& look) const;
  bool is_as_seen(kube::Machine& machine, Now now);
  bool mark(const std::string& key, const std::string& node, const char* value, const Look& look);
  void unmark(const Look& look);
  void failed(const std::string& key, const std::string& what, const Error& error, Now now);
  void note(const SlurmAct& act, const SiteView& site, Now now);
  void report_problem();

  MachineSettings settings_;
  MachineContext context_;
  SlurmJobs jobs_;
  SiteMachines machines_;
  MachineCalls calls_;
  MachineEvents events_;
  std::map<std::string, Claims> claims_;        // by Node
  std::map<std::string, std::size_t> jobs_on_;  // of a Machine, as last known
  HostIndex hosts_;                             // of the last dump
  std::uint64_t dumps_seen_ = 0;
  bool dirty_ = false;                       // something has changed
  std::string last_called_, last_unmarked_;  // for this Machine, of this Node
  MachineStatus status_;
};

}  // namespace slurmlet::op
