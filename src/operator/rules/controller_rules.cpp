#include "operator/rules/controller_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "operator/rules/matching.h"

namespace slurmlet::op {
namespace {

using node::Controller;

std::string hosts_of(const std::vector<Controller>& controllers) {
  std::vector<std::string> hosts;
  for (const Controller& one : controllers) {
    hosts.push_back(one.host);
  }
  return join(hosts, ", ");
}

// nullptr: that is not certain.
const Controller* in_charge_of(const std::vector<Controller>& controllers,
                               const std::string& took_over) {
  const auto is_up = [](const Controller& one) { return one.up; };
  if (!controllers.empty() && controllers.front().up) {
    return &controllers.front();
  }
  const auto latest = std::ranges::find(controllers, took_over, &Controller::host);
  if (latest != controllers.end() && latest->up) {
    return &*latest;
  }
  const auto first = std::ranges::find_if(controllers, is_up);
  const bool is_alone = std::count_if(controllers.begin(), controllers.end(), is_up) == 1;
  return is_alone ? &*first : nullptr;
}

}  // namespace

std::string controller_on(const std::vector<std::string>& names,
                          const std::vector<Controller>& controllers) {
  std::string found;
  for (const Controller& one : controllers) {
    if (std::ranges::none_of(names, [&](const std::string& name) {
          return !name.empty() && first_label(name) == first_label(one.host);
        })) {
      continue;
    }
    if (!found.empty()) {
      return "";
    }
    found = one.host;
  }
  return found;
}

ControllerRuling rule_controller(const ControllerFacts& facts) {
  if (!facts.controllers) {
    return {};
  }
  const auto& all = *facts.controllers;
  const std::string own = controller_on(facts.names, all);
  if (own.empty()) {
    return {ControllerAction::kUnknown,
            fmt::format(
                "none of slurm.conf's SlurmctldHost ({}), or more than one, has a name of its host "
                "({})",
                hosts_of(all), join(facts.names, ", "))};
  }
  const auto can_stay = [&](const Controller& one) {
    return one.up && one.host != own && !facts.leaving.contains(one.host);
  };
  const bool own_is_up =
      std::ranges::any_of(all, [&](const auto& one) { return one.up && one.host == own; });
  const auto backup = std::ranges::find_if(all, can_stay);
  const Controller* in_charge = in_charge_of(all, facts.took_over);
  ControllerRuling out{ControllerAction::kWait, ""};
  if (backup == all.end()) {
    out.action = ControllerAction::kNoBackup;
    out.why = fmt::format(
        "no backup slurmctld answers that stays, so that slurmctld on {} cannot hand over", own);
  } else if (own_is_up && (in_charge == nullptr || in_charge->host == own)) {
    out.action = ControllerAction::kTakeOver;
    out.backup = static_cast<std::size_t>(backup - all.begin());
    out.why = fmt::format("slurmctld on {} is to take over from {}", backup->host, own);
  } else if (own_is_up && facts.leaving.contains(in_charge->host)) {
    out.why = fmt::format("slurmctld on {} is in charge, and its Machine is being deleted too",
                          in_charge->host);
  } else if (!facts.answered) {
    out.why = fmt::format("slurmctld on {} has to answer first", backup->host);
  } else {
    out.action = ControllerAction::kHandedOver;
    out.why = fmt::format("slurmctld is not in charge on {}", own);
  }
  return out;
}

}  // namespace slurmlet::op
