#pragma once

// Asks which slurmctld answer, once after each dump while the Machine of one is being deleted, and
// has a backup take over (rules/controller_rules.h). A step object, never blocks, not thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/command.h"
#include "operator/rules/controller_rules.h"
#include "operator/site/dumped_nodes.h"

namespace slurmlet::op {

class ControllerMachines {
 public:
  ControllerMachines(slurm::ClientSettings client, std::unique_ptr<CommandRunner> runner)
      : client_(std::move(client)), runner_(std::move(runner)) {}

  // want() must follow for another ping.
  void new_dump(const DumpedNodes& dump, Now now);
  void want() { ping_ = ping_ == PingState::kNotWanted ? PingState::kWanted : ping_; }
  void forget();

  // By the last ping; nothing = it is old, or failed.
  std::optional<std::vector<node::Controller>> seen(SteadyTime now) const;
  // Whether the ping before it showed the same, and slurmctld answered between them.
  bool answered() const;
  // The host whose slurmctld has just taken over; "" = none, or one may have come back since.
  std::string took_over(SteadyTime now) const;
  // Why they are not known; "" = they are.
  const std::string& problem() const { return problem_; }

  // Requests a takeover, at most once in a while. Returns whether it did.
  bool take_over(std::size_t backup, SteadyTime now);
  // Why the last takeover failed; once.
  std::string take_failure() { return std::exchange(failure_, {}); }

  // Returns whether seen() or problem() has changed. Starts nothing while not `may_act`.
  bool step(SteadyTime now, bool may_act);
  SteadyTime deadline() const { return runner_->running() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }

 private:
  struct Ping {
    std::vector<node::Controller> controllers;
    SteadyTime began, ended;
  };
  bool finish(SteadyTime now, const CommandOutput& output);
  bool begin(SteadyTime now);

  slurm::ClientSettings client_;
  std::unique_ptr<CommandRunner> runner_;
  std::optional<Ping> before_, last_;
  SteadyTime began_{};                      // of the running ping
  SteadyTime dump_began_{}, dump_ended_{};  // of the last good dump
  enum class PingState : std::uint8_t { kNotWanted, kWanted, kBegun };
  PingState ping_ = PingState::kNotWanted;  // since the last dump
  std::optional<std::size_t> wanted_takeover_;
  SteadyTime takeover_not_before_{};
  struct Takeover {
    std::string host;
    SteadyTime at;
  };
  std::optional<Takeover> running_takeover_;
  Takeover last_takeover_;
  std::string problem_, failure_;
};

}  // namespace slurmlet::op
