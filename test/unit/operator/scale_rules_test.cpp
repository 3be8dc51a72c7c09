#include "operator/rules/scale_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace slurmlet::op {
namespace scale_rules_test {

using State = ScaleMachine::State;
using node::PendingJob;
using node::WaitsFor;
using std::chrono::minutes;

ScaleGroup group(std::int64_t replicas, std::vector<ScaleMachine> machines = {}) {
  return {.name = "g",
          .partitions = {"gpu"},
          .features = {"gpu"},
          .size = MachineSize{4, 1000, 2},
          .min = 0,
          .max = 8,
          .replicas = replicas,
          .idle_after = minutes{10},
          .machines = std::move(machines)};
}

PendingJob job(std::int64_t cpus, std::int64_t nodes = 1) {
  PendingJob out;
  out.id = "7";
  out.waits_for = WaitsFor::kNodes;
  out.partitions = {"gpu"};
  out.cpus = cpus;
  out.nodes = nodes;
  return out;
}

template <class Change>
PendingJob with(PendingJob job, const Change& change) {
  change(job);
  return job;
}

std::int64_t wanted(const std::vector<PendingJob>& jobs) {
  return rule_scale({group(0)}, jobs, 100).groups.at(0).wanted;
}

TEST(ScaleRules, Demand) {
  struct Case {
    const char* what;
    std::vector<PendingJob> jobs;
    std::int64_t wanted;
  };
  const std::vector<Case> cases{
      {"no job", {}, 0},
      {"one", {job(1)}, 1},
      {"four of one CPU share a machine", {job(1), job(1), job(1), job(1)}, 1},
      {"two of three CPUs do not", {job(3), job(3)}, 2},
      {"five of one", {with(job(1), [](auto& j) { j.count = 5; })}, 2},
      {"more than the maximum", {with(job(4), [](auto& j) { j.count = 5000; })}, 8},
      {"whole nodes", {job(2, 2), job(1)}, 3},
      {"exclusive", {with(job(1), [](auto& j) { j.exclusive = true; }), job(1)}, 2},
      {"many tasks on several machines", {job(10)}, 3},
      {"memory", {with(job(1), [](auto& j) { j.memory_mib = 600, j.count = 2; })}, 2},
      {"GPUs", {with(job(1), [](auto& j) { j.gpus = 1, j.count = 4; })}, 2},
      {"GPUs of several", {with(job(1), [](auto& j) { j.gpus = 3; })}, 2},
      {"another partition", {with(job(1), [](auto& j) { j.partitions = {"other"}; })}, 0},
      {"one of its partitions",
       {with(job(1),
             [](auto& j) {
               j.partitions = {"other", "gpu"};
             })},
       1},
      {"other features", {with(job(1), [](auto& j) { j.features = "arm"; })}, 0},
      {"held", {with(job(1), [](auto& j) { j.waits_for = WaitsFor::kOther; })}, 0},
      {"unknown reason", {with(job(1), [](auto& j) { j.waits_for = WaitsFor::kUnknown; })}, 0},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(wanted(one.jobs), one.wanted) << one.what;
  }
}

TEST(ScaleRules, AJobThatNoMachineCanHoldIsNoDemand) {
  const std::vector<PendingJob> large{with(job(64), [](auto& j) { j.cpus_per_node = 64; }),
                                      with(job(1), [](auto& j) { j.memory_mib = 1001; }),
                                      with(job(1), [](auto& j) { j.gpus = j.gpus_per_node = 3; }),
                                      job(9, 9)};
  for (const auto& one : large) {
    const auto out = rule_scale({group(0)}, {one}, 100);
    EXPECT_EQ(out.groups[0].wanted, 0);
    EXPECT_EQ(out.too_large, std::vector<std::string>{"7"});
    EXPECT_EQ(out.too_large_jobs, 1);
  }
  auto unknown = group(0);
  unknown.size.reset();
  const auto out = rule_scale({unknown}, {job(1)}, 100);
  EXPECT_EQ(out.groups[0].wanted, 0);
  EXPECT_TRUE(out.too_large.empty());
}

TEST(ScaleRules, SeveralGroupsOfAPartition) {
  const ScaleMachine free{"m", State::kIdle};
  auto small = group(0), large = group(1, {free});
  small.max = 2;
  // The free machine first, then the others in their order.
  auto out = rule_scale({small, large}, {job(4), job(4)}, 100);
  EXPECT_EQ(out.groups[0].wanted, 1);
  EXPECT_EQ(out.groups[1].wanted, 1);
  // A job over both.
  out = rule_scale({small, large}, {job(10, 10)}, 100);
  EXPECT_EQ(out.groups[0].wanted, 2);
  EXPECT_EQ(out.groups[1].wanted, 8);
  // Only one of them is large enough.
  small.size = MachineSize{2, 1000, 0};
  out = rule_scale({small, large}, {with(job(4), [](auto& j) { j.cpus_per_node = 4; })}, 100);
  EXPECT_EQ(out.groups[0].wanted, 0);
  EXPECT_EQ(out.groups[1].wanted, 1);
}

TEST(ScaleRules, Features) {
  const std::set<std::string> features{"gpu", "big"};
  for (const char* yes : {"", "gpu", "gpu&big", "small|gpu", "[small*1&big*2]", "(gpu)"}) {
    EXPECT_TRUE(satisfies(features, yes)) << yes;
  }
  for (const char* no : {"small", "gpu&small", "a|b", "[a*1&b*1]"}) {
    EXPECT_FALSE(satisfies(features, no)) << no;
  }
}

TEST(ScaleRules, UpAtOnceWithinTheRate) {
  const std::vector<PendingJob> jobs{with(job(4), [](auto& j) { j.count = 6; })};
  EXPECT_EQ(rule_scale({group(0)}, jobs, 100).groups[0].replicas, 6);
  const auto limited = rule_scale({group(1), group(0)}, jobs, 2);
  EXPECT_EQ(limited.groups[0].replicas, 3);
  EXPECT_EQ(limited.groups[1].replicas, 0);
  // Machines in use do not count, free and booting ones do.
  const auto some = rule_scale(
      {group(3, {{"a", State::kInUse}, {"b", State::kIdle}, {"c", State::kBooting}})}, jobs, 100);
  EXPECT_EQ(some.groups[0].wanted, 7);
  auto least = group(0);
  least.min = 2;
  EXPECT_EQ(rule_scale({least}, {}, 100).groups[0].replicas, 2);
}

ScaleRuling down(std::vector<ScaleMachine> machines, std::int64_t less = 0,
                 const std::vector<PendingJob>& jobs = {}) {
  const auto replicas = static_cast<std::int64_t>(machines.size()) - less;
  return rule_scale({group(replicas, std::move(machines))}, jobs, 100).groups[0];
}

using Names = std::vector<std::string>;

Names undrained(const ScaleRuling& ruling) {
  Names out;
  for (const auto& [name, why] : ruling.undrain) {
    EXPECT_NE(why, "");
    out.push_back(name);
  }
  return out;
}

TEST(ScaleRules, DownInSteps) {
  const ScaleMachine idle{"m", State::kIdle, minutes{10}};
  EXPECT_EQ(down({idle}).drain, Names{"m"});
  EXPECT_EQ(down({idle}).replicas, 1);
  EXPECT_TRUE(down({{"m", State::kIdle, minutes{9}}}).drain.empty());
  ScaleMachine bare = idle;
  bare.may_go = false;
  EXPECT_TRUE(down({bare}).drain.empty());
  EXPECT_EQ(down({{"m", State::kLeaving}}).replicas, 1);
  EXPECT_TRUE(down({{"m", State::kLeaving}}).mark.empty());
  EXPECT_EQ(down({{"m", State::kLeft}}).mark, Names{"m"});
  EXPECT_EQ(down({{"m", State::kLeft}}).replicas, 1);
  const ScaleMachine marked{.name = "m", .state = State::kLeft, .marked = true};
  EXPECT_EQ(down({marked}).replicas, 0);
  EXPECT_EQ(down({marked}, 1).replicas, 0) << "it is being deleted";
  // Only as long as no other is marked.
  const auto other = down({marked, {.name = "n", .state = State::kInUse, .marked = true}});
  EXPECT_EQ(other.replicas, 2);
  EXPECT_EQ(other.unmark, Names{"n"});
}

TEST(ScaleRules, DemandAndJobsEndADrain) {
  const ScaleMachine marked{.name = "m", .state = State::kLeft, .marked = true};
  const auto demand = down({marked}, 0, {job(4)});
  EXPECT_EQ(undrained(demand), Names{"m"});
  EXPECT_EQ(demand.unmark, Names{"m"});
  EXPECT_EQ(demand.replicas, 1);
  const auto got_in = down(
      {{.name = "m", .state = State::kLeaving, .has_job = true}, {"n", State::kIdle, minutes{20}}});
  EXPECT_EQ(undrained(got_in), Names{"m"});
  EXPECT_NE(got_in.undrain.at("m"), demand.undrain.at("m"));
  ScaleMachine stays = marked;  // it has become a slurmctld's, or lost its hook
  stays.may_go = false;
  EXPECT_EQ(undrained(down({stays})), Names{"m"});
  EXPECT_EQ(down({stays}).unmark, Names{"m"});
  EXPECT_EQ(down({stays}).replicas, 1);
  // Demand after replicas was lowered: a machine more.
  EXPECT_EQ(down({marked}, 1, {job(4)}).replicas, 1);
  EXPECT_TRUE(down({marked, {"n", State::kInUse}}, 1).undrain.empty());
  // In a rollout there may be one more for hours.
  const ScaleMachine leaving{.name = "m", .state = State::kLeaving};
  const ScaleMachine in_use{"n", State::kInUse};
  EXPECT_EQ(undrained(down({leaving, in_use, in_use}, 1, {job(4)})), Names{"m"});
  EXPECT_TRUE(down({leaving, in_use}, 1).replicas == 1 && down({leaving, in_use}, 1).drain.empty());
}

TEST(ScaleRules, MarksForOthersWhoScale) {
  std::vector<ScaleMachine> machines{{.name = "busy", .state = State::kInUse, .marked = true}};
  for (int i = 0; i < 12; ++i) {
    machines.push_back({"m" + std::to_string(i), State::kIdle, minutes{20}});
  }
  auto others = group(13, machines);
  others.by = ScaledBy::kOther;
  const auto out = rule_scale({others}, {}, 100).groups[0];
  EXPECT_EQ(out.mark.size(), 10U);
  EXPECT_EQ(out.unmark, Names{"busy"});
  EXPECT_EQ(out.replicas, 13);
  EXPECT_TRUE(out.drain.empty());
  // Its queue is counted, and the number is left alone.
  others.machines = {{.name = "m", .state = State::kLeft, .marked = true},
                     {"n", State::kIdle, minutes{20}}};
  others.replicas = 2;
  const auto queue = rule_scale({others}, {job(20)}, 100).groups[0];
  EXPECT_EQ(queue.wanted, 5);
  EXPECT_EQ(queue.replicas, 2);
  EXPECT_EQ(queue.mark, Names{"n"});
  // A drain from when we scaled it ends.
  EXPECT_EQ(undrained(queue), Names{"m"});
  EXPECT_EQ(queue.unmark, Names{"m"});
}

TEST(ScaleRules, WhatIsNotScaledAnyMoreIsGivenBack) {
  auto given_back = group(4, {{.name = "left", .state = State::kLeft, .marked = true},
                              {.name = "leaving", .state = State::kLeaving},
                              {.name = "idle", .state = State::kIdle, .idle_for = minutes{20}},
                              {.name = "busy", .state = State::kInUse, .marked = true}});
  given_back.by = ScaledBy::kNone;
  given_back.partitions.clear();
  given_back.max = 0;
  const auto out = rule_scale({given_back}, {job(20)}, 100).groups[0];
  EXPECT_EQ(undrained(out), (Names{"leaving", "left"}));
  EXPECT_EQ(out.unmark, (Names{"left", "busy"}));
  EXPECT_EQ(out.replicas, 4);
  EXPECT_TRUE(out.drain.empty() && out.mark.empty());
}

// A MachineHealthCheck replaces it.
TEST(ScaleRules, ALateMachineIsNotWaitedForAndTakesItsPlace) {
  const ScaleMachine late{"m", State::kLate};
  auto few = group(1, {late});
  few.max = 2;
  const auto out = rule_scale({few}, {job(4), job(4), job(4)}, 100).groups[0];
  EXPECT_EQ(out.wanted, 2);
  EXPECT_EQ(out.replicas, 2);
  EXPECT_EQ(down({late}).replicas, 1);
  EXPECT_TRUE(down({late}).drain.empty());
}

// A site of Slurm and Cluster API. Any step may be lost, and facts may be old.
class World {
 public:
  explicit World(unsigned seed) : random_(seed) {
    for (const int i : {0, 1}) {
      groups_.push_back(group(0));
      groups_.back().name = std::to_string(i);
      groups_.back().min = pick(3);
      groups_.back().max = groups_.back().min + 2 + pick(5);
      groups_.back().idle_after = Duration{std::chrono::minutes{3}};
    }
  }

