#pragma once

// Machines that are being deleted, from Cluster API's deletion to the removal of our hook
// (rules/machine_rules.h). Nothing is kept here that is not in Slurm, on Nodes or on Machines, but
// for what ended_nodes.h keeps for an hour.
// While one waits, each dump of slurmctld is followed by one squeue for all.
//
// A step object; its calls of the API server block. One thread, that of the API's clients.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/delay.h"
#include "kube/api.h"
#include "operator/drain_policy.h"
#include "operator/ended_nodes.h"
#include "operator/machine_place.h"
#include "operator/rules/machine_rules.h"
#include "operator/slurm_jobs.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

struct EventReason {  // of an Event
  const char* name;
  bool warning;  // its type; else Normal
};

inline constexpr EventReason kDryRun{"DryRun", false};

// Of what is done for few at a time, each has its turn: visits all entries of a map, first those
// behind the key `last`, which had the last turn.
template <class Map, class Visit>
void visit_in_turn(Map& map, const std::string& last, const Visit& visit) {
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
  DrainPolicy policy;        // of Machines without the annotation
  bool all_clusters = true;  // no cluster was named: only where there is no doubt which it is
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
  std::uint64_t released = 0, records_deleted = 0, requeued = 0, cancelled = 0, failures = 0;
  std::string problem;
};

class MachineSync {
 public:
  MachineSync(MachineSettings settings, MachineContext context, std::function<bool()> may_act,
              std::unique_ptr<CommandRunner> runner, Random random);

  // `drain` gets the Slurm nodes that are to be drained now.
  SteadyTime step(Now now, const SiteView& site, std::vector<std::string>& drain);
  std::vector<int> wake_fds() const { return jobs_.wake_fds(); }
  // Whether the Machines were listed: there are some, and what is not there is not.
  bool known() const { return known_ && !absent_; }
  // And whether it is certain that they are those of this site, now.
  bool certain() const { return known() && doubt_.empty() && watch_problem_.empty(); }
  const Machines& machines() const { return machines_; }
  // Of a Node, by name; kNone while that is not certain.
  MachineOf machine_of(const std::string& node) const;
  // What stands for the Node of a Machine that has none; nullptr: it has one.
  const KubeNode* stand_in(const std::string& slurm_node) const;
  const MachineStatus& status() const { return status_; }
  // As after a restart.
  void forget();

 private:
  struct Marked {
    std::string value;
    SteadyTime until;  // by then the watch has told
  };
  struct Told {
    std::string message;
    SteadyTime at;
  };
  struct Trouble {  // with a call
    SteadyTime until{};
    Duration pause{};
  };
  SteadyTime watch(Now now);
  void unmark(const SiteView& site, Now now);
  void count_claims(const SiteView& site);
  MachinePlace find(const kube::Machine& machine, const SiteView& site) const;
  MachineFacts facts(const kube::Machine& machine, const MachinePlace& place, const SiteView& site,
                     Now now);
  void look_at(kube::Machine& machine, Now now, const SiteView& site,
               std::vector<std::string>& drain);
  void look_at_all(Now now, const SiteView& site, std::vector<std::string>& drain);
  void carry_out(const MachineRuling& ruling, const MachinePlace& place, kube::Machine& machine,
                 Now now, std::vector<std::string>& drain);
  void release(const MachinePlace& place, kube::Machine& machine, const std::string& why, Now now);
  bool is_as_seen(const kube::Machine& machine, Now now);
  bool mark(const std::string& key, const MachinePlace& place, const char* value, Now now);
  bool may_call(const std::string& key, Now now);
  void succeeded(const std::string& key);
  void failed(const std::string& key, const std::string& what, const Error& error, Now now);
  void note(const SlurmAct& act, const SiteView& site, Now now);
  void look_at_ended(const SiteView& site, std::vector<std::string>& drain, Now now);
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
  std::map<std::string, KubeNode> stand_ins_;                // by Slurm node
  std::map<std::string, std::map<std::string, Told>> told_;  // of a Machine, of a job on it or ""
  std::map<std::string, Marked> marked_;                     // on a Node, by uid
  std::map<std::string, std::size_t> jobs_on_;               // of a Machine, as last known
  EndedNodes ended_;
  std::uint64_t seen_ = 0;  // dumps
  bool known_ = false;      // the Machines were listed
  bool absent_ = false;     // there is no such resource
  bool dirty_ = false;      // something has changed
  int calls_left_ = 0;      // of API servers, in this look
  int failed_calls_ = 0;
  std::string last_called_, last_unmarked_;     // for this Machine, of this Node
  SteadyTime again_ = kNever, paused_until_{};  // look again; no call before
  std::map<std::string, Trouble> troubles_;     // of a Machine, or of a Node that is to be unmarked
  std::string doubt_, watch_problem_, call_problem_;
  MachineStatus status_;
};

}  // namespace slurmlet::op
