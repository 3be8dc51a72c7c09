#include "operator/rules/drain_rules.h"

#include <array>

#include "base/text.h"

namespace slurmlet::op {
namespace {

constexpr std::string_view kCordoned = "slurmlet: cordoned [";
constexpr std::string_view kMachineDeleted = "slurmlet: machine deleted [";
constexpr std::string_view kEnd = "]";
constexpr std::string_view kWas = ", was: ";
constexpr std::string_view kUndrained = "slurmlet: undrained";

// slurmctld's own, for nodes that do not respond; with ReturnToService=1 just that returns them.
constexpr std::string_view kNotResponding = "Not responding";
// What it adds to a Reason that is there: `scontrol reboot` always, the rest since 23.02.
constexpr std::array<std::string_view, 5> kAdditions{
    " : Not responding", " : ResumeTimeout reached", " : reboot complete", " : reboot issued",
    " : reboot timed out"};

std::string_view without_additions(std::string_view reason) {
  for (bool more = true; more;) {
    more = false;
    for (const auto addition : kAdditions) {
      if (reason.ends_with(addition)) {
        reason.remove_suffix(addition.size());
        more = true;
      }
    }
  }
  return reason;
}

bool is_uid(std::string_view text) { return !text.empty() && all_alnum(text, "-"); }

bool is_reason(std::string_view reason, std::string_view begin) {
  reason = without_additions(reason);
  const auto end = reason.find(kEnd);
  if (!reason.starts_with(begin) || end == std::string_view::npos ||
      !is_uid(reason.substr(begin.size(), end - begin.size()))) {
    return false;
  }
  const auto rest = reason.substr(end + kEnd.size());
  return rest.empty() || rest.starts_with(kWas);
}

// What is said of a node besides what we say: Slurm keeps one Reason, so it stands behind ours.
std::string_view others_reason(std::string_view reason) {
  const auto own = without_additions(reason);
  if (own != kUndrained && !is_drain_of_ours(reason)) {
    return reason;
  }
  const auto was = own.find(kWas);
  if (was != std::string_view::npos) {
    return own.substr(was + kWas.size());
  }
  return reason.ends_with(kNotResponding) ? kNotResponding : "";
}

bool may_undrain(const KubeNode& node, const SlurmNode& slurm, MachineOf machine) {
  if (is_cordon_reason(slurm.reason)) {
    return true;
  }
  // Only the Node of the host's next Machine: this one's may still be there, or come back, while
  // the host is being deprovisioned.
  return is_reason(slurm.reason, kMachineDeleted) && machine == MachineOf::kLives &&
         !slurm.reason.starts_with(machine_reason(node));
}

}  // namespace

std::string cordon_reason(const KubeNode& node) {
  return std::string{kCordoned} + node.uid + std::string{kEnd};
}

std::string machine_reason(const KubeNode& node) {
  return std::string{kMachineDeleted} + node.uid + std::string{kEnd};
}

bool is_cordon_reason(std::string_view reason) { return is_reason(reason, kCordoned); }

bool is_drain_of_ours(std::string_view reason) {
  return is_cordon_reason(reason) || is_reason(reason, kMachineDeleted);
}

DrainRuling rule_drain(const KubeNode& node, const SlurmNode& slurm, MachineOf machine) {
  const bool drained = slurm.state.has("DRAIN");
  const bool goes = machine == MachineOf::kDeleting;
  const std::string others{others_reason(slurm.reason)};
  if (!node.unschedulable && !goes) {
    if (drained) {
      return {may_undrain(node, slurm, machine) ? DrainAction::kUndrain : DrainAction::kNone};
    }
    // Since 23.11 a Reason may outlast its drain: with ours, `scontrol reboot ASAP` or a prolog
    // that fails would drain as a cordon does.
    return is_drain_of_ours(slurm.reason)
               ? DrainRuling{DrainAction::kSetReason,
                             others.empty() ? std::string{kUndrained} : others}
               : DrainRuling{};
  }
  std::string reason = (goes ? machine_reason(node) : cordon_reason(node)) +
                       (others.empty() ? "" : std::string{kWas} + others);
  if (drained) {
    // Once the Machine goes, an uncordon must not undrain.
    return goes && is_cordon_reason(slurm.reason) ? DrainRuling{DrainAction::kDrain, reason}
                                                  : DrainRuling{};
  }
  // Slurm gives no jobs to it, and its Reason has a time and an author. While its Machine goes, it
  // must not come back into service.
  const bool fails = slurm.state.has("FAIL");
  const bool out = slurm.state.base == "DOWN" || slurm.state.base == "ERROR" || fails;
  if (out && !others.empty() && !goes) {
    return {DrainAction::kNone, "",
            "it is " + slurm.state.raw() + ", and draining it would replace the reason"};
  }
  if (fails && !others.empty()) {
    reason = others;  // the drain takes the place of FAIL, and nobody is to lift it
  }
  // slurmctld requeues the jobs of a node that is drained while it is powered up.
  const bool has_jobs = slurm.state.base == "ALLOCATED" || slurm.state.base == "MIXED";
  if (has_jobs && (slurm.state.has("POWERING_UP") || slurm.state.has("POWERED_DOWN"))) {
    return {DrainAction::kNone, "",
            "it is being powered up, and draining it now would requeue its jobs"};
  }
  return {DrainAction::kDrain, reason};
}

}  // namespace slurmlet::op