  void run() {
    for (int minute = 0; minute < 600; ++minute) {
      const bool quiet = minute >= 400;
      now_ = minute;
      if (!quiet && pick(4) == 0) {
        jobs_.push_back({.cpus = 1 + pick(4), .nodes = 1 + pick(2), .length = 1 + pick(20)});
      }
      slurm();
      cluster_api(quiet);
      observe(quiet);
      if (quiet || pick(5) != 0) {
        act(quiet);
      }
      check();
    }
    for (const auto& one : jobs_) {
      EXPECT_TRUE(one.done);
    }
    for (const auto& one : groups_) {
      EXPECT_EQ(one.replicas, one.min);
      EXPECT_EQ(std::ranges::count(machines_, one.name, &Machine::group), one.min);
    }
  }

 private:
  struct Machine {
    std::string name, group;
    int boots_at = 0, last_job = 0;
    bool drained = false, marked = false;
    int job = -1;
    bool seen_empty = false;  // a squeue after a dump that showed the drain
  };
  struct Job {
    std::int64_t cpus, nodes;
    int length;
    int ends = -1;
    bool done = false;
  };
  int pick(int below) { return std::uniform_int_distribution<int>{0, below - 1}(random_); }

  void slurm() {
    for (auto& machine : machines_) {
      if (machine.job >= 0) {
        machine.last_job = now_;
        Job& job = jobs_[static_cast<std::size_t>(machine.job)];
        if (now_ >= job.ends) {
          job.done = true;
          machine.job = -1;
        }
      }
    }
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      std::vector<Machine*> free;
      for (auto& machine : machines_) {
        if (machine.job < 0 && !machine.drained && machine.boots_at <= now_) {
          free.push_back(&machine);
        }
      }
      if (jobs_[i].ends < 0 && free.size() >= static_cast<std::size_t>(jobs_[i].nodes)) {
        jobs_[i].ends = now_ + jobs_[i].length;
        for (std::int64_t n = 0; n < jobs_[i].nodes; ++n) {
          free[static_cast<std::size_t>(n)]->job = static_cast<int>(i);
          free[static_cast<std::size_t>(n)]->last_job = now_;
        }
      }
    }
  }

