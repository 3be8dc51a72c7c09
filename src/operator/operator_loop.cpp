#include "operator/operator_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/vocabulary.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::op {
namespace {

// Between reports on waiting changes.
constexpr Duration kLongestWait = std::chrono::seconds{1};

constexpr Duration kQueueInterval = std::chrono::seconds{30};  // unless one is configured

}  // namespace

OperatorLoop::OperatorLoop(OperatorSettings settings, OperatorContext context,
                           std::unique_ptr<slurm::DumpSource> dump_source, const Random& random)
    : settings_(std::move(settings)),
      context_(std::move(context)),
      dump_(settings_.dump, std::move(dump_source), random),
      nodes_(settings_.dump.cluster),
      reports_(context_.events, nodes_, dump_, settings_.dry_run),
      changes_(
          settings_.dump.client, context_.runner(),
          [this](const NodeChange& change) { return confirm(change); }, context_.clock, random),
      publisher_(
          context_.site, [this](const std::string& node) { return record_text(node); },
          [this] { return acts(); }, context_.clock, random),
      machines_(
          {settings_.dump.client, settings_.self, settings_.policy, settings_.all_machines,
           settings_.dry_run},
          {context_.machines, context_.machine_api, context_.site, context_.events,
           context_.machine_events, context_.server_time},
          [this] { return acts(); }, context_.runner, random),
      cordons_({context_.site, nodes_, dump_, reports_,
                [this](const auto& node) { return machines_.machine_of(node); },
                [this] { return acts(); }, context_.clock},
               settings_.dry_run),
      health_(settings_.health,
              {[this](const auto& node) { return machines_.machine_of(node); }, reports_},
              settings_.dry_run),
      sleeping_({context_.machine_api, context_.node_api, [this] { return acts(); }},
                settings_.dry_run),
      leftovers_({context_.site, context_.node_leases, context_.events, [this] { return acts(); }},
                 settings_.dry_run) {
  if (context_.scale != nullptr) {
    scaler_.emplace(
        ScaleSettings{settings_.dump.client, settings_.self,
                      settings_.dump.interval.value_or(kQueueInterval),
                      settings_.scale_up_per_minute, settings_.dry_run},
        ScaleContext{*context_.scale, context_.machine_api, context_.machine_events},
        [this] { return acts(); }, context_.runner());
  }
  if (context_.approvals != nullptr) {
    certificates_.emplace(
        CertificateSettings{settings_.bootstrap_group, settings_.dry_run},
        CertificateContext{
            context_.certificates, *context_.approvals, context_.events,
            [this](const auto& node) { return names_of(machines_.machines().all(), node); },
            context_.node_api, context_.node_leases, [this] { return acts(); }},
        random);
  }
}

// Reads the clock again, since the process may have been stopped during the step.
bool OperatorLoop::acts() const {
  return !settings_.elect_leader || context_.leader.leads(context_.clock.now().steady);
}

std::vector<int> OperatorLoop::wake_fds() const {
  std::vector<int> fds = dump_.wake_fds();
  const auto add = [&fds](const std::vector<int>& more) {
    fds.insert(fds.end(), more.begin(), more.end());
  };
  add(changes_.wake_fds());
  add(machines_.wake_fds());
  if (scaler_) {
    add(scaler_->wake_fds());
  }
  return fds;
}

