// The operator's Events on Nodes, log lines and status.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "operator/operator_loop.h"

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

void OperatorLoop::report_node(const KubeNode& node, const EventReason& reason,
                               const std::string& message, Now now) {
  if (std::exchange(last_messages_[node.name], message) == message &&
      (reason.warning || settings_.dry_run)) {
    return;  // completed actions are reported each time
  }
  log::info("node " + node.name + ": " + message);
  context_.events.emit({"Node", "", node.name, node.uid}, reason.warning, reason.name, message,
                       message, now);
}

void OperatorLoop::report_updates(const std::vector<NodeChanges::Done>& done, Now now) {
  for (const auto& [change, failure] : done) {
    const std::string& name = change.slurm_node;
    if (!failure.empty()) {
      ++counted_.update_failures;
      report_slurm_node(name, kSlurmNodeNotChanged, not_changed(name, failure), now);
    } else if (change.action == DrainAction::kDrain) {
      ++counted_.drains;
      report_slurm_node(name, kSlurmNodeDrained,
                        "drained Slurm node " + name + ", Reason: " + change.reason, now);
    } else if (change.action == DrainAction::kSetReason) {
      log::info("Slurm node " + name + ": Reason: " + change.reason);
    } else if (change.action == DrainAction::kDelete) {
      ++counted_.records_deleted;
      log::info("deleted dynamic Slurm node " + name + ", whose Machine has gone");
    } else {
      ++counted_.undrains;
      report_slurm_node(name, kSlurmNodeUndrained,
                        "undrained Slurm node " + name + ", as " +
                            (change.why.empty() ? "this Node is not cordoned" : change.why),
                        now);
    }
  }
}

// Shows an administrator why a cordon has not taken effect.
void OperatorLoop::report_waiting(Now now) {
  for (const auto& name : changes_.waiting_since(now.steady - kPatience)) {
    const std::string& failure = dump_.report().failure;
    const std::string why = !changes_.problem().empty() ? changes_.problem()
                            : !failure.empty()          ? failure
                                                        : "slurmctld is slow to answer";
    report_slurm_node(name, kSlurmNodeNotChanged, not_changed(name, why), now);
  }
}

// Reports on the Node of this Slurm node, or only in the log if there is none.
void OperatorLoop::report_slurm_node(const std::string& slurm_node, const EventReason& reason,
                                     const std::string& message, Now now) {
  const SlurmNode* slurm = dump_.find(slurm_node);
  const auto names =
      slurm == nullptr ? std::vector<std::string>{} : claimants(nodes_.by_slurm(), *slurm);
  if (names.empty()) {
    log::info(message);
    return;
  }
  report_node(*nodes_.find(names.front()), reason, message, now);
}

// Logs when a problem begins, changes or ends.
void OperatorLoop::report(const std::string& what, const std::string& problem,
                          const std::string& fine) {
  if (std::exchange(reported_[what], problem) != problem) {
    problem.empty() ? log::info(fine) : log::warning(problem);
  }
}

void OperatorLoop::report_dump() {
  const std::string& failure = dump_.report().failure;
  report("dump", failure.empty() ? "" : "slurmctld did not report the nodes: " + failure,
         "slurmctld reports " + counted(dump_.nodes().size(), "node"));
  // Free text in Slurm can make a node's record unreadable, or appear twice.
  const auto& misread = dump_.misread();
  report("records of Slurm",
         misread.empty() ? ""
                         : fmt::format("slurmctld's records of {} could not be parsed, so records "
                                       "already published are kept: {}",
                                       counted(misread.size(), "node"),
                                       plain_text(*misread.begin()) +
                                           (misread.size() > 1 ? " and others" : "")),
         "slurmctld's records of all nodes can be parsed again");
  // Writes may fail for some Nodes only.
  const bool fail =
      std::exchange(seen_.write_failures, publisher_.failures()) != publisher_.failures() ||
      !publisher_.problem().empty();
  const std::string began = reported_["records"];
  report("records",
         !fail           ? ""
         : began.empty() ? "records are not written to all Nodes: " + publisher_.last_failure()
                         : began,
         "records are written to all Nodes again");
}

OperatorStatus OperatorLoop::status() const {
  OperatorStatus out = counted_;
  out.leads = acts();
  out.nodes_known = nodes_.known();
  out.nodes = nodes_.all().size();
  out.slurm_nodes = dump_.nodes().size();
  out.records_waiting = publisher_.waiting();
  out.dumps = dump_.counters().dumps;
  out.dumps_unchanged = dump_.counters().unchanged;
  out.dump_failures = dump_.counters().failures;
  out.record_writes = publisher_.writes();
  out.record_failures = publisher_.failures();
  out.dump_took = dump_.counters().took;
  out.dumped_at = dump_.report().dumped_at;
  out.dump_problem = dump_.report().failure;
  out.machines = machines_.status();
  if (scaler_ && out.leads) {
    out.scale = scaler_->status();
  }
  out.health = health_.status();
  out.machines_sleeping = sleeping_.count();
  out.nodes_deleted = leftovers_.deleted();
  out.node_deletion_failures = leftovers_.failures();
  if (certificates_) {
    out.certificates_approved = certificates_->approved();
    out.certificate_failures = certificates_->failures();
    out.certificates_waiting = certificates_->waiting();
  }
  if (const auto error = context_.nodes.last_error()) {
    out.api_problem = error->message;
  } else if (settings_.elect_leader && !context_.leader.problem().empty()) {
    out.api_problem = context_.leader.problem();
  }
  out.record_problem = publisher_.problem();
  return out;
}

}  // namespace slurmlet::op
