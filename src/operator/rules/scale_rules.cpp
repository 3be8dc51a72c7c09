#include "operator/rules/scale_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace slurmlet::op {
namespace {

using State = ScaleMachine::State;
using node::PendingJob;

constexpr double kEpsilon = 1e-9;
constexpr std::size_t kMostMarks = 10;

std::int64_t count(const ScaleGroup& group, std::initializer_list<State> states) {
  return std::ranges::count_if(group.machines, [&](const ScaleMachine& machine) {
    return std::ranges::find(states, machine.state) != states.end();
  });
}

// Those that take a place and are not free for pending jobs.
std::int64_t taken(const ScaleGroup& group) { return count(group, {State::kInUse, State::kLate}); }

std::int64_t parts(std::int64_t amount, std::int64_t of) {
  return of <= 0 ? (amount > 0 ? -1 : 1) : std::max<std::int64_t>((amount + of - 1) / of, 1);
}

// Machines for one element of the job; nothing: it never fits.
std::optional<std::int64_t> machines_for(const PendingJob& job, const MachineSize& size) {
  const std::int64_t by_cpus = parts(job.cpus, size.cpus);
  const std::int64_t by_gpus = job.gpus == 0 ? 1 : parts(job.gpus, size.gpus);
  if (by_cpus < 0 || by_gpus < 0 || job.cpus_per_node > size.cpus ||
      job.gpus_per_node > size.gpus) {
    return std::nullopt;
  }
  const std::int64_t nodes = std::max({job.nodes, by_cpus, by_gpus});
  const bool fits = size.memory_mib == 0 || job.memory_mib <= nodes * size.memory_mib;
  return fits ? std::optional{nodes} : std::nullopt;
}

// Part of a machine that one element takes, such that whole elements fit.
double share_of(const PendingJob& job, const MachineSize& size) {
  const auto ratio = [](std::int64_t amount, std::int64_t of) {
    return of <= 0 ? 0.0 : static_cast<double>(amount) / static_cast<double>(of);
  };
  const double share = std::max({ratio(job.cpus, size.cpus), ratio(job.memory_mib, size.memory_mib),
                                 ratio(job.gpus, size.gpus), kEpsilon});
  return 1 / std::max(1.0, std::floor(1 / share + kEpsilon));
}

bool has_any(const std::set<std::string>& features, std::string_view terms) {
  std::string word;
  const auto holds = [&] {
    const bool found = features.contains(word.substr(0, word.find('*')));
    word.clear();
    return found;
  };
  bool any = false;
  for (const char c : terms) {
    if (std::string_view{"[]()&|,"}.find(c) != std::string_view::npos) {
      any = holds() || any;
    } else {
      word += c;
    }
  }
  return holds() || any;
}

class Demand {
 public:
  explicit Demand(const std::vector<ScaleGroup>& groups) : groups_(groups) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const ScaleGroup& group = groups[i];
      const std::int64_t used = taken(group);
      const auto all = static_cast<std::int64_t>(group.machines.size());
      needs_.push_back({.supply = std::max(all, group.replicas) - used,
                        .room = std::max<std::int64_t>(group.max - used, 0)});
      for (const auto& partition : group.partitions) {
        by_partition_[partition].push_back(i);
      }
    }
  }

  // Returns false if no machine can hold the job.
  bool add(const PendingJob& job) {
    const auto eligible = eligible_for(job);
    if (!eligible) {
      return true;
    }
    std::int64_t most = 0;
    for (const Choice& choice : *eligible) {
      most += groups_[choice.group].max;
    }
    if (eligible->empty() || most < eligible->front().nodes) {
      return false;
    }
    if (job.exclusive || eligible->front().nodes > 1) {
      add_whole(*eligible, eligible->front().nodes * std::min(job.count, most));
    } else {
      add_shares(job, *eligible);
    }
    return true;
  }

  std::int64_t of(std::size_t group) const {
    const Need& need = needs_[group];
    return need.whole + static_cast<std::int64_t>(std::ceil(need.shares - kEpsilon));
  }

 private:
  struct Need {
    std::int64_t supply, room;  // machines that are free or coming; that may ever be
    std::int64_t whole = 0;
    double shares = 0;
    double left(std::int64_t limit) const {
      return static_cast<double>(limit - whole) - shares + kEpsilon;
    }
  };
  struct Choice {
    std::size_t group;
    std::int64_t nodes;
  };

  // Nothing: it is no job of these groups, or a group's size is not known.
  std::optional<std::vector<Choice>> eligible_for(const PendingJob& job) const {
    std::vector<Choice> out;
    bool concerned = false, unknown = false;
    for (const auto& partition : job.partitions) {
      const auto found = by_partition_.find(partition);
      if (found == by_partition_.end()) {
        continue;
      }
      for (const std::size_t i : found->second) {
        const ScaleGroup& group = groups_[i];
        concerned = true;
        unknown = unknown || !group.size;
        const bool is_new = std::ranges::find(out, i, &Choice::group) == out.end();
        const auto nodes = group.size ? machines_for(job, *group.size) : std::nullopt;
        if (nodes && is_new && satisfies(group.features, job.features)) {
          out.push_back({i, *nodes});
        }
      }
    }
    return !concerned || (out.empty() && unknown) ? std::nullopt : std::optional{std::move(out)};
  }

  // First where machines are free.
  template <class Place>
  void spread(const std::vector<Choice>& eligible, const Place& place) {
    for (const auto limit : {&Need::supply, &Need::room}) {
      for (const Choice& choice : eligible) {
        Need& need = needs_[choice.group];
        place(need, choice, std::min(need.*limit, need.room));
      }
    }
  }

  void add_whole(const std::vector<Choice>& eligible, std::int64_t machines) {
    spread(eligible, [&](Need& need, const Choice&, std::int64_t limit) {
      const auto some =
          std::clamp<std::int64_t>(static_cast<std::int64_t>(need.left(limit)), 0, machines);
      need.whole += some;
      machines -= some;
    });
  }

  void add_shares(const PendingJob& job, const std::vector<Choice>& eligible) {
    std::int64_t elements = job.count;
    spread(eligible, [&](Need& need, const Choice& choice, std::int64_t limit) {
      const double share = share_of(job, *groups_[choice.group].size);
      const auto some = std::clamp<std::int64_t>(
          static_cast<std::int64_t>(std::floor(std::max(need.left(limit), 0.0) / share)), 0,
          elements);
      need.shares += static_cast<double>(some) * share;
      elements -= some;
    });
  }

  const std::vector<ScaleGroup>& groups_;
  std::vector<Need> needs_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_partition_;
};