const SlurmNode* OperatorLoop::slurm_node_of(const KubeNode& node) const {
  return dump_.find(claimed_name(node));
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

// Records the write locally until the watch reports it.
void OperatorLoop::record_written(const std::string& name) {
  const SlurmNode* slurm = slurm_node_of(*nodes_.find(name));
  const DumpReport& dump = dump_.report();
  nodes_.at(name).record = {
      record_hash(dump.cluster, slurm == nullptr ? "" : std::string_view{slurm->text}),
      dump.dumped_at, dump.failed_at, dump.refresh};
}

// Watches lag, so ending a drain needs a fresh read from the API server.
bool OperatorLoop::confirm(const NodeChange& change) {
  if (change.kube_node.empty()) {
    return acts();
  }
  const auto fresh = context_.site.get(change.kube_node);
  if (!fresh) {
    return false;
  }
  nodes_.put(*fresh);
  const KubeNode& node = nodes_.at(change.kube_node);
  const SlurmNode* slurm = dump_.find(change.slurm_node);
  return acts() && slurm != nullptr &&
         (slurm == slurm_node_of(node) || is_machine_reason(slurm->reason)) && !node.deleting &&
         node.belongs == Belongs::kHere &&
         (health_.confirms(node, *slurm, context_.clock.now().wall) == change.action ||
          rule_drain(node, *slurm, machines_.machine_of(node.name)).action == change.action);
}

void OperatorLoop::evaluate_record(const KubeNode& node, const SlurmNode* slurm, Now now) {
  // "No such Slurm node" may only be published once the daemon has reported its Slurm node.
  if (settings_.dry_run || (slurm == nullptr && (node.slurm_node.empty() ||
                                                 dump_.misread().contains(claimed_name(node))))) {
    return;
  }
  static const SlurmNode kNone{};
  const auto before = dump_.before().find(claimed_name(node));
  // before() lacks nodes that are unchanged.
  const SlurmNode* was = before == dump_.before().end() ? slurm : &before->second;
  publisher_.want(node.name, rule_record(node, slurm == nullptr ? kNone : *slurm, was,
                                         dump_.report(), now.wall));
}

void OperatorLoop::evaluate(const KubeNode& node, Now now) {
  if (node.belongs == Belongs::kElsewhere || !dump_.report().dumped_at) {
    return;
  }
  const SlurmNode* slurm = slurm_node_of(node);
  std::string problem;
  if (node.belongs == Belongs::kUnknown) {
    problem = "slurmlet on this Node has not reported its Slurm cluster";
  } else if (slurm == nullptr) {
    problem = dump_.misread().contains(claimed_name(node))
                  ? "slurmctld's record of it could not be parsed"
                  : "slurmctld shows no node of that name to slurmlet-operator";
  }
  if (!problem.empty() && node.unschedulable && !node.deleting) {
    reports_.node(node, kCordonNotDrained,
                  "Slurm node " + claimed_name(node) + " is not drained: " + problem, now);
  }
  if (node.belongs == Belongs::kUnknown) {
    return;
  }
  evaluate_record(node, slurm, now);
  if (slurm == nullptr || node.deleting) {
    return;
  }
  if (cordons_.change(node, *slurm, now)) {
    changes_.want(slurm->name, now.steady);
  }
}

void OperatorLoop::evaluate_all(Now now) {
  (void)nodes_.take_changed();
  for (const auto& [name, node] : nodes_.all()) {
    evaluate(node, now);
  }
}

void OperatorLoop::take_lead(bool leads) {
  const std::string& problem = context_.leader.problem();
  log::info(leads             ? "this operator leads"
            : problem.empty() ? "this operator does not lead: another one does"
                              : "this operator does not lead: " + problem);
  led_ = leads;
  context_.nodes.restart();
  for (const auto& requests : context_.certificates) {
    requests.watch->restart();
  }
  nodes_.forget();
  dump_.forget();
  changes_.forget();
  publisher_.forget_all();
  machines_.forget();
  if (scaler_) {
    scaler_->forget();
  }
  reports_.forget_all();
}

SteadyTime OperatorLoop::step() {
  Now now = context_.clock.now();
  SteadyTime next = settings_.elect_leader ? context_.leader.step(now) : kNever;
  const bool leads = acts();
  if (leads != led_) {
    take_lead(leads);
  }
  if (leads) {
    next = std::min(next, nodes_.step(context_.nodes, now));
    for (const auto& name : nodes_.take_gone()) {
      publisher_.forget(name);
      reports_.forget(name);
    }
  }
  const auto before = dump_.counters();
  next = std::min(next, dump_.step(now, leads, changes_.has_pending(now.steady)));
  const bool is_new_dump = dump_.counters().dumps != before.dumps;
  if (is_new_dump || dump_.counters().failures != before.failures) {
    reports_.dump(publisher_);
    evaluate_all(now);
  }
  for (const auto& name : nodes_.take_changed()) {
    evaluate(*nodes_.find(name), now);
  }
  std::vector<NodeChange> changes;
  next = std::min(next, machines_.step(now, nodes_, dump_, changes));
  if (scaler_) {
    next = std::min(next, scaler_->step(now, machines_, nodes_, dump_, changes));
  }
  if (is_new_dump) {
    health_.step(now, nodes_, dump_, changes);
  }
  next = std::min(next, step_changes(now, std::move(changes), is_new_dump));
  next = std::min(next, step_api(context_.clock.now()));
  if (changes_.has_pending(now.steady)) {
    next = std::min(next, dump_.soonest());
  }
  if (changes_.has_waiting()) {
    next = std::min(next, now.steady + kLongestWait);
  }
  if (&context_.machine_events != &context_.events) {
    next = std::min(next, context_.machine_events.step(now));
  }
  return std::min(next, context_.events.step(now));
}

// Changes start right after the dump that they are based on, while it is fresh.
SteadyTime OperatorLoop::step_changes(Now now, std::vector<NodeChange> changes, bool is_new_dump) {
  const bool may_act = nodes_.known() && acts() && !settings_.dry_run;
  if (may_act && is_new_dump && changes_.is_shown_by(dump_.began())) {
    cordons_.step(now, changes);
    changes_.decide(changes, dump_.began(), context_.clock.now().steady);
  } else if (may_act) {
    for (const auto& change : changes) {
      changes_.want(change.slurm_node, now.steady);
    }
  }
  now = context_.clock.now();
  std::vector<NodeChanges::Done> done;
  const SteadyTime next = changes_.step(now.steady, may_act, done);
  reports_.changes(done, now);
  if (may_act) {
    reports_.waiting(changes_, now);
  }
  return next;
}

// Blocking calls wait while a change is pending, whose dump would become stale.
SteadyTime OperatorLoop::step_api(Now now) {
  if (!acts() || !nodes_.known()) {
    return kNever;
  }
  if (dump_.report().failure.empty() && changes_.has_pending(now.steady)) {
    return kNever;
  }
  SteadyTime next =
      publisher_.step(now.steady, [this](const std::string& node) { record_written(node); });
  const bool certain = machines_.machines().certain();
  next = std::min(
      next, leftovers_.step(now, nodes_.all(), certain ? &machines_.machines().all() : nullptr));
  if (certain) {
    next = std::min(next, sleeping_.step(now, nodes_, dump_, machines_.machines().all()));
  }
  if (certificates_) {
    next = std::min(next, certificates_->step(now, certain));
  }
  return next;
}

OperatorStatus OperatorLoop::status() const {
  OperatorStatus out;
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
  out.changes = reports_.counters();
  out.machines = machines_.status();
  if (scaler_ && out.leads) {
    out.scale = &scaler_->status();
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
