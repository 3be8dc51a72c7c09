#pragma once

// A machine of a simulated site and the daemon on it: the step objects of the daemon, in the order
// of daemon/main_loop.cpp, and its lease thread as an actor of its own. Without what needs files:
// certificates, credentials, port 10250.

#include <memory>
#include <string>
#include <vector>

#include "api_server.h"
#include "local_facts.h"
#include "slurm_site.h"

namespace slurmlet::site {

struct DaemonSettings {
  slurm::PollSettings poll;
  bool has_operator = false;
};

class ComputeNode final : public Actor {
 public:
  // `index`: in a slurm.conf of `site_nodes`, of which not all need be simulated.
  ComputeNode(int number, std::int64_t index, std::int64_t site_nodes, ApiServer& api,
              SlurmSite& slurm);
  ~ComputeNode() override;

  // --- what happens to the machine, now
  void start_daemon(const DaemonSettings& settings);
  // The longest time without a renewal since the last call.
  Duration longest_lease_gap() { return access_.longest_lease_gap(); }
  void stop_daemon();
  void set_machine(const Machine& machine);
  const Machine& machine() const { return machine_; }
  SlurmNode& slurm() { return slurm_; }
  // The API server goes or comes: connections end.
  void wake() { access_.wake(); }

  SteadyTime step() override;

 private:
  struct Daemon;
  struct LeaseThread final : Actor {
    explicit LeaseThread(ComputeNode& of) : node(of) {}
    SteadyTime step() override;
    ComputeNode& node;
  };

  int number_;
  ApiServer& api_;
  SlurmSite& site_;
  SlurmNode slurm_;
  SitePlace place_;
  Machine machine_;
  NodeAccess access_;
  LeaseThread lease_thread_{*this};
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace slurmlet::site
