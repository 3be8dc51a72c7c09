#pragma once

// What people see of the operator's work on nodes: Events on their Nodes, log lines, counters. Not
// thread-safe.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "operator/machines/machine_events.h"
#include "operator/nodes/record_publisher.h"
#include "operator/site/dumped_nodes.h"
#include "operator/site/node_changes.h"
#include "operator/site/site_nodes.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

inline constexpr EventReason kSlurmNodeNotChanged{"SlurmNodeNotChanged", true},
    kCordonNotDrained{"CordonNotDrained", true};

class NodeReports {
 public:
  // Changes in Slurm since the start.
  struct Counters {
    std::uint64_t drains = 0, undrains = 0, deletions = 0, failures = 0;
  };

  // All must outlive it.
  NodeReports(sync::EventSink& events, const SiteNodes& nodes, const DumpedNodes& dump,
              bool dry_run)
      : events_(events), nodes_(nodes), dump_(dump), dry_run_(dry_run) {}

  // A warning, or what a dry run would do, is reported again only when its message changes.
  void node(const KubeNode& node, const EventReason& reason, const std::string& message, Now now);
  void changes(const std::vector<NodeChanges::Done>& done, Now now);
  // Why an administrator's cordon has not taken effect yet.
  void waiting(const NodeChanges& changes, Now now);
  // After each dump, successful or not.
  void dump(const RecordPublisher& records);
  const Counters& counters() const { return counters_; }

  void forget(const std::string& node) { messages_.erase(node); }
  void forget_all() { messages_.clear(); }

 private:
  void slurm_node(const std::string& slurm_node, const EventReason& reason,
                  const std::string& message, Now now);
  void problem(const std::string& subject, const std::string& problem, const std::string& fine);

  sync::EventSink& events_;
  const SiteNodes& nodes_;
  const DumpedNodes& dump_;
  bool dry_run_;
  std::map<std::string, std::string> messages_;                        // the last, by subject
  std::map<std::string, std::string> problems_{{"dump", "none yet"}};  // by subject
  std::uint64_t record_failures_ = 0;                                  // at the last dump
  Counters counters_;
};

}  // namespace slurmlet::op
