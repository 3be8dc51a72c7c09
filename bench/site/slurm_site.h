#pragma once

// slurmctld and the operator of a simulated site, and what a daemon gets of them. A run of
// `scontrol show node` is two requests (docs/explanation/slurm-state.md). While slurmctld is down a
// client connects once a second and gives up after nine and a half; one that comes back within that
// gets its requests. slurmlet ends its scontrol when it begins to wait.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "slurm/sources/controller_poll.h"
#include "world.h"

namespace slurmlet::site {

// A node as slurmctld has it, as the last dump had it, and what the operator wrote of it.
struct SlurmNode {
  std::string name;
  node::SlurmState state{"IDLE", {}};
  std::string dumped = {}, written = {};
  std::optional<std::string> record = {};  // the annotation; not through the API server
  std::function<void()> tell = [] {};      // that it has changed
};

class SlurmSite {
 public:
  explicit SlurmSite(World& world) : world_(world) {}

  World& world() { return world_; }
  void add_outage(Outage outage) { outages_.push_back(outage); }
  // Begins to publish for these nodes, which must outlive the world's run.
  void publish(const std::vector<SlurmNode*>& nodes);
  void stop_publishing() { published_.clear(); }

  struct Outcome {
    SteadyTime ends;
    bool answered;
  };
  Outcome run_client(int tries);

 private:
  void dump();

  World& world_;
  std::vector<Outage> outages_;
  std::vector<SlurmNode*> published_;
  std::optional<WallTime> dumped_at_;
};

// With the operator's records, as with slurm.source: auto, or without.
slurm::PollSources make_sources(SlurmSite& site, const SlurmNode& node, bool has_operator);

}  // namespace slurmlet::site
