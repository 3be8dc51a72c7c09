#pragma once

// slurmctld's nodes, by one dump of all of them each interval (slurm/sources/site_dump.h): two
// requests to slurmctld at most, whatever the number of nodes. Dumps that fail back off with full
// jitter; what was known stays, with its time and the cause.
//
// A step object: call step() when a descriptor of wake_fds() is readable or the returned time has
// come. Never blocks. Not thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/delay.h"
#include "operator/rules/record_rules.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {

using SlurmNodes = std::map<std::string, SlurmNode>;

// The node of a record's text (record_text.h); nothing when it is none.
std::optional<SlurmNode> read_slurm_node(const std::string& text);

// Why an answer that names the cluster `answered` is of no use to the operator of `own`; "" when it
// is ours, or one of the two is not known.
std::string foreign_cluster(const std::string& own, const std::string& answered);

class DumpedNodes {
 public:
  struct Settings {
    slurm::ClientSettings client;      // of Slurm's commands
    std::optional<Duration> interval;  // nothing = by the size of the site
    std::string cluster;
  };

  DumpedNodes(Settings settings, std::unique_ptr<slurm::DumpSource> source, Random random);

  // No new dump begins while not `wanted`; `soon`: one is needed now, not at its time.
  SteadyTime step(Now now, bool wanted, bool soon);
  std::vector<int> wake_fds() const { return source_->wake_fds(); }

  // nullptr: slurmctld knows no such node.
  const SlurmNode* find(const std::string& name) const;

  // Nodes that the last dump has, but not in a form that is understood, or twice.
  const std::set<std::string>& misread() const { return misread_; }
  // Nothing is known any more; the next dump begins at once.
  void forget();

  const SlurmNodes& nodes() const { return nodes_; }
  // Of the dump before that: of the nodes that have changed since.
  const SlurmNodes& before() const { return before_; }
  const DumpReport& report() const { return report_; }
  // Why nothing is to be done by it; "" = it is good, and recent.
  std::string problem(WallTime now) const;
  struct Counters {
    std::uint64_t dumps = 0;      // good ones
    std::uint64_t unchanged = 0;  // of these, those that said no more than that
    std::uint64_t failures = 0;   // others
    Duration took{};              // the last good one
  };
  const Counters& counters() const { return counters_; }
  SteadyTime began() const { return started_; }  // the last one
  // When one that is needed soon may begin, or the one under way is to be looked at.
  SteadyTime soonest() const { return source_->running() ? source_->deadline() : soonest_; }

 private:
  bool may_be_unchanged(SteadyTime now) const;
  void finish(Now now, slurm::DumpSource::Answer answer);
  void take(slurm::DumpRecords records);
  void fail(Now now, const Error& why);

  Settings settings_;
  std::unique_ptr<slurm::DumpSource> source_;
  DumpReport report_;
  Backoff backoff_;
  SlurmNodes nodes_, before_;
  std::set<std::string> misread_;
  WallTime began_{};
  SteadyTime due_{}, soonest_{};       // the next one: at once
  bool quiet_ = false;                 // the last whole dump was as the one before it
  SteadyTime started_{}, whole_at_{};  // the last dump, the last whole one
  Counters counters_;
};

}  // namespace slurmlet::op
