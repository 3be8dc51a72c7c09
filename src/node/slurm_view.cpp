#include "node/slurm_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rfc3339.h"
#include "base/text.h"

namespace slurmlet::node {
namespace {

std::string controllers(const HostFacts& facts) {
  return facts.slurm_conf.controllers.empty()
             ? "slurmctld"
             : "slurmctld (" + join(facts.slurm_conf.controllers, ", ") + ")";
}

struct Cause {
  std::string reason, what, cure;
};

// Whose munge, clock or command it is: with slurmrestd the asking is done on its host.
bool asks_slurmrestd(const HostFacts& facts) {
  return facts.slurm.source.starts_with("slurmrestd");
}

Cause controller_cause(SlurmFailure failure, const HostFacts& facts) {
  switch (failure) {
    case SlurmFailure::kControllerUnreachable:
      return {"ControllerUnreachable", controllers(facts) + " does not answer",
              "check that it runs and that this node reaches it (scontrol ping)"};
    case SlurmFailure::kTimeout:
      return {"ControllerTimeout", controllers(facts) + " did not answer in time",
              "check its load (sdiag) and the network"};
    case SlurmFailure::kPermissionDenied:
      return {
          "PermissionDenied", "Slurm does not let slurmlet read this node",
          "with PrivateData=nodes or partitions give its user the Operator level, or run slurmlet "
          "as root"};
    case SlurmFailure::kNotInSlurm:
      return {"NotInSlurm", "slurmctld names no such node in any partition",
              "check NodeName and partitions in slurm.conf, or set slurm.nodeName"};
    case SlurmFailure::kRateLimited:
      return {"ControllerRateLimited", "slurmctld refuses more questions for now",
              "its limit (SlurmctldParameters=rl_enable) is one for all nodes of a user: raise "
              "slurm.pollInterval, or run slurmlet as root, whom it spares"};
    default:
      return {"AnswerNotUnderstood", "the answer about this node cannot be understood",
              "look at the answer itself: slurmlet parse-slurm FILE says what it does not know"};
  }
}

Cause cause_of(SlurmFailure failure, const HostFacts& facts) {
  const std::string host = asks_slurmrestd(facts) ? "slurmrestd's host" : "this node";
  switch (failure) {
    case SlurmFailure::kMungeUnavailable:
      return {"MungeUnavailable", "munge does not run on " + host + ", so Slurm cannot be asked",
              "start it there (systemctl start munge)"};
    case SlurmFailure::kAuthenticationRefused:
      return {
          "AuthenticationRefused", "slurmctld does not accept the credentials of " + host,
          "give it the cluster's key (/etc/munge/munge.key; with auth/slurm /etc/slurm/slurm.key), "
          "set its clock and restart munge there"};
    case SlurmFailure::kClockSkew:
      return {"ClockSkew", "the clocks of " + host + " and of slurmctld differ too much for munge",
              "set them right (chronyc tracking, timedatectl)"};
    case SlurmFailure::kTokenRefused:
      return {"TokenRefused", "Slurm does not accept the token (JWT)",
              "write a new one to slurm.jwtFile (scontrol token username=USER lifespan=SECONDS)"};
    case SlurmFailure::kRestUnavailable:
      return {"RestUnavailable", "slurmrestd cannot be asked",
              "check that it runs and slurm.restURL"};
    case SlurmFailure::kFeedUnavailable:
      return {"FeedUnavailable", "the feed of this site's reader cannot be used",
              "check slurm.feed and that slurmlet feed runs"};
    case SlurmFailure::kSackUnavailable:
      return {"SackUnavailable",
              "neither sackd nor slurmd serves credentials (auth/slurm) on " + host +
                  ", so Slurm cannot be queried",
              "start slurmd or sackd there"};
    case SlurmFailure::kOtherCluster:
      return {"OtherCluster", "the answer is about a node of another cluster",
              "check slurm.conf, slurm.restURL and slurm.feed"};
    case SlurmFailure::kNodeUnknown:
      return {"SlurmNodeUnknown", "it cannot be told which of Slurm's nodes this machine is",
              "set slurm.nodeName"};
    case SlurmFailure::kBadConfiguration:
      return {"SlurmConfInvalid", "Slurm's configuration on this node cannot be used",
              "check slurm.conf (SLURM_CONF, slurm.conf)"};
    case SlurmFailure::kCommandMissing:
      return {"SlurmCommandMissing", "sinfo cannot be run",
              "install Slurm's client commands or set slurm.binDir"};
    default:
      return controller_cause(failure, facts);
  }
}

SlurmView unknown_view(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  SlurmView view;
  view.knowledge = Knowledge::kUnknown;
  const Cause cause =
      slurm.failure ? cause_of(*slurm.failure, facts)
                    : Cause{"AnswerTooOld", controllers(facts) + " has not been asked lately", ""};
  view.reason = cause.reason;
  view.message = cause.what;
  if (!slurm.failure_detail.empty()) {
    view.message += ": " + slurm.failure_detail;
  }
  if (slurm.answered_at && slurm.record) {
    view.message += fmt::format("; last answer at {}, state then {}", rfc3339(*slurm.answered_at),
                                slurm.record->state.raw());
  }
  if (!cause.cure.empty()) {
    view.message += "; " + cause.cure;
  }
  return view;
}

// The JSON of 23.02 says ALLOCATED of a node that is in use in part; its figures tell the truth.
std::string told_base(const HostFacts& facts) {
  const SlurmNodeRecord& record = *facts.slurm.record;
  const auto cpus = usable_cpus(facts);
  const bool in_part = record.allocation_is_fresh && cpus &&
                       record.allocated_cpus.value_or(0) > 0 && *record.allocated_cpus < *cpus;
  return in_part && record.state.base == "ALLOCATED" ? "MIXED" : record.state.base;
}

// MIXED is the one word of a single-node answer that may be stale; the machine decides it where it
// can. ALLOCATED without a local job stays (an salloc without steps leaves no trace here). An
// answer made of a full dump is right about both, unless the jobs here plainly use every CPU.
std::string effective_base(const HostFacts& facts) {
  const SlurmNodeRecord& record = *facts.slurm.record;
  const std::string base = told_base(facts);
  const auto& jobs = facts.jobs;
  if ((base != "MIXED" && base != "ALLOCATED") || !jobs) {
    return base;
  }
  if (jobs->jobs == 0) {
    const bool is_stale = base == "MIXED" && !record.allocation_is_fresh;
    return is_stale && !record.state.has("COMPLETING") ? "IDLE" : base;
  }
  const auto cpus = usable_cpus(facts);
  if (!jobs->allocated_cpus || !cpus) {
    return base;
  }
  if (*jobs->allocated_cpus >= *cpus) {
    return "ALLOCATED";
  }
  // Jobs may be bound to fewer CPUs than they were given.
  return record.allocation_is_fresh ? base : "MIXED";
}

}  // namespace

std::string camel_case(const std::string& slurm_word) {
  std::string out;
  for (const auto part : split(slurm_word, '_')) {
    if (!part.empty()) {
      out += to_upper(part.substr(0, 1)) + to_lower(part.substr(1));
    }
  }
  return out;
}

std::optional<std::int64_t> usable_cpus(const HostFacts& facts) {
  if (!facts.slurm.record) {
    return std::nullopt;
  }
  const SlurmNodeRecord& record = *facts.slurm.record;
  if (record.effective_cpus.value_or(0) > 0) {
    return record.effective_cpus;
  }
  if (!record.cpus) {
    return std::nullopt;
  }
  return std::max<std::int64_t>(0, *record.cpus - facts.slurm_conf.core_spec_cpus);
}

SlurmView slurm_view(const HostFacts& facts) {
  const auto& slurm = facts.slurm;
  if (!slurm.record && !slurm.failure) {
    return {Knowledge::kNotAskedYet, "NotAskedYet", "slurmctld has not been asked yet", "", false};
  }
  if (!slurm.record || slurm.stale) {
    return unknown_view(facts);
  }
  SlurmView view;
  view.knowledge = Knowledge::kKnown;
  view.base = effective_base(facts);
  view.busy = view.base == "ALLOCATED" || view.base == "MIXED" ||
              slurm.record->state.has("COMPLETING") || (facts.jobs && facts.jobs->jobs > 0);
  return view;
}

}  // namespace slurmlet::node
