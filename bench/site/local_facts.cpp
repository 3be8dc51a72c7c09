#include "local_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace slurmlet::site {
namespace {

// As in sync/facts_sync.cpp and its options' defaults.
constexpr Duration kDoubt = std::chrono::seconds{20};
constexpr Duration kJobsSettle = std::chrono::milliseconds{500};
constexpr Duration kNotReadyGrace = std::chrono::seconds{15};

node::HostFacts facts_of(const std::string& name, int number) {
  node::HostFacts facts;
  node::MachineFacts& machine = facts.machine;
  machine.hostname = name;
  machine.machine_id = fmt::format("{:032x}", number);
  machine.system_uuid = fmt::format("8b2a2f8a-0000-4000-8000-{:012x}", number);
  machine.boot_id = fmt::format("b0070000-0000-4000-8000-{:012x}", number);
  machine.kernel_version = "5.14.0-570.el9";
  machine.os_image = "Rocky Linux 9.6 (Blue Onyx)";
  machine.architecture = "amd64";
  machine.cpus = kNodeCpus;
  machine.memory_bytes = std::int64_t{512} << 30;
  machine.ephemeral_storage_bytes = std::int64_t{900} << 30;
  machine.ip_addresses = {
      fmt::format("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255)};
  machine.memory_pressure = machine.disk_pressure = machine.pid_pressure = node::Pressure{};
  facts.slurm_conf.path = "/etc/slurm/slurm.conf";
  facts.slurm_conf.cluster_name = "alps";
  facts.slurm_conf.controllers = {"head1:6817"};
  facts.slurm_conf.node_name = name;
  facts.slurm_conf.jobs_are_contained = true;
  return facts;
}

}  // namespace

LocalFacts::LocalFacts(const std::string& node, int number, const SitePlace& place,
                       const Machine& machine, std::unique_ptr<slurm::ControllerPoll> poll)
    : machine_(machine), poll_(std::move(poll)), facts_(facts_of(node, number)), seen_(machine) {
  poll_->set_node(node, place);
  if (seen_.slurmd_pid != 0) {
    facts_.slurmd = {node::SlurmdFacts::Liveness::kRunning, seen_.slurmd_pid, "23.11.4", ""};
  } else {
    facts_.slurmd.liveness = node::SlurmdFacts::Liveness::kAbsent;
  }
  read_jobs();
}

void LocalFacts::read_jobs() {
  node::LocalJobs jobs;
  jobs.jobs = static_cast<int>(seen_.jobs.size());
  jobs.job_ids = seen_.jobs;
  jobs.allocated_cpus = seen_.jobs.empty() ? 0 : kNodeCpus;
  changed_ |= facts_.jobs != jobs;
  facts_.jobs = std::move(jobs);
  read_jobs_at_.reset();
}

void LocalFacts::look_at_machine(Now now) {
  if (machine_ == seen_) {
    return;
  }
  const Machine before = std::exchange(seen_, machine_);
  if (before.slurmd_pid != seen_.slurmd_pid) {
    changed_ = true;
    if (before.slurmd_pid == 0 || seen_.slurmd_pid == 0) {
      poll_->request_poll(now);  // else it is scontrol reconfigure
    }
    if (seen_.slurmd_pid != 0) {
      facts_.slurmd = {node::SlurmdFacts::Liveness::kRunning, seen_.slurmd_pid, "23.11.4", ""};
      absent_since_.reset();
    } else {
      facts_.slurmd = {};
      facts_.slurmd.liveness = node::SlurmdFacts::Liveness::kAbsent;
      absent_since_ = now.steady;
    }
  }
  if (before.jobs != seen_.jobs) {
    jobs_changed_ = true;
    read_jobs_at_ = std::min(read_jobs_at_.value_or(kNever), now.steady + kJobsSettle);
  }
}

SteadyTime LocalFacts::follow_answer(Now now) {
  const node::SlurmAnswer& answer = facts_.slurm;
  const bool doubted = answer.record && !answer.stale && !answer.failure &&
                       answer.record->state.has("NOT_RESPONDING") && seen_.slurmd_pid != 0;
  if (!doubted) {
    doubt_at_.reset();
  } else if (!doubt_at_) {
    doubt_at_ = now.steady + kDoubt;
  } else if (*doubt_at_ != kNever && now.steady >= *doubt_at_) {
    doubt_at_ = kNever;
    poll_->request_poll(now);
    return now.steady;
  }
  return doubt_at_.value_or(kNever);
}

// When it was given shows in no Node while the answer counts.
void LocalFacts::take_arrivals(node::SlurmAnswer answer) {
  const bool counts = !answer.failure && !answer.stale;
  const auto answered_at = answer.answered_at;
  if (counts) {
    answer.answered_at = facts_.slurm.answered_at;
  }
  changed_ |= answer != facts_.slurm;
  answer.answered_at = answered_at;
  facts_.slurm = std::move(answer);
}

SteadyTime LocalFacts::step(Now now) {
  changed_ = false;
  look_at_machine(now);
  SteadyTime next = poll_->step(now);
  take_arrivals(poll_->answer(now));
  next = std::min(next, follow_answer(now));
  if (facts_.slurm.answered_at != jobs_of_answer_) {
    jobs_of_answer_ = facts_.slurm.answered_at;
    read_jobs();
  } else if (read_jobs_at_ && now.steady >= *read_jobs_at_) {
    read_jobs();
  }
  if (jobs_changed_ && !read_jobs_at_) {
    jobs_changed_ = false;
    poll_->request_poll(now);
    next = now.steady;
  }
  if (absent_since_) {
    const SteadyTime over = *absent_since_ + kNotReadyGrace;
    changed_ |= now.steady >= over;
    next = now.steady < over ? std::min(next, over) : next;
  }
  return std::min(next, read_jobs_at_.value_or(kNever));
}

node::ReadyContext LocalFacts::ready_context(Now now) const {
  node::ReadyContext out;
  out.slurmd_grace_over = !absent_since_ || now.steady >= *absent_since_ + kNotReadyGrace;
  return out;
}

}  // namespace slurmlet::site
