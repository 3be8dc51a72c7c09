#pragma once

// Changes nodes in Slurm with `scontrol update`, one after the other. Slurm has no compare-and-set,
// so each node is queried anew immediately before it is changed, and the caller's rule decides from
// that: a drain that an administrator gave a moment ago is seen. What is left is the time from the
// query to the end of the change: milliseconds, 10 s at most.
//
// What failed is tried again with back-off: the node, or all of them where slurmctld is the cause.
// A step object, never blocks, not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/delay.h"
#include "operator/rules/drain_rules.h"
#include "slurm/answers/sinfo.h"

namespace slurmlet::op {

// A change that begins while its operator leads ends before another one may lead (leader.h).
inline constexpr Duration kLongestChange = std::chrono::seconds{5};

// The node of a record's text (record_text.h); nothing when it is none.
std::optional<SlurmNode> read_slurm_node(const std::string& text);

struct NodeChange {
  DrainAction action = DrainAction::kNone;
  std::string reason;  // of a drain, or instead of ours
};

class NodeUpdates {
 public:
  // What is to be done with this node, as it is now. Asked immediately before it is done.
  using Decide = std::function<NodeChange(const SlurmNode&)>;
  struct Done {
    std::string slurm_node;
    NodeChange change;
    std::string failure;  // "" = done
  };

  NodeUpdates(slurm::SinfoSettings client, std::unique_ptr<CommandRunner> runner, Decide decide,
              Random random);

  // Has the rule asked about this node soon.
  void want(const std::string& slurm_node) { wanted_.try_emplace(slurm_node); }
  void forget() { wanted_.clear(); }
  // The last look was too old when its answer was read: nothing that blocks is to be done until the
  // next one has been read.
  bool needs_quiet() const { return was_late_ && runner_->running(); }
  // Until when a look is under way that would be too old behind a call that takes long.
  SteadyTime quiet_until() const;
  // Appends what was done. Nothing new begins while not `may_act`.
  SteadyTime step(SteadyTime now, bool may_act, std::vector<Done>& done);
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  enum class Stage : std::uint8_t { kIdle, kLook, kChange };
  void begin_next(SteadyTime now, std::vector<Done>& done);
  void look(SteadyTime now, CommandSpec spec, std::vector<Done>& done);
  void look_everywhere(SteadyTime now, std::vector<Done>& done);
  std::optional<SlurmNode> read_look(SteadyTime now, const CommandOutput& output,
                                     std::vector<Done>& done);
  void begin(SteadyTime now, CommandSpec spec, Stage stage, std::vector<Done>& done);
  void looked(SteadyTime now, const CommandOutput& output, std::vector<Done>& done);
  void command_failed(SteadyTime now, const CommandOutput& output, std::vector<Done>& done);
  void failed(SteadyTime now, const std::string& why, bool of_all, std::vector<Done>& done);

  slurm::SinfoSettings client_;
  std::unique_ptr<CommandRunner> runner_;
  Decide decide_;
  Backoff backoff_;
  std::map<std::string, SteadyTime> wanted_;  // and when at the earliest
  SteadyTime paused_until_{};
  SteadyTime looked_at_{};
  Stage stage_ = Stage::kIdle;
  bool was_late_ = false;
  std::string node_;  // that is being changed
  std::string seal_;  // of a look by scontrol
  NodeChange change_;
};

}  // namespace slurmlet::op
