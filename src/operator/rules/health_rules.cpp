#include "operator/rules/health_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/rfc3339.h"
#include "operator/rules/power_rules.h"

namespace slurmlet::op {
namespace {

// How long it has had its status; nothing if that is not known.
std::optional<Duration> age(const node::ObservedCondition& condition, WallTime now) {
  const auto since = parse_rfc3339(condition.last_transition_time);
  return since ? std::optional<Duration>{now - *since} : std::nullopt;
}

// The condition of `rule` if it is bad, however long.
const node::ObservedCondition* bad(const BadCondition& rule, const KubeNode& node) {
  const auto* found = node.condition(rule.type);
  return found != nullptr && found->condition.status == rule.status ? found : nullptr;
}

struct Bad {
  const node::ObservedCondition* condition;
  Duration age;
};

// The one that has been bad longest of those that have been so for long enough.
std::optional<Bad> bad_for_long(const HealthPolicy& policy, const KubeNode& node, WallTime now) {
  std::optional<Bad> out;
  for (const BadCondition& rule : policy.drain_on) {
    const auto* condition = bad(rule, node);
    const auto lasts = condition == nullptr ? std::nullopt : age(*condition, now);
    if (lasts && *lasts >= rule.lasting && (!out || *lasts > out->age)) {
      out = Bad{condition, *lasts};
    }
  }
  return out;
}

std::string text_of(const node::Condition& condition) {
  return !condition.message.empty()  ? condition.message
         : !condition.reason.empty() ? condition.reason
                                     : condition.status;
}

bool is_left_alone(const HealthFacts& facts) {
  return facts.node->unschedulable || facts.machine == MachineOf::kDeleting ||
         facts.slurm->is_rebooting();
}

// A DOWN node takes no jobs, and the Reason is of that. One that sleeps or starts has conditions
// from before.
bool may_drain(const SlurmNode& slurm) {
  const auto& state = slurm.state;
  if (state.has("DRAIN")) {  // by a cordon that has ended: it goes on without a gap
    return is_own_drain(slurm.reason) && health_type(slurm.reason).empty() &&
           !is_machine_reason(slurm.reason);
  }
  return (state.base == "IDLE" || state.base == "ALLOCATED" || state.base == "MIXED") &&
         !state.has("FAIL") && !is_powering_down(state) && !is_powering_up(state);
}

// How much of each partition is drained for health.
class Partitions {
 public:
  Partitions(const std::map<std::string, SlurmNode>& all, int percent) : percent_(percent) {
    for (const auto& [name, slurm] : all) {
      const bool is_out = is_drained_for_health(slurm);
      for (const std::string& partition : slurm.partitions) {
        ++counts_[partition].nodes;
        counts_[partition].drained += is_out ? 1 : 0;
      }
    }
  }
  // Why no more may be drained; "" = this one is counted as drained.
  std::string take(const SlurmNode& slurm) {
    if (slurm.partitions.empty()) {
      return "its partitions are not known";
    }
    for (const std::string& partition : slurm.partitions) {
      const Count& count = counts_[partition];
      const std::size_t most =
          std::max<std::size_t>(1, count.nodes * static_cast<std::size_t>(percent_) / 100);
      if (count.drained >= most) {
        return fmt::format(
            "{} of the {} nodes of partition {} are drained for their health, and maxUnhealthy is "
            "{}%",
            count.drained, count.nodes, partition, percent_);
      }
    }
    for (const std::string& partition : slurm.partitions) {
      ++counts_[partition].drained;
    }
    return "";
  }

 private:
  struct Count {
    std::size_t nodes = 0, drained = 0;
  };
  std::map<std::string, Count> counts_;
  int percent_;
};

}  // namespace

std::set<std::string> condition_types(const HealthPolicy& policy) {
  std::set<std::string> out;
  for (const BadCondition& rule : policy.drain_on) {
    out.insert(rule.type);
  }
  return out;
}

HealthRuling rule_health_end(const HealthPolicy& policy, const HealthFacts& facts, WallTime now) {
  HealthRuling out{&facts};
  const std::string type = health_type(facts.slurm->reason);
  if (!is_drained_for_health(*facts.slurm) || is_left_alone(facts)) {
    return out;
  }
  const auto* condition = facts.node->condition(type);
  if (condition == nullptr || condition->condition.status == "Unknown") {
    return out;
  }
  const bool is_watched =
      std::ranges::any_of(policy.drain_on, [&](const auto& rule) { return rule.type == type; });
  // One that comes and goes would drain it again.
  const bool are_all_good = std::ranges::all_of(policy.drain_on, [&](const auto& rule) {
    const auto* one = facts.node->condition(rule.type);
    return one == nullptr || (one->condition.status != rule.status &&
                              age(*one, now).value_or(Duration{}) >= kGoodFor);
  });
  if (is_watched && are_all_good && facts.node->is_ready()) {
    out.action = end_own_drain(*facts.slurm).action;
    out.why = fmt::format("{} has been {} for ten minutes", type, condition->condition.status);
  }
  return out;
}

std::vector<HealthRuling> rule_health(const HealthPolicy& policy,
                                      const std::vector<HealthFacts>& facts,
                                      const std::map<std::string, SlurmNode>& all, WallTime now) {
  std::vector<HealthRuling> out;
  struct Wanted {
    const HealthFacts* facts;
    Bad bad;
  };
  std::vector<Wanted> wanted;
  for (const HealthFacts& one : facts) {
    if (auto end = rule_health_end(policy, one, now); end.action != DrainAction::kNone) {
      out.push_back(std::move(end));
    }
    const auto found = bad_for_long(policy, *one.node, now);
    if (found && !is_left_alone(one) && may_drain(*one.slurm)) {
      wanted.push_back({&one, *found});
    }
  }
  if (wanted.empty()) {
    return out;
  }
  std::ranges::stable_sort(wanted,
                           [](const Wanted& a, const Wanted& b) { return a.bad.age > b.bad.age; });
  Partitions partitions{all, policy.max_unhealthy};
  for (const Wanted& one : wanted) {
    const node::Condition& condition = one.bad.condition->condition;
    const std::string text = text_of(condition);
    HealthRuling ruling{one.facts, DrainAction::kDrain,
                        health_reason(*one.facts->node, condition.type, text),
                        fmt::format("{} is {}: {}", condition.type, condition.status, text)};
    ruling.waits_for = partitions.take(*one.facts->slurm);
    if (!ruling.waits_for.empty()) {
      ruling.action = DrainAction::kNone;
    }
    out.push_back(std::move(ruling));
  }
  return out;
}

}  // namespace slurmlet::op