  void cluster_api(bool quiet) {
    for (const auto& group : groups_) {
      if (!quiet && pick(3) == 0) {
        continue;
      }
      auto have = std::ranges::count(machines_, group.name, &Machine::group);
      for (; have < group.replicas; ++have) {
        machines_.push_back({.name = "m" + std::to_string(++made_),
                             .group = group.name,
                             .boots_at = now_ + 1 + pick(5),
                             .last_job = now_});
      }
      for (; have > group.replicas; --have) {
        auto gone = std::ranges::find_if(
            machines_, [&](const auto& m) { return m.group == group.name && m.marked; });
        ASSERT_NE(gone, machines_.end()) << "Cluster API would choose any";
        EXPECT_LT(gone->job, 0);
        EXPECT_GE(now_ - gone->last_job, 3);
        machines_.erase(gone);
      }
    }
  }

  void observe(bool quiet) {
    if (!quiet && pick(4) == 0) {
      return;  // what is known is old
    }
    seen_ = groups_;
    pending_.clear();
    for (const auto& one : jobs_) {
      if (one.ends < 0) {
        pending_.push_back(job(one.cpus * one.nodes, one.nodes));
      }
    }
    for (auto& machine : machines_) {
      ScaleMachine out{.name = machine.name, .marked = machine.marked};
      out.has_job = machine.job >= 0;
      out.idle_for = std::chrono::minutes{now_ - machine.last_job};
      out.state = machine.drained           ? machine.seen_empty ? State::kLeft : State::kLeaving
                  : machine.job >= 0        ? State::kInUse
                  : machine.boots_at > now_ ? State::kBooting
                                            : State::kIdle;
      machine.seen_empty = machine.drained && machine.job < 0;
      auto group = std::ranges::find(seen_, machine.group, &ScaleGroup::name);
      group->machines.push_back(std::move(out));
    }
  }

