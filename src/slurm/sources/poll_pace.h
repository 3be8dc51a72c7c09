#pragma once

// How often slurmctld is queried about this node, so that all nodes of the site together take about
// a hundredth of its time: each query lists all N nodes, 5 µs each (bench/slurmctld_load.py), so
// N nodes may query every N² × 500 µs. Never more often than each minute (346 nodes); beyond 3,000
// (75 minutes) not at all: slurmlet-operator queries for all of them. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace slurmlet::slurm {

inline constexpr std::int64_t kMostNodes = 3000;

struct PollSettings {
  Duration interval = std::chrono::seconds{60};
  // Over which the nodes of a site spread what comes sooner than the interval has it: the first
  // query, those on evidence, the first retry.
  Duration spread = std::chrono::seconds{2};
  Duration stale_after = std::chrono::seconds{300};
  Duration max_backoff = std::chrono::seconds{300};
  std::string too_many = {};  // nodes: why slurmctld is not queried; "" = it is
  std::string why = {};       // of the interval, where it is automatic: for people
  bool operator==(const PollSettings&) const = default;
};

// The settings of the same names; nothing = automatic.
struct PollWishes {
  std::optional<Duration> interval = {}, stale_after = {}, max_backoff = {};
};

// `nodes` is that of slurm.conf; nothing while it is not known.
PollSettings poll_pace(const PollWishes& wishes, std::optional<std::int64_t> nodes);

// "every 60 s (slurm.pollInterval is auto: 300 nodes in slurm.conf)"
std::string pace_text(const PollSettings& pace);

}  // namespace slurmlet::slurm
