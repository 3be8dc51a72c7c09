#include "operator/nodes/cordon_sync.h"

#include <fmt/format.h>

#include <utility>

#include "node/vocabulary.h"
#include "operator/rules/matching.h"

namespace slurmlet::op {
namespace {

constexpr EventReason kDrainNotEnded{"DrainNotEnded", true};

constexpr Duration kNotesAgain = std::chrono::seconds{5};

const char* to_verb(DrainAction action) {
  switch (action) {
    case DrainAction::kNote:
    case DrainAction::kDrain:
      return "drain";
    case DrainAction::kSetReason:
      return "set the Reason of";
    case DrainAction::kDelete:
      return "delete";
    default:
      return "undrain";
  }
}

}  // namespace

std::optional<NodeChange> CordonSync::change(const KubeNode& node, const SlurmNode& slurm,
                                             Now now) const {
  const DrainRuling ruling = rule_drain(node, slurm, context_.machine_of(node.name));
  if (ruling.action == DrainAction::kNone && ruling.waits_for.empty()) {
    return std::nullopt;
  }
  const std::string distrusted =
      distrust(node, slurm, claimants(context_.nodes.by_slurm(), slurm).size());
  const std::string& kept_from = distrusted.empty() ? ruling.waits_for : distrusted;
  if (!kept_from.empty()) {
    if (node.unschedulable || distrusted.empty()) {
      context_.reports.node(node, node.unschedulable ? kCordonNotDrained : kDrainNotEnded,
                            fmt::format("Slurm node {} is not {}drained: {}", slurm.name,
                                        node.unschedulable ? "" : "un", kept_from),
                            now);
    }
    return std::nullopt;
  }
  if (dry_run_) {
    context_.reports.node(node, kDryRun,
                          fmt::format("would {} Slurm node {}", to_verb(ruling.action), slurm.name),
                          now);
    return std::nullopt;
  }
  return NodeChange{slurm.name, ruling.action, ruling.text, node.name};
}

void CordonSync::annotate(const KubeNode& node, const std::string& note, Now now) {
  if (now.steady < notes_from_ || context_.clock.now().steady - context_.dump.began() > kFresh ||
      !context_.may_act()) {
    return;
  }
  const Status done = context_.site.annotate(
      node.name, node.uid,
      {{node::vocabulary::kDrain, note.empty() ? std::nullopt : std::optional<std::string>{note}}});
  if (done) {
    context_.nodes.at(node.name).drain = note;  // until the watch reports it
    return;
  }
  if (done.error().unanswered()) {
    notes_from_ = context_.clock.now().steady + kNotesAgain;
  }
  context_.reports.node(node, kSlurmNodeNotChanged,
                        std::string{"annotation "} + node::vocabulary::kDrain +
                            " was not written: " + done.error().message,
                        now);
}

void CordonSync::step(Now now, std::vector<NodeChange>& changes) {
  for (const auto& [name, node] : context_.nodes.all()) {
    const SlurmNode* slurm = context_.dump.find(claimed_name(node));
    if (slurm == nullptr || node.deleting || node.belongs != Belongs::kHere) {
      continue;
    }
    auto wanted = change(node, *slurm, now);
    if (wanted && wanted->action == DrainAction::kNote) {
      annotate(node, wanted->reason, now);
      wanted = change(node, *slurm, now);  // its annotation may have changed
    }
    if (wanted && wanted->action != DrainAction::kNote) {
      changes.push_back(*std::move(wanted));
    }
  }
}

}  // namespace slurmlet::op
