#pragma once

// slurmctld's nodes by one dump per interval (slurm/sources/site_dump.h): two requests to slurmctld
// at most, whatever the number of nodes. Failed dumps back off with full jitter; the last good dump
// is kept, with its time and the failure.
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

// Parses a record (record_text.h).
std::optional<SlurmNode> read_slurm_node(const std::string& text);

// The problem if `answered` is another cluster than `own`; "" = it is not, or one is unknown.
std::string foreign_cluster(const std::string& own, const std::string& answered);

class DumpedNodes {
 public:
  struct Settings {
    slurm::ClientSettings client;
    std::optional<Duration> interval;  // nothing = by number of nodes
    std::string cluster;
  };

  DumpedNodes(Settings settings, std::unique_ptr<slurm::DumpSource> source, Random random);

  // Starts no dump while not `wanted`; `soon`: a change waits for the next dump.
  SteadyTime step(Now now, bool wanted, bool soon);
  std::vector<int> wake_fds() const { return source_->wake_fds(); }

  // nullptr: slurmctld knows no such node.
  const SlurmNode* find(const std::string& name) const;

  // Nodes of the last dump whose record could not be parsed, or appears twice.
  const std::set<std::string>& misread() const { return misread_; }
  // Discards all nodes; the next dump starts at once.
  void forget();

  const SlurmNodes& nodes() const { return nodes_; }
  // Nodes of the previous dump that have changed since.
  const SlurmNodes& before() const { return before_; }
  const DumpReport& report() const { return report_; }
  // Why the last dump must not be acted on; "" = it is good and recent.
  std::string problem(WallTime now) const;
  struct Counters {
    std::uint64_t dumps = 0;      // successful
    std::uint64_t unchanged = 0;  // of these, "304 Not Modified"
    std::uint64_t failures = 0;   // failed
    Duration took{};              // by the last successful one
    SteadyTime began{};           // the last successful one did
  };
  const Counters& counters() const { return counters_; }
  SteadyTime began() const { return started_; }
  // When a dump that is needed soon may start, or the running one must be polled.
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
  SteadyTime due_{}, soonest_{};       // of the next dump
  bool quiet_ = false;                 // the last whole dump had no changes
  SteadyTime started_{}, whole_at_{};  // last dump; last whole dump
  Counters counters_;
};

}  // namespace slurmlet::op
