#pragma once

// Asks slurmctld about this node. ControllerPoll decides when, a NodeSource knows how.
//
// A step object: never blocks, one query at a time. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// Where the cluster is, as far as it is learnt on this machine while running; "" = not learnt.
struct ClusterPlace {
  std::string conf;          // slurm.conf that the slurmd here really uses
  std::string conf_server;   // configless without a cache: SLURM_CONF_SERVER for commands
  std::string munge_socket;  // munged's, where slurm.conf was read and says that munge is used
  std::string cluster = {};  // ClusterName, in lower case
  // slurmctld may limit the rate of requests, so that clients sleep to try again; only a slurm.conf
  // that was read says that it does not.
  bool may_limit_rate = true;
  bool operator==(const ClusterPlace&) const = default;
};

class NodeSource {
 public:
  virtual ~NodeSource() = default;

  // Begins a query about `node`, a valid_node_name() (slurm_client.h). A failure when it cannot
  // even begin; then none is under way. Not to be called while busy().
  virtual std::optional<QueryFailure> query(const std::string& node, Now now) = 0;
  virtual bool busy() const = 0;
  // The answer, exactly once per query that began; ends the query at its own deadline.
  virtual std::optional<QueryResult> poll(Now now) = 0;
  // When poll() must be called at the latest; kNever when not busy().
  virtual SteadyTime wake_at() const = 0;
  // Descriptors that become readable when poll() has something to do.
  virtual std::vector<int> wake_fds() const = 0;
  // For the queries from now on.
  virtual void set_place(const ClusterPlace& place) = 0;
};

}  // namespace slurmlet::slurm
