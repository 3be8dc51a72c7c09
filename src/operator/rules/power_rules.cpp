#include "operator/rules/power_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace slurmlet::op {
namespace {

std::optional<PowerHost> host_of(std::string_view provider_id) {
  constexpr std::string_view kScheme = "metal3://";
  if (!provider_id.starts_with(kScheme)) {
    return std::nullopt;
  }
  const auto parts = split(provider_id.substr(kScheme.size()), '/');
  if (parts.size() != 3 || std::ranges::any_of(parts, [](auto part) { return part.empty(); })) {
    return std::nullopt;
  }
  return PowerHost{std::string{parts[0]}, std::string{parts[1]}, std::string{parts[2]}};
}

// Why the host must stay on; "" = it need not.
std::string why_on(const PowerMachine& machine) {
  if (machine.slurm.empty()) {
    return "slurmctld shows no node of its host";
  }
  for (const SlurmNode* slurm : machine.slurm) {
    const auto& state = slurm->state;
    if (slurm->is_busy()) {
      return fmt::format("a job is on Slurm node {} ({})", slurm->name, state.raw());
    }
    if (!is_powering_down(state)) {
      return fmt::format("Slurm node {} is {}, and not being powered down", slurm->name,
                         state.raw());
    }
  }
  return "";
}

}  // namespace

bool is_powering_down(const node::SlurmState& state) {
  return state.has("POWER_DOWN") || state.has("POWERING_DOWN") || state.has("POWERED_DOWN");
}

bool is_powering_up(const node::SlurmState& state) {
  return state.has("POWER_UP") || state.has("POWERING_UP");
}

Result<PowerHost> rule_power(PowerAction action, const std::vector<PowerMachine>& machines) {
  if (machines.size() != 1) {
    return Error{Code::kConflict,
                 machines.empty() ? "no Machine has it" : "more than one Machine has it"};
  }
  const PowerMachine& machine = machines.front();
  const auto host = host_of(machine.provider_id);
  std::string problem;
  if (!machine.unclear.empty()) {
    problem = fmt::format("Machine {}: {}", machine.key, machine.unclear);
  } else if (machine.deleting) {
    problem = fmt::format("Machine {} is being deleted", machine.key);
  } else if (!host) {
    problem = fmt::format(
        "Machine {} has providerID \"{}\", which does not name a BareMetalHost "
        "(metal3://NAMESPACE/HOST/METAL3MACHINE)",
        machine.key, machine.provider_id);
  } else if (action == PowerAction::kSuspend) {
    problem =
        machine.has_node ? why_on(machine) : fmt::format("Machine {} has no Node", machine.key);
  }
  return problem.empty() ? Result<PowerHost>{*host} : Error{Code::kConflict, problem};
}

std::optional<node::Condition> rule_sleep(const KubeNode& node, const SlurmNode& slurm) {
  const auto& state = slurm.state;
  const auto condition = [](const char* reason, const std::string& message) {
    return node::Condition{kAsleep, "True", reason, message};
  };
  if (is_powering_up(state)) {
    return condition("PoweringUp", "Slurm is powering this host up");
  }
  if (is_powering_down(state)) {
    return condition("PoweredDown",
                     fmt::format("Slurm has powered this host down to save power; a job that needs "
                                 "it wakes it, or: scontrol update nodename={} state=power_up",
                                 slurm.name));
  }
  if (node.is_ready() || state.base == "DOWN") {  // DOWN: ResumeTimeout is over
    return std::nullopt;
  }
  return condition("PoweringUp",
                   "Slurm has powered this host up, and its slurmlet is not Ready yet");
}

}  // namespace slurmlet::op