// Those that are to stay first in line to leave: the furthest ones.
std::vector<const ScaleMachine*> leaving(const ScaleGroup& group) {
  std::vector<const ScaleMachine*> out;
  for (const State state : {State::kLeft, State::kLeaving}) {
    for (const bool marked : {true, false}) {
      for (const auto& machine : group.machines) {
        if (machine.state == state && machine.marked == marked && !machine.has_job &&
            machine.may_go) {
          out.push_back(&machine);
        }
      }
    }
  }
  return out;
}

std::vector<const ScaleMachine*> idle(const ScaleGroup& group) {
  std::vector<const ScaleMachine*> out;
  for (const auto& machine : group.machines) {
    if (machine.state == State::kIdle && machine.idle_for >= group.idle_after && machine.may_go &&
        !machine.has_job) {
      out.push_back(&machine);
    }
  }
  std::ranges::stable_sort(out, std::ranges::greater{}, &ScaleMachine::idle_for);
  return out;
}

const char* why_it_stays(const ScaleGroup& group, const ScaleMachine& machine) {
  return machine.has_job                ? "a job is on it or names it"
         : !machine.may_go              ? "its Machine has to stay"
         : group.by == ScaledBy::kQueue ? "demand came back"
         : group.by == ScaledBy::kOther ? "another program scales its MachineDeployment"
                                        : "its MachineDeployment is not scaled any more";
}

