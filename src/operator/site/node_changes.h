#pragma once

// Changes nodes in Slurm with `scontrol update`, many in one command, whoever waits longest first.
// Slurm has no compare-and-set: what is decided by a dump is done within kFresh of its beginning,
// or decided anew by the next one, which has_pending() asks for. A drain that an administrator
// gives in between, milliseconds as a rule, is lost.
//
// A command that fails is repeated with half as many nodes, so that one node holds up no other;
// that one, or where slurmctld is the cause all of them, then with back-off. A step object, never
// blocks but for `confirm`, not thread-safe.

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

// A change that begins while its operator leads ends before another one may lead (leader.h).
inline constexpr Duration kLongestChange = std::chrono::seconds{5};
inline constexpr Duration kFresh = std::chrono::seconds{5};  // of a dump, when a change begins

struct NodeChange {
  std::string slurm_node;
  DrainAction action = DrainAction::kNone;
  std::string reason = {};     // of a drain, or instead of ours
  std::string kube_node = {};  // for whose sake; "" = of a Machine that has none
};

class NodeChanges {
 public:
  // Whether that may be done by a fresh look at the API server. Asked right before what cannot be
  // taken back.
  using Confirm = std::function<bool(const NodeChange&)>;
  struct Done {
    NodeChange change;
    std::string failure;  // "" = done
  };

  NodeChanges(slurm::ClientSettings client, std::unique_ptr<CommandRunner> runner, Confirm confirm,
              const Clock& clock, Random random);

  // Something is to be done with it; what, the next dump decides.
  void want(const std::string& slurm_node, SteadyTime now);
  // All that is to be done by a dump that began at `began`; what else was wanted is not any more.
  // Of several for one node the first counts.
  void decide(const std::vector<NodeChange>& changes, SteadyTime began, SteadyTime now);
  void forget();
  // Whether a dump that began at `began` shows all that was done.
  bool is_shown_by(SteadyTime began) const { return !runner_->running() && began >= changed_at_; }
  // Whether a dump is wanted soon.
  bool has_pending(SteadyTime now) const;
  bool has_waiting() const;
  // Those that have waited since then or longer without having failed themselves.
  std::vector<std::string> waiting_since(SteadyTime then) const;
  // Why the last command failed; "" = it did not, or there was none.
  const std::string& problem() const { return problem_; }

  // Appends what was done. Nothing new begins while not `may_act`.
  SteadyTime step(SteadyTime now, bool may_act, std::vector<Done>& done);
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  struct Wanted {
    SteadyTime since{};   // kNever: it is done; the next dump shows that
    NodeChange change{};  // kNone before a dump has decided
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
  Backoff backoff_;      // of all
  KeyedBackoff failed_;  // of one
  std::map<std::string, Wanted> wanted_;
  SteadyTime decided_from_{}, changed_at_{};  // the dump's beginning; the last command's end
  SteadyTime paused_until_{};
  std::vector<NodeChange> batch_;  // under way
  std::size_t most_ = 0;           // in a batch
  std::string problem_;
};

}  // namespace slurmlet::op
