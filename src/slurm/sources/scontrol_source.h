#pragma once

// The NodeSource that runs `scontrol --local -a -d -o show node` (site_dump.h) and takes this
// node's lines from the answer: the same text as a record of slurmlet-operator. slurmctld has the
// list of all nodes only; in it allocations and base states are its own and fresh, which they are
// not in an answer about one node.
//
// Where scontrol did not end in time, munged or a file that it opens may be why: those are tried.
// One that finds no slurmctld connects again each second for ten; it is ended instead, or a
// slurmctld that comes back would meet those of all nodes that wait. It sleeps as long where
// slurmctld limits the rate, and is left alone there. Not thread-safe.

#include <memory>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/detached_task.h"
#include "slurm/answers/slurm_client.h"
#include "slurm/sources/node_source.h"

namespace slurmlet::slurm {

class ScontrolSource final : public NodeSource {
 public:
  ScontrolSource(ClientSettings settings, std::unique_ptr<CommandRunner> runner)
      : settings_(std::move(settings)), runner_(std::move(runner)) {}

  std::optional<QueryFailure> query(const std::string& node, Now now) override;
  bool busy() const override { return runner_->running(); }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override { return busy() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const override { return runner_->wake_fds(); }
  void set_place(const ClusterPlace& place) override { place_ = place; }

 private:
  std::optional<QueryFailure> why_hung(SteadyTime now);

  ClientSettings settings_;
  ClusterPlace place_;
  std::unique_ptr<CommandRunner> runner_;
  std::string queried_, nonce_;       // of the query under way
  std::vector<std::string> touched_;  // by it
  DetachedTask<std::optional<QueryFailure>> look_;
  bool verbose_ = false;      // the last query hung: only with -v scontrol reports a rate limit
  bool limits_rate_ = false;  // slurmctld has reported one, whatever slurm.conf here says
};

// This node's record from the output of the query.
QueryResult interpret_dump(const CommandOutput& output, std::string_view nonce,
                           const std::string& node);

}  // namespace slurmlet::slurm
