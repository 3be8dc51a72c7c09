#pragma once

// Gives MachineDeployments as many Machines as the queue of Slurm needs (rules/scale_rules.h). All
// state is in Slurm (a drain with our Reason), on Machines (the annotation by which Cluster API
// deletes them first) and in `replicas`, so it may be killed at any moment.
//
// A step object; its calls to the API server block. One thread, that of the API's clients.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/token_bucket.h"
#include "kube/scale_api.h"
#include "operator/machines/machine_sync.h"
#include "operator/machines/queue_poll.h"
#include "operator/machines/scale_facts.h"

namespace slurmlet::op {

struct ScaleSettings {
  slurm::ClientSettings client;
  slurm::SlurmIdentity self;  // user of Slurm's commands
  Duration interval;          // of squeue
  int up_per_minute;
  bool dry_run;
};

// Must outlive it.
struct ScaleContext {
  kube::ScaleApi& api;
  kube::MachineApi& machines;
  sync::EventSink& events;  // on the Machines' server
};

class Scaler {
 public:
  Scaler(ScaleSettings settings, ScaleContext context, std::function<bool()> may_act,
         std::unique_ptr<CommandRunner> runner);

  // After machines.step(). Appends to `changes` what is to be done in Slurm.
  SteadyTime step(Now now, const MachineSync& machines, SiteNodes& nodes, const DumpedNodes& dump,
                  std::vector<NodeChange>& changes);
  std::vector<int> wake_fds() const { return queue_.wake_fds(); }
  const ScaleStatus& status() const { return status_; }
  // Resets to the state after a restart.
  void forget();

 private:
  struct Site {
    const MachineSync& machines;
    SiteNodes& nodes;
    const DumpedNodes& dump;
  };
  struct Deployment {
    kube::MachineDeployment object;
    ScalePolicy policy;
  };
  void begin(Now now, const Site& site);
  static std::set<std::string> begun(const Site& site);
  void evaluate(Now now, const Site& site);
  ScaleGroup group(const Deployment& deployment, const std::vector<const kube::Machine*>& machines,
                   const Site& site, Now now);
  void learn(const Deployment& deployment, const std::vector<const SlurmNode*>& slurm,
             ScaleGroup& group);
  bool execute(const Deployment& deployment, const ScaleGroup& group, const ScaleRuling& ruling,
               const Site& site, Now now);
  bool set_replicas(const Deployment& deployment, const ScaleGroup& group,
                    const ScaleRuling& ruling, const Site& site, Now now);
  bool are_current(const ScaleGroup& group, const Site& site);
  void plan(const std::string& machine, NodeChange change, const Site& site);
  std::vector<NodeChange> planned(const DumpedNodes& dump) const;
  void report(const Deployment& deployment, bool warning, const std::string& message, Now now);
  bool finish(const std::string& what, const Status& done, Now now);
  void failed(const std::string& what, const Error& error);
  void forget_queue();

  ScaleSettings settings_;
  ScaleContext context_;
  std::function<bool()> may_act_;
  QueuePoll queue_;
  TokenBucket up_;
  std::vector<Deployment> deployments_;
  QueueFacts facts_;
  std::map<std::string, ScaleGroup> learned_;    // size and features, by MachineDeployment
  std::map<std::string, NodeChange> plan_;       // by Slurm node
  std::map<std::string, std::string> reported_;  // by MachineDeployment
  std::uint64_t dumps_seen_ = 0;
  ScaleStatus status_;
};

}  // namespace slurmlet::op
