#pragma once

// Changes nodes in Slurm with `scontrol update`, many per command, longest wait first. Slurm has no
// compare-and-set, so a change must start within kFresh of its dump's start; otherwise the next
// dump, which has_pending() requests, decides again. An administrator's drain in between, usually
// milliseconds, is overwritten.
//
// A failed command is repeated with half as many nodes, so that one node does not delay others; a
// single node, or all of them if slurmctld is the cause, backs off. A step object, never blocks but
// for `confirm`, not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/delay.h"
#include "base/keyed_backoff.h"
#include "operator/rules/drain_rules.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::op {

// A change started by a leader ends before another operator can lead (leader.h).
inline constexpr Duration kLongestChange = std::chrono::seconds{5};
inline constexpr Duration kFresh =
    std::chrono::seconds{5};  // maximum age of a dump at a change's start

struct NodeChange {
  std::string slurm_node;
  DrainAction action = DrainAction::kNone;
  std::string reason = {};     // new Reason
  std::string kube_node = {};  // "" = a Machine without a Node
  std::string why = {};        // for people; "" = a cordon or its end
};

class NodeChanges {
 public:
  // Checks by a fresh read from the API server that a change is still right. Called right before
  // changes that cannot be undone.
  using Confirm = std::function<bool(const NodeChange&)>;
  struct Done {
    NodeChange change;
    std::string failure;  // "" = success
  };

  NodeChanges(slurm::ClientSettings client, std::unique_ptr<CommandRunner> runner, Confirm confirm,
              const Clock& clock, Random random);

  // Requests a change, which the next dump decides.
  void want(const std::string& slurm_node, SteadyTime now);
  // Replaces all wanted changes with those of a dump that started at `began`. The first per node
  // counts.
  void decide(const std::vector<NodeChange>& changes, SteadyTime began, SteadyTime now);
  void forget();
  // Whether a dump that started at `began` shows all changes made.
  bool is_shown_by(SteadyTime began) const { return !runner_->running() && began >= changed_at_; }
  // Whether a dump is wanted soon.
  bool has_pending(SteadyTime now) const;
  bool has_waiting() const;
  // Slurm nodes that have waited since `then` or longer and have not failed themselves.
  std::vector<std::string> waiting_since(SteadyTime then) const;
  // Why the last command failed; "" = it did not.
  const std::string& problem() const { return problem_; }

  // Appends finished changes to `done`. Starts nothing while not `may_act`.
  SteadyTime step(SteadyTime now, bool may_act, std::vector<Done>& done);
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  struct Wanted {
    SteadyTime since{};   // kNever: made; the next dump shows it
    NodeChange change{};  // kNone until a dump decides
  };
  std::vector<NodeChange> next_batch(SteadyTime now);
  CommandSpec command() const;
  bool begin(SteadyTime now, std::vector<Done>& done);
  void finish(SteadyTime now, const CommandOutput& output, std::vector<Done>& done);
  void fail(SteadyTime now, const std::string& why, bool of_all, std::vector<Done>& done);

  slurm::ClientSettings client_;
  std::unique_ptr<CommandRunner> runner_;
  Confirm confirm_;
  const Clock& clock_;
  Backoff backoff_;      // for all nodes
  KeyedBackoff failed_;  // for each node
  std::map<std::string, Wanted> wanted_;
  SteadyTime decided_from_{}, changed_at_{};  // the dump's start; the last command's end
  SteadyTime paused_until_{};
  std::vector<NodeChange> batch_;
  std::size_t most_ = 0;  // nodes per batch
  std::string problem_;
};

}  // namespace slurmlet::op