  template <class Change>
  void each(const Names& names, bool quiet, const Change& change) {
    for (const auto& name : names) {
      auto found = std::ranges::find(machines_, name, &Machine::name);
      if (found != machines_.end() && (quiet || pick(6) != 0)) {
        change(*found);
      }
    }
  }

  void act(bool quiet) {
    if (seen_.empty()) {
      return;
    }
    const auto rulings = rule_scale(seen_, pending_, 3).groups;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const ScaleRuling& ruling = rulings[i];
      // resourceVersion and a fresh read of the marked Machines.
      const bool is_current = groups_[i].replicas == seen_[i].replicas &&
                              std::ranges::count(machines_, groups_[i].name, &Machine::group) ==
                                  static_cast<long>(seen_[i].machines.size());
      if (is_current && (quiet || pick(6) != 0)) {
        if (ruling.replicas < groups_[i].replicas) {
          EXPECT_GE(ruling.replicas, groups_[i].min);
        }
        EXPECT_LE(ruling.replicas, std::max(groups_[i].max, groups_[i].replicas));
        const bool lowers = ruling.replicas < groups_[i].replicas;
        const auto marks = std::ranges::count_if(machines_, [&](const auto& m) {
          return m.group == groups_[i].name && m.marked && m.drained && m.job < 0;
        });
        if (!lowers || marks >= groups_[i].replicas - ruling.replicas) {
          groups_[i].replicas = ruling.replicas;
        }
      }
      each(ruling.drain, quiet, [](auto& m) { m.drained = true; });
      each(ruling.unmark, quiet, [](auto& m) { m.marked = false; });
      each(undrained(ruling), quiet, [](auto& m) { m.drained = m.seen_empty = false; });
      each(ruling.mark, quiet, [](auto& m) { m.marked = true; });
    }
  }

  void check() const {
    for (const auto& one : groups_) {
      EXPECT_LE(one.replicas, one.max);
    }
  }

  std::mt19937 random_;
  std::vector<ScaleGroup> groups_, seen_;
  std::vector<PendingJob> pending_;
  std::vector<Machine> machines_;
  std::vector<Job> jobs_;
  int now_ = 0, made_ = 0;
};

TEST(ScaleRules, WhateverHappens) {
  for (unsigned seed = 0; seed < 50 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World{seed}.run();
  }
}

}  // namespace scale_rules_test
}  // namespace slurmlet::op