// Of machines that are not to leave.
void keep(const ScaleGroup& group, const ScaleMachine& machine, ScaleRuling& ruling) {
  if (machine.state == State::kLeaving || machine.state == State::kLeft) {
    ruling.undrain[machine.name] = why_it_stays(group, machine);
  }
  if (machine.marked) {
    ruling.unmark.push_back(machine.name);
  }
}

void rule_down(const ScaleGroup& group, ScaleRuling& ruling) {
  const auto all = static_cast<std::int64_t>(group.machines.size());
  const auto surplus = static_cast<std::size_t>(
      std::max<std::int64_t>(std::max(all, group.replicas) - ruling.wanted, 0));
  auto goes = leaving(group);
  goes.resize(std::min(goes.size(), surplus));
  // In a rollout, or Cluster API has not yet deleted the marked ones that it was to delete.
  const bool is_settled = all <= group.replicas;
  for (const auto& machine : group.machines) {
    if (std::ranges::find(goes, &machine) == goes.end() && (is_settled || !machine.marked)) {
      keep(group, machine, ruling);
    }
  }
  if (!is_settled) {
    return;
  }
  std::int64_t ready = 0;
  for (const ScaleMachine* machine : goes) {
    if (machine->state == State::kLeft && machine->marked) {
      ++ready;
    } else if (machine->state == State::kLeft) {
      ruling.mark.push_back(machine->name);
    }
  }
  // Cluster API may choose any marked one, so no other may be marked.
  if (ruling.unmark.empty() && ready > 0) {
    ruling.replicas = group.replicas - ready;
    ruling.why = fmt::format("{} idle and drained", ready);
  }
  for (const ScaleMachine* machine : idle(group)) {
    if (goes.size() + ruling.drain.size() < surplus) {
      ruling.drain.push_back(machine->name);
    }
  }
}

void rule_marks(const ScaleGroup& group, ScaleRuling& ruling) {
  auto marks = group.by == ScaledBy::kOther ? idle(group) : std::vector<const ScaleMachine*>{};
  marks.resize(std::min(marks.size(), kMostMarks));
  for (const auto& machine : group.machines) {
    if (std::ranges::find(marks, &machine) == marks.end()) {
      keep(group, machine, ruling);
    } else if (!machine.marked) {
      ruling.mark.push_back(machine.name);
    }
  }
}

}  // namespace

bool satisfies(const std::set<std::string>& features, std::string_view expression) {
  if (expression.empty()) {
    return true;
  }
  if (expression.find('[') != std::string_view::npos) {
    return has_any(features, expression);
  }
  for (const std::string_view alternative : split(expression, '|')) {
    const auto terms = split(alternative, '&');
    if (std::ranges::all_of(terms,
                            [&](std::string_view term) { return has_any(features, term); })) {
      return true;
    }
  }
  return false;
}

ScaleRulings rule_scale(const std::vector<ScaleGroup>& groups, const std::vector<PendingJob>& jobs,
                        std::int64_t may_add) {
  ScaleRulings out;
  Demand demand{groups};
  for (const PendingJob& job : jobs) {
    if (job.waits_for == node::WaitsFor::kNodes && !demand.add(job)) {
      out.too_large.push_back(job.id);
      out.too_large_jobs += job.count;
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ScaleGroup& group = groups[i];
    const std::int64_t used = taken(group);
    ScaleRuling ruling;
    ruling.replicas = group.replicas;
    ruling.wanted = std::max(std::min(used + demand.of(i), group.max), group.min);
    if (group.by != ScaledBy::kQueue) {
      rule_marks(group, ruling);
      out.groups.push_back(std::move(ruling));
      continue;
    }
    if (ruling.wanted > group.replicas) {
      const auto added = std::min(ruling.wanted - group.replicas, may_add);
      may_add -= added;
      ruling.replicas += added;
      ruling.why =
          fmt::format("{} in use, {} for pending jobs, at least {}", used, demand.of(i), group.min);
    }
    rule_down(group, ruling);
    out.groups.push_back(std::move(ruling));
  }
  return out;
}

}  // namespace slurmlet::op
