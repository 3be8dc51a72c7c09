#include "sync/facts_sync.h"

#include <algorithm>
#include <utility>

namespace slurmlet::sync {

using Liveness = node::SlurmdFacts::Liveness;

FactsSync::FactsSync(Parts parts)
    : first_patience_(parts.options.first_patience),
      conf_(parts.options, std::move(parts.discover), std::move(parts.unread)),
      slurmd_(conf_.setup().watch, std::move(parts.version_runner), std::move(parts.unit_runner),
              parts.options.not_ready_grace),
      jobs_(parts.options),
      machine_(parts.options),
      poll_(std::move(parts.poll)) {
  facts_.metal3 = std::move(parts.metal3);
  facts_.machine.gpus_hang = true;  // so far
}

const SitePlace& FactsSync::await_site(Now now, Duration patience) {
  if (conf_.await(now, patience)) {
    use_setup();
  }
  return site();
}

SteadyTime FactsSync::step(Now now) {
  const bool is_report = machine_.report_is_due(now);
  follow_slurm_conf(now, is_report);
  follow_slurmd(now);
  if (is_report) {
    jobs_.read_again();
  }
  SteadyTime next = machine_.step(now, facts_);
  next = std::min(next, poll_->step(now));
  facts_.slurm = poll_->answer(now);
  next = std::min(next, jobs_.step(now, slurmd_.facts().pid, facts_));
  if (slurmd_.doubts(facts_.slurm, now) || jobs_.take_change()) {
    poll_->request_poll(now);
    next = now.steady;
  }
  set_slurmd();
  return std::min({next, conf_.wake_at(now), slurmd_.wake_at(now)});
}

// Once per report, but for the first (slurm.conf has just been read), and at each tick while there
// is something to resolve.
void FactsSync::follow_slurm_conf(Now now, bool is_report) {
  const bool is_due =
      machine_.is_read() && (is_report || (conf_.names_no_node() && machine_.tick_is_due(now)));
  if (conf_.await(now, std::exchange(first_patience_, Duration::zero())) ||
      (is_due && conf_.recheck(now))) {
    use_setup();
  } else if (!conf_.is_read() && !conf_.problem().empty()) {
    poll_->set_standing_failure({node::SlurmFailure::kFileSystemHangs, conf_.problem()});
  }
}

void FactsSync::use_setup() {
  const SlurmSetup& setup = conf_.setup();
  facts_.slurm_conf = setup.conf;
  const bool is_certain = setup.problem.empty() && setup.name_problem.empty();
  facts_.slurm_node = is_certain ? setup.node_name : "";
  slurmd_.configure(setup.watch);
  jobs_.set_places(setup.jobs);
  machine_.read_again();  // slurmd has counted its GPUs anew as well
  poll_->set_place(setup.place);
  if (setup.pace) {
    poll_->set_pace(*setup.pace);
  }
  if (setup.name_problem.empty()) {
    poll_->set_node(setup.node_name, setup.site);
  } else {
    poll_->set_standing_failure({setup.name_problem_cause, setup.name_problem});
  }
}

void FactsSync::follow_slurmd(Now now) {
  const bool ran = slurmd_.facts().liveness == Liveness::kRunning;
  const SlurmdMonitor::Change change = slurmd_.step(now);
  if (slurmd_.is_gone()) {
    conf_.slurmd_is_gone();
  }
  if (change.started) {
    // Without an absence it is scontrol reconfigure, on all nodes at the same moment.
    const bool is_reconfigured = ran && !conf_.names_no_node();
    const Duration spread = std::min(delay_rule(Delay::kReread).to, poll_->pace().spread);
    conf_.slurmd_started(slurmd_.facts().pid, now,
                         is_reconfigured ? site().in(spread, "reread:") : Duration::zero());
  }
  bool has_evidence = change.went || change.came;
  if (conf_.is_due(now) && conf_.read_again(now)) {
    use_setup();
    has_evidence |= slurmd_.step(now).went;  // by the new rules it may not count any more
  }
  if (has_evidence) {
    poll_->request_poll(now);
  }
  if (slurmd_.take_job_event()) {
    jobs_.note_event(now);
  }
}

std::vector<int> FactsSync::wake_fds() const {
  std::vector<int> fds = slurmd_.wake_fds(jobs_.is_settling());
  for (const auto& more : {machine_.wake_fds(), poll_->wake_fds()}) {
    fds.insert(fds.end(), more.begin(), more.end());
  }
  fds.insert(fds.end(), {conf_.wake_fd(), jobs_.wake_fd()});
  std::erase(fds, -1);
  return fds;
}

void FactsSync::set_slurmd() {
  facts_.slurmd = slurmd_.facts();
  // It is not known which of several slurmd is this node's.
  if (conf_.names_no_node()) {
    facts_.slurmd = {};
    facts_.slurmd.detail = conf_.setup().name_problem;
  }
  // A slurmd outside its unit is found by the pidfile that slurm.conf names.
  if (!conf_.is_read() && facts_.slurmd.liveness != Liveness::kRunning) {
    facts_.slurmd = {};
    facts_.slurmd.detail =
        conf_.problem().empty() ? "slurm.conf has not been read yet" : conf_.problem();
  }
}

void FactsSync::prefer_address(const std::string& address) {
  auto& addresses = facts_.machine.ip_addresses;
  const auto found = std::find(addresses.begin(), addresses.end(), address);
  if (found != addresses.end()) {
    std::rotate(addresses.begin(), found, found + 1);
  }
}

node::ReadyContext FactsSync::ready_context(Now now) const {
  node::ReadyContext out;
  out.slurmd_grace_over = slurmd_.grace_is_over(now);
  return out;
}

}  // namespace slurmlet::sync
