#pragma once

// Where this node's record comes from: slurmlet-operator, `sinfo` or slurmrestd, behind one face.
// ControllerPoll decides when to ask, a NodeSource knows how.
//
// A step object: never blocks, one question at a time. Not thread-safe.

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
  // that was read tells that it does not.
  bool may_limit_rate = true;
  bool operator==(const ClusterPlace&) const = default;
};

// What the questions cost, since the start.
struct SourceCounters {
  std::uint64_t commands = 0;      // programs started
  std::uint64_t requests = 0;      // HTTP requests to slurmrestd
  std::uint64_t full_queries = 0;  // that were begun
};

// kFull: slurmctld recomputes what is allocated on all nodes, so that the record is that of a full
// dump. It holds slurmctld's node write lock meanwhile (10 ms with 10,000 nodes), and sinfo
// downloads all nodes. A source that cannot make one queries the node alone.
enum class Query { kOneNode, kFull };

// Whether something has come by itself that the next question would be answered with.
enum class News { kNone, kAnswer, kFailure };

class NodeSource {
 public:
  virtual ~NodeSource() = default;

  // Begins a question about `node`, a valid_node_name() (sinfo.h). A failure when it cannot even
  // begin; then none is under way. Not to be called while busy().
  virtual std::optional<QueryFailure> ask(const std::string& node, Query query, Now now) = 0;
  virtual bool busy() const = 0;
  // The answer, exactly once per question that began; ends the question at its own deadline.
  virtual std::optional<QueryResult> poll(Now now) = 0;
  // When poll() must be called at the latest; kNever when not busy().
  virtual SteadyTime wake_at() const = 0;
  // Descriptors that become readable when poll() has something to do. A source over http::Client
  // needs none: its streams wake that client's wait().
  virtual std::vector<int> wake_fds() const = 0;
  // For the questions from now on. Sources that do not run Slurm's commands need none of it.
  virtual void set_place(const ClusterPlace& /*place*/) {}
  // The annotation slurmlet.io/record of the own Node; "" = it has none, nothing = the Node is not
  // known. Whether that was new.
  virtual bool set_record(const std::optional<std::string>& /*annotation*/) { return false; }
  // For a question about `node`.
  virtual News news(const std::string& /*node*/, WallTime /*now*/) const { return News::kNone; }
  // Who is asked, for people: "sinfo", "slurmrestd unix:/run/slurmrestd.sock".
  virtual std::string name() const = 0;
  // Whether slurmrestd asks slurmctld: on its host, with its munge.
  virtual bool is_slurmrestd() const { return false; }
  virtual SourceCounters counters() const = 0;
  // The question under way, or else the next one, costs slurmctld nothing: no budget is for it.
  virtual bool is_free() const { return false; }
};

}  // namespace slurmlet::slurm
