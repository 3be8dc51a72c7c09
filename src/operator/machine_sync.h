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
#include "base/keyed_backoff.h"
#include "kube/api.h"
#include "operator/drain_policy.h"
#include "operator/machine_place.h"
#include "operator/node_changes.h"
#include "operator/rules/machine_rules.h"
#include "operator/slurm_jobs.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

struct EventReason {  // of an Event
  const char* name;
  bool warning;  // its type; else Normal
};

inline constexpr EventReason kDryRun{"DryRun", false};

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
  slurm::SinfoSettings client;
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
  // The list has succeeded: a Machine that is missing does not exist.
  bool known() const { return known_ && !absent_; }
  // And it is certain that they are those of this site, now.
  bool certain() const { return known() && doubt_.empty() && watch_problem_.empty(); }
  const Machines& machines() const { return machines_; }
  // Of a Node, by name; kNone while that is not certain.
  MachineOf machine_of(const std::string& node) const;
  const MachineStatus& status() const { return status_; }
  // As after a restart.
  void forget();

 private:
  struct Told {
    std::string message;
    SteadyTime at;
  };
  SteadyTime watch(Now now);
  void count_claims(const SiteView& site);
  MachinePlace find(const kube::Machine& machine, const SiteView& site) const;
  MachineFacts facts(const kube::Machine& machine, const MachinePlace& place, const SiteView& site,
                     Now now);
  std::optional<NodeJobs> jobs_on(const MachinePlace& place, SteadyTime now);
  void look_at(kube::Machine& machine, Now now, const SiteView& site,
               std::vector<NodeChange>& changes);
  void look_at_all(Now now, const SiteView& site, std::vector<NodeChange>& changes);
  void carry_out(const MachineRuling& ruling, const MachinePlace& place, kube::Machine& machine,
                 const SiteView& site, Now now);
  void end_jobs(const MachineRuling& ruling, const MachinePlace& place, kube::Machine& machine,
                Now now);
  void release(const MachinePlace& place, kube::Machine& machine, const std::string& why,
               const SiteView& site, Now now);
  void undrain_next(const SiteView& site, std::vector<NodeChange>& changes) const;
  void delete_left_behind(const SiteView& site, std::vector<NodeChange>& changes) const;
  bool is_as_seen(kube::Machine& machine, Now now);
  bool mark(const std::string& key, const std::string& node, const char* value,
            const SiteView& site, Now now);
  void unmark(const SiteView& site, Now now);
  bool may_call(const std::string& key, Now now);
  void succeeded(const std::string& key);
  void failed(const std::string& key, const std::string& what, const Error& error, Now now);
  void note(const SlurmAct& act, const SiteView& site, Now now);
  void tell(const kube::Machine& machine, const MachinePlace& place, const EventReason& reason,
            const std::string& message, Now now, const std::string& job = "");

  MachineSettings settings_;
  MachineContext context_;
  std::function<bool()> may_act_;
  SlurmJobs jobs_;
  Backoff backoff_;

  Machines machines_;
  std::map<std::string, MachineOf> of_node_;                 // by Node
  std::map<std::string, std::size_t> claims_;                // Node → Machines
  std::set<std::string> placed_;                             // Slurm nodes of those that wait
  std::map<std::string, std::map<std::string, Told>> told_;  // of a Machine, of a job on it or ""
  std::map<std::string, std::size_t> jobs_on_;               // of a Machine, as last known
  HostIndex hosts_;                                          // of the last dump
  std::uint64_t seen_ = 0;                                   // dumps
  bool known_ = false;                                       // the Machines were listed
  bool absent_ = false;                                      // there is no such resource
  bool dirty_ = false;                                       // something has changed
  int calls_left_ = 0;                                       // of API servers, in this look
  int failed_calls_ = 0;
  std::string last_called_, last_unmarked_;     // for this Machine, of this Node
  SteadyTime again_ = kNever, paused_until_{};  // look again; no call before
  KeyedBackoff failed_;  // calls for a Machine, or for a Node that is to be unmarked
  std::string doubt_, watch_problem_, call_problem_;
  MachineStatus status_;
};

}  // namespace slurmlet::op
