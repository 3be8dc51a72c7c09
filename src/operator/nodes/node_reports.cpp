#include "operator/nodes/node_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "operator/rules/matching.h"

namespace slurmlet::op {
namespace {

// How long a change may wait before its Node gets an Event.
constexpr Duration kPatience = std::chrono::seconds{3};

constexpr EventReason kSlurmNodeDrained{"SlurmNodeDrained", false},
    kSlurmNodeUndrained{"SlurmNodeUndrained", false};

std::string not_changed(const std::string& slurm_node, const std::string& why) {
  return "Slurm node " + slurm_node + " is not changed yet: " + why;
}

}  // namespace

void NodeReports::node(const KubeNode& node, const EventReason& reason, const std::string& message,
                       Now now) {
  if (std::exchange(messages_[node.name], message) == message && (reason.warning || dry_run_)) {
    return;  // completed actions are reported each time
  }
  log::info("node " + node.name + ": " + message);
  events_.emit({"Node", "", node.name, node.uid}, reason.warning, reason.name, message, message,
               now);
}

void NodeReports::changes(const std::vector<NodeChanges::Done>& done, Now now) {
  for (const auto& [change, failure] : done) {
    const std::string& name = change.slurm_node;
    if (!failure.empty()) {
      ++counters_.failures;
      this->slurm_node(name, kSlurmNodeNotChanged, not_changed(name, failure), now);
    } else if (change.action == DrainAction::kDrain) {
      ++counters_.drains;
      this->slurm_node(name, kSlurmNodeDrained,
                       "drained Slurm node " + name + ", Reason: " + change.reason, now);
    } else if (change.action == DrainAction::kSetReason) {
      log::info("Slurm node " + name + ": Reason: " + change.reason);
    } else if (change.action == DrainAction::kDelete) {
      ++counters_.deletions;
      log::info("deleted dynamic Slurm node " + name + ", whose Machine has gone");
    } else {
      ++counters_.undrains;
      this->slurm_node(name, kSlurmNodeUndrained,
                       "undrained Slurm node " + name + ", as " +
                           (change.why.empty() ? "this Node is not cordoned" : change.why),
                       now);
    }
  }
}

void NodeReports::waiting(const NodeChanges& changes, Now now) {
  for (const auto& name : changes.waiting_since(now.steady - kPatience)) {
    const std::string& failure = dump_.report().failure;
    const std::string why = !changes.problem().empty() ? changes.problem()
                            : !failure.empty()         ? failure
                                                       : "slurmctld is slow to answer";
    this->slurm_node(name, kSlurmNodeNotChanged, not_changed(name, why), now);
  }
}

// Reports on the Node of this Slurm node, or only in the log if there is none.
void NodeReports::slurm_node(const std::string& slurm_node, const EventReason& reason,
                             const std::string& message, Now now) {
  const SlurmNode* slurm = dump_.find(slurm_node);
  const auto names =
      slurm == nullptr ? std::vector<std::string>{} : claimants(nodes_.by_slurm(), *slurm);
  if (names.empty()) {
    const std::string subject = "Slurm node " + slurm_node;  // no Node's name has a space
    if (std::exchange(messages_[subject], message) != message || !reason.warning) {
      log::info(message);
    }
    return;
  }
  node(*nodes_.find(names.front()), reason, message, now);
}

// Logs when a problem begins, changes or ends.
void NodeReports::problem(const std::string& subject, const std::string& problem,
                          const std::string& fine) {
  if (std::exchange(problems_[subject], problem) != problem) {
    problem.empty() ? log::info(fine) : log::warning(problem);
  }
}

void NodeReports::dump(const RecordPublisher& records) {
  const std::string& failure = dump_.report().failure;
  problem("dump", failure.empty() ? "" : "slurmctld did not report the nodes: " + failure,
          "slurmctld reports " + counted(dump_.nodes().size(), "node"));
  // Free text in Slurm can make a node's record unreadable, or appear twice.
  const auto& misread = dump_.misread();
  problem("records of Slurm",
          misread.empty() ? ""
                          : fmt::format("slurmctld's records of {} could not be parsed, so records "
                                        "already published are kept: {}",
                                        counted(misread.size(), "node"),
                                        plain_text(*misread.begin()) +
                                            (misread.size() > 1 ? " and others" : "")),
          "slurmctld's records of all nodes can be parsed again");
  // Writes may fail for some Nodes only.
  const bool fail = std::exchange(record_failures_, records.failures()) != records.failures() ||
                    !records.problem().empty();
  const std::string began = problems_["records"];
  problem("records",
          !fail           ? ""
          : began.empty() ? "records are not written to all Nodes: " + records.last_failure()
                          : began,
          "records are written to all Nodes again");
}

}  // namespace slurmlet::op
