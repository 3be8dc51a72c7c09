#include "operator/operator_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::op {
namespace {

constexpr EventReason kCordonNotDrained{"CordonNotDrained", true},
    kSlurmNodeNotChanged{"SlurmNodeNotChanged", true}, kSlurmNodeDrained{"SlurmNodeDrained", false},
    kSlurmNodeUndrained{"SlurmNodeUndrained", false};

const char* to_verb(DrainAction action) {
  return action == DrainAction::kDrain     ? "drain"
         : action == DrainAction::kUndrain ? "undrain"
                                           : "set the Reason of";
}

NodeChange change(DrainRuling ruling) { return {ruling.action, std::move(ruling.reason)}; }

}  // namespace

OperatorLoop::OperatorLoop(OperatorSettings settings, OperatorContext context,
                           std::unique_ptr<slurm::DumpSource> dump_source,
                           std::unique_ptr<CommandRunner> update_runner,
                           std::unique_ptr<CommandRunner> job_runner, const Random& random)
    : settings_(std::move(settings)),
      context_(context),
      dump_(settings_.dump, std::move(dump_source), random),
      updates_(
          settings_.dump.client, std::move(update_runner),
          [this](const SlurmNode& fresh) { return decide(fresh); }, random),
      publisher_(
          context_.site, [this](const std::string& node) { return record_text(node); },
          [this] { return acts(); }, context_.clock, random),
      machines_(
          {settings_.dump.client, settings_.policy, settings_.all_machines, settings_.dry_run},
          {context_.machines, context_.machine_api, context_.site, context_.events,
           context_.machine_events, context_.server_time},
          [this] { return acts(); }, std::move(job_runner), random),
      leftovers_({context_.site, context_.node_leases, context_.events, [this] { return acts(); }},
                 settings_.dry_run) {
  if (context_.approvals != nullptr) {
    certificates_.emplace(
        CertificateSettings{settings_.bootstrap_group, settings_.dry_run},
        CertificateContext{
            context_.certificates, *context_.approvals, context_.events,
            [this](const auto& node) { return names_of(machines_.machines(), node); },
            context_.node_api, context_.node_leases, [this] { return acts(); }},
        random);
  }
}

// Read anew: this process may have been stopped since the step began.
bool OperatorLoop::acts() const {
  return !settings_.elect_leader || context_.leader.leads(context_.clock.now().steady);
}

std::vector<int> OperatorLoop::wake_fds() const {
  std::vector<int> fds = dump_.wake_fds();
  const auto add = [&fds](const std::vector<int>& more) {
    fds.insert(fds.end(), more.begin(), more.end());
  };
  add(updates_.wake_fds());
  if (!updates_.needs_quiet()) {  // else they are not read
    add(machines_.wake_fds());
  }
  return fds;
}

const SlurmNode* OperatorLoop::slurm_node_of(const KubeNode& node) const {
  return dump_.find(claimed_name(node));
}

// What is to be done with a node of Slurm, as it is now.
NodeChange OperatorLoop::decide(const SlurmNode& fresh) {
  dump_.amend(fresh);
  const SlurmNode* slurm = dump_.find(fresh.name);
  if (slurm == nullptr) {
    return {};
  }
  const auto names = claimants(nodes_.by_slurm(), *slurm);
  if (names.empty()) {
    const KubeNode* gone = machines_.stand_in(fresh.name);
    return gone != nullptr && distrust(*gone, *slurm, 1).empty()
               ? change(rule_drain(*gone, *slurm, MachineOf::kDeleting))
               : NodeChange{};
  }
  const KubeNode& node = *nodes_.find(names.front());
  if (!distrust(node, *slurm, names.size()).empty()) {
    return {};
  }
  return change(rule_drain(node, *slurm, machines_.machine_of(node.name)));
}

RecordPublisher::Text OperatorLoop::record_text(const std::string& name) const {
  const KubeNode* node = nodes_.find(name);
  const DumpReport& dump = dump_.report();
  if (node == nullptr || !dump.dumped_at || dump_.misread().contains(claimed_name(*node))) {
    return {};
  }
  const SlurmNode* slurm = slurm_node_of(*node);
  return {node->uid, slurm::to_annotation({dump.cluster, dump.dumped_at, dump.interval,
                                           dump.refresh, dump.failure, dump.failed_at,
                                           slurm == nullptr ? "" : slurm->text})};
}

// Until the watch tells, it counts as written.
void OperatorLoop::record_written(const std::string& name) {
  const SlurmNode* slurm = slurm_node_of(*nodes_.find(name));
  const DumpReport& dump = dump_.report();
  nodes_.note_record(
      name, {record_hash(dump.cluster, slurm == nullptr ? "" : std::string_view{slurm->text}),
             dump.dumped_at, dump.failed_at, dump.refresh});
}

