#include "node/slurm_view.h"

#include <fmt/format.h>

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

Cause cause_of(SlurmFailure failure, const HostFacts& facts) {
  switch (failure) {
    case SlurmFailure::kControllerUnreachable:
      return {"ControllerUnreachable", controllers(facts) + " does not answer", ""};
    case SlurmFailure::kTimeout:
      return {"ControllerTimeout", controllers(facts) + " did not answer in time", ""};
    case SlurmFailure::kMungeUnavailable:
      return {"MungeUnavailable", "munge on this node does not work, so Slurm cannot be asked",
              "start it (systemctl start munge) and check its key and the clock"};
    case SlurmFailure::kPermissionDenied:
      return {"PermissionDenied", "Slurm does not let slurmlet read this node",
              "with PrivateData=nodes give its user the Operator level"};
    case SlurmFailure::kNotInSlurm:
      return {"NotInSlurm", "slurmctld names no such node in any partition",
              "check NodeName and partitions in slurm.conf, or set slurm.nodeName"};
    case SlurmFailure::kBadConfiguration:
      return {"SlurmConfInvalid", "Slurm's configuration on this node cannot be used",
              "check slurm.conf (SLURM_CONF, slurm.conf)"};
    case SlurmFailure::kCommandMissing:
      return {"SlurmCommandMissing", "sinfo cannot be run",
              "install Slurm's client commands or set slurm.binDir"};
    case SlurmFailure::kRateLimited:
      return {"ControllerRateLimited", "slurmctld refuses more questions for now", ""};
    case SlurmFailure::kGarbage:
      break;
  }
  return {"AnswerNotUnderstood", "the answer about this node cannot be understood", ""};
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

// MIXED is the one word of a single-node answer that may be stale; the machine decides it where it
// can. ALLOCATED without a local job stays (an salloc without steps leaves no trace here).
std::string effective_base(const SlurmNodeRecord& record, const std::optional<LocalJobs>& jobs) {
  const std::string& base = record.state.base;
  const bool computed = base == "MIXED" || base == "ALLOCATED";
  if (!computed || !jobs) {
    return base;
  }
  if (jobs->jobs == 0) {
    return base == "MIXED" && !record.state.has("COMPLETING") ? "IDLE" : base;
  }
  if (jobs->allocated_cpus && record.cpus) {
    return *jobs->allocated_cpus < *record.cpus ? "MIXED" : "ALLOCATED";
  }
  return base;
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
  view.base = effective_base(*slurm.record, facts.jobs);
  view.busy =
      view.base == "ALLOCATED" || view.base == "MIXED" || slurm.record->state.has("COMPLETING");
  return view;
}

}  // namespace slurmlet::node