void OperatorLoop::tell(const KubeNode& node, const EventReason& reason, const std::string& message,
                        Now now) {
  if (std::exchange(told_[node.name], message) == message &&
      (reason.warning || settings_.dry_run)) {
    return;  // what was done is told each time
  }
  log::info("node " + node.name + ": " + message);
  context_.events.emit({"Node", "", node.name, node.name}, reason.warning, reason.name, message,
                       message, now);
}

void OperatorLoop::look_at_drain(const KubeNode& node, const SlurmNode& slurm, Now now) {
  const DrainRuling ruling = rule_drain(node, slurm, machines_.machine_of(node.name));
  std::string kept_from = ruling.waits_for;
  if (ruling.action != DrainAction::kNone) {
    kept_from = distrust(node, slurm, claimants(nodes_.by_slurm(), slurm).size());
  }
  if (!kept_from.empty()) {
    tell(node, kCordonNotDrained, "Slurm node " + slurm.name + " is left as it is: " + kept_from,
         now);
  } else if (ruling.action == DrainAction::kNone) {
    return;
  } else if (settings_.dry_run) {
    tell(node, kDryRun, fmt::format("would {} Slurm node {}", to_verb(ruling.action), slurm.name),
         now);
  } else {
    updates_.want(slurm.name);
  }
}

void OperatorLoop::look_at(const KubeNode& node, Now now) {
  const SlurmNode* slurm = slurm_node_of(node);
  // What is published is no worse than nothing; and while nobody has said which of Slurm's nodes
  // this is, nobody can say that Slurm has none.
  if (slurm == nullptr) {
    const bool is_misread = dump_.misread().contains(claimed_name(node));
    if (is_misread && node.unschedulable && !node.deleting) {
      tell(node, kCordonNotDrained,
           "Slurm node " + claimed_name(node) +
               " is left as it is: slurmctld's record of it could not be parsed",
           now);
    }
    if (is_misread || node.slurm_node.empty()) {
      return;
    }
  }
  static const SlurmNode kNone{};
  const auto before = dump_.before().find(claimed_name(node));
  // Nodes that have not changed in the last dump are their own predecessors.
  const SlurmNode* was = before == dump_.before().end() ? slurm : &before->second;
  if (!settings_.dry_run) {
    publisher_.want(node.name, rule_record(node, slurm == nullptr ? kNone : *slurm, was,
                                           dump_.report(), now.wall));
  }
  if (slurm != nullptr && !node.deleting) {
    look_at_drain(node, *slurm, now);
  }
}

void OperatorLoop::look_at_all(Now now) {
  (void)nodes_.take_changed();
  for (const auto& [name, node] : nodes_.all()) {
    look_at(node, now);
  }
}

void OperatorLoop::report_updates(const std::vector<NodeUpdates::Done>& done, Now now) {
  for (const auto& update : done) {
    if (!update.failure.empty()) {
      ++update_failures_;
      tell_of(update.slurm_node, kSlurmNodeNotChanged,
              "Slurm node " + update.slurm_node + " was not changed: " + update.failure, now);
      continue;
    }
    const bool drained = update.change.action == DrainAction::kDrain;
    note_change(update);
    if (update.change.action == DrainAction::kSetReason) {
      log::info("Slurm node " + update.slurm_node + ": Reason: " + update.change.reason);
      continue;
    }
    ++(drained ? drains_ : undrains_);
    tell_of(update.slurm_node, drained ? kSlurmNodeDrained : kSlurmNodeUndrained,
            drained
                ? "drained Slurm node " + update.slurm_node + ", Reason: " + update.change.reason
                : "undrained Slurm node " + update.slurm_node + ", as this Node is not cordoned",
            now);
  }
}

// The Node that is this node of Slurm; the log where there is none.
void OperatorLoop::tell_of(const std::string& slurm_node, const EventReason& reason,
                           const std::string& message, Now now) {
  const SlurmNode* slurm = dump_.find(slurm_node);
  const auto names =
      slurm == nullptr ? std::vector<std::string>{} : claimants(nodes_.by_slurm(), *slurm);
  if (names.empty()) {
    log::info(message);
    return;
  }
  tell(*nodes_.find(names.front()), reason, message, now);
}

// Until the next dump: what was done is not to be done again.
void OperatorLoop::note_change(const NodeUpdates::Done& update) {
  const SlurmNode* known = dump_.find(update.slurm_node);
  if (known == nullptr) {
    return;
  }
  SlurmNode changed = *known;
  if (update.change.action == DrainAction::kDrain) {
    changed.state.flags.insert("DRAIN");
  } else if (update.change.action == DrainAction::kUndrain) {
    changed.state.flags.erase("DRAIN");
  }
  if (update.change.action != DrainAction::kUndrain) {
    changed.reason = update.change.reason;
  }
  dump_.amend(changed);
}

void OperatorLoop::report_dump() {
  const std::string& problem = dump_.report().failure;
  if (problem != told_dump_problem_) {
    if (problem.empty()) {
      log::info("slurmctld has reported " + counted(dump_.nodes().size(), "node") + " again");
    } else {
      log::warning("slurmctld did not report the nodes: " + problem);
    }
    told_dump_problem_ = problem;
  } else if (seen_dumps_ == 0 && dump_.dumps() > 0) {
    log::info("slurmctld reports " + counted(dump_.nodes().size(), "node"));
  }
}

// Of what people can write in Slurm, a node's record may be unreadable, or be there twice.
void OperatorLoop::report_misread() {
  if (dump_.misread() == told_misread_) {
    return;
  }
  told_misread_ = dump_.misread();
  if (told_misread_.empty()) {
    log::info("slurmctld's records of all nodes can be parsed again");
    return;
  }
  log::warning(fmt::format(
      "slurmctld's records of {} could not be parsed, so records already published are kept: {}",
      counted(told_misread_.size(), "node"),
      plain_text(*told_misread_.begin()) + (told_misread_.size() > 1 ? " and others" : "")));
}

// By what was written since the dump before: of some Nodes each write may fail.
void OperatorLoop::report_records() {
  const bool fail =
      std::exchange(seen_write_failures_, publisher_.failures()) != publisher_.failures() ||
      !publisher_.problem().empty();
  if (fail != std::exchange(records_fail_, fail)) {
    fail ? log::warning("records are not written to all Nodes: " + publisher_.last_failure())
         : log::info("records are written to all Nodes again");
  }
}

SteadyTime OperatorLoop::step() {
  Now now = context_.clock.now();
  SteadyTime next = settings_.elect_leader ? context_.leader.step(now) : kNever;
  next = std::min(next, nodes_.step(context_.nodes, now));
  for (const auto& name : nodes_.take_gone()) {
    publisher_.forget(name);
    told_.erase(name);
  }
  const bool leads = acts();
  if (leads != led_) {
    log::info(leads ? "this operator leads" : "another operator leads, or none can be elected");
    led_ = leads;
    dump_.forget();  // what was known in an earlier reign is old
    updates_.forget();
    publisher_.forget_all();
    machines_.forget();
  }
  next = std::min(next, dump_.step(now, leads));
  if (dump_.dumps() != seen_dumps_ || dump_.failures() != seen_failures_) {
    report_dump();
    report_misread();
    report_records();
    seen_dumps_ = dump_.dumps();
    seen_failures_ = dump_.failures();
    look_at_all(now);
  }
  for (const auto& name : nodes_.take_changed()) {
    look_at(*nodes_.find(name), now);
  }
  if (nodes_.known() && !updates_.needs_quiet()) {
    std::vector<std::string> drain;
    next = std::min(next, machines_.step(now, {nodes_.all(), nodes_.by_slurm(), dump_}, drain));
    std::for_each(drain.begin(), drain.end(), [this](const auto& name) { updates_.want(name); });
  }
  now = context_.clock.now();
  std::vector<NodeUpdates::Done> done;
  next = std::min(next, updates_.step(now.steady, nodes_.known() && acts(), done));
  report_updates(done, now);
  if (publisher_.is_slow() && now.steady < updates_.quiet_until()) {
    next = std::min(next, updates_.quiet_until());
  } else if (acts() && nodes_.known() && !updates_.needs_quiet()) {
    next = std::min(next, publisher_.step(now.steady, [this](const std::string& node) {
      record_written(node);
    }));
  }
  if (!updates_.needs_quiet()) {
    const bool certain = acts() && nodes_.known() && machines_.certain();
    next = std::min(next,
                    leftovers_.step(now, nodes_.all(), certain ? &machines_.machines() : nullptr));
    if (certificates_) {
      next = std::min(next, certificates_->step(now, certain));
    }
  }
  if (&context_.machine_events != &context_.events) {
    next = std::min(next, context_.machine_events.step(now));
  }
  return std::min(next, context_.events.step(now));
}

OperatorStatus OperatorLoop::status() const {
  OperatorStatus out;
  out.leads = acts();
  out.nodes_known = nodes_.known();
  out.nodes = nodes_.all().size();
  out.slurm_nodes = dump_.nodes().size();
  out.records_waiting = publisher_.waiting();
  out.dumps = dump_.dumps();
  out.dumps_unchanged = dump_.unchanged();
  out.dump_failures = dump_.failures();
  out.record_writes = publisher_.writes();
  out.record_failures = publisher_.failures();
  out.drains = drains_;
  out.undrains = undrains_;
  out.update_failures = update_failures_;
  out.dump_took = dump_.took();
  out.dumped_at = dump_.report().dumped_at;
  out.dump_problem = dump_.report().failure;
  out.machines = machines_.status();
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
