#include "operator/rules/health_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/rfc3339.h"

namespace slurmlet::op {
namespace health_rules_test {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr WallTime kNow{std::chrono::seconds{1'790'000'000}};

const HealthPolicy kPolicy{{{"GPUHealthy", "False", minutes{2}}, {"KernelDeadlock", "True", {}}}};

node::ObservedCondition condition(const std::string& type, const std::string& status,
                                  Duration lasts, const std::string& message = "") {
  return {{type, status, "Why", message},
          rfc3339(kNow - std::chrono::duration_cast<WallTime::duration>(lasts))};
}

struct Host {
  KubeNode node;
  SlurmNode slurm;
  MachineOf machine = MachineOf::kNone;
};

Host host(const std::string& name, std::vector<node::ObservedCondition> conditions,
          const std::string& base = "IDLE", std::set<std::string> flags = {},
          const std::string& reason = "") {
  Host out;
  out.node.name = out.node.slurm_node = name;
  out.node.uid = "uid-" + name;
  out.node.conditions = std::move(conditions);
  out.node.conditions.push_back(condition("Ready", "True", minutes{60}));
  out.slurm = {name, name, {base, std::move(flags)}, reason, "", "", {"p"}};
  return out;
}

// "n1 drain REASON", "n1 undrain", "n1 limited".
std::vector<std::string> rule(const std::vector<Host>& hosts,
                              const HealthPolicy& policy = kPolicy) {
  std::vector<HealthFacts> facts;
  std::map<std::string, SlurmNode> all;
  for (const Host& one : hosts) {
    facts.push_back({&one.node, &one.slurm, one.machine});
    all[one.slurm.name] = one.slurm;
  }
  std::vector<std::string> out;
  for (const auto& ruling : rule_health(policy, facts, all, kNow)) {
    const std::string what = ruling.action == DrainAction::kDrain     ? "drain " + ruling.reason
                             : ruling.action == DrainAction::kUndrain ? "undrain"
                             : ruling.action == DrainAction::kResume  ? "resume"
                                                                      : "limited";
    out.push_back(ruling.facts->slurm->name + " " + what);
  }
  return out;
}

using Strings = std::vector<std::string>;

const std::string kReason = "slurmlet: GPUHealthy: 1 of 8 GPUs missing [uid-n1]";

TEST(HealthRules, DrainsWhatIsBadForLongEnough) {
  const auto bad = condition("GPUHealthy", "False", minutes{3}, "1 of 8 GPUs missing");
  const Strings drained{"n1 drain " + kReason}, nothing;
  struct Case {
    const char* what;
    Host host;
    Strings want;
  };
  Host cordoned = host("n1", {bad}), deleting = host("n1", {bad}), unknown = host("n1", {bad});
  cordoned.node.unschedulable = true;
  deleting.machine = MachineOf::kDeleting;
  unknown.node.conditions.front().last_transition_time = "";
  const std::vector<Case> cases{
      {"idle", host("n1", {bad}), drained},
      {"with jobs", host("n1", {bad}, "MIXED"), drained},
      {"not for long enough", host("n1", {condition("GPUHealthy", "False", minutes{1})}), nothing},
      {"begins in the future", host("n1", {condition("GPUHealthy", "False", -minutes{5})}),
       nothing},
      {"since when is not known", unknown, nothing},
      {"Unknown is not False", host("n1", {condition("GPUHealthy", "Unknown", minutes{9})}),
       nothing},
      {"good", host("n1", {condition("GPUHealthy", "True", minutes{9})}), nothing},
      {"absent", host("n1", {}), nothing},
      {"of no rule", host("n1", {condition("DiskPressure", "True", minutes{9})}), nothing},
      {"the worst of two", host("n1", {condition("KernelDeadlock", "True", minutes{1}), bad}),
       drained},
      {"no message",
       host("n1", {condition("KernelDeadlock", "True", seconds{0})}),
       {"n1 drain slurmlet: KernelDeadlock: Why [uid-n1]"}},
      {"a message that could be read as a record",
       host("n1", {condition("KernelDeadlock", "True", {}, "a=b\n[x]")}),
       {"n1 drain slurmlet: KernelDeadlock: a?b??x? [uid-n1]"}},
      {"cordoned", cordoned, nothing},
      {"its Machine is being deleted", deleting, nothing},
      {"an administrator's drain", host("n1", {bad}, "IDLE", {"DRAIN"}, "bad dimm"), nothing},
      {"a cordon that has ended", host("n1", {bad}, "IDLE", {"DRAIN"}, "slurmlet: cordoned"),
       drained},
      {"of a deleted Machine",
       host("n1", {bad}, "IDLE", {"DRAIN"}, "slurmlet: machine deleted [u]"), nothing},
      {"drained already", host("n1", {bad}, "IDLE", {"DRAIN"}, kReason), nothing},
      {"down", host("n1", {bad}, "DOWN", {}, "fire"), nothing},
      {"failing", host("n1", {bad}, "IDLE", {"FAIL"}, "fan"), nothing},
      {"powered down", host("n1", {bad}, "IDLE", {"POWERED_DOWN"}), nothing},
      {"rebooting", host("n1", {bad}, "IDLE", {"REBOOT_ISSUED"}), nothing},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    EXPECT_EQ(rule({test.host}), test.want);
  }
}

TEST(HealthRules, EndsItsOwnDrainAfterTenGoodMinutes) {
  const auto good = condition("GPUHealthy", "True", minutes{10});
  const Strings undrained{"n1 undrain"}, nothing;
  const auto drained = [](std::vector<node::ObservedCondition> conditions,
                          const std::string& reason = kReason) {
    return host("n1", std::move(conditions), "IDLE", {"DRAIN"}, reason);
  };
  Host cordoned = drained({good}), not_ready = drained({good}), silent = drained({good}),
       back = drained({good});
  cordoned.node.unschedulable = true;
  not_ready.node.conditions.back().condition.status = "Unknown";
  silent.slurm.state = {"DOWN", {"DRAIN", "NOT_RESPONDING"}};
  back.slurm.state = {"DOWN", {"DRAIN"}};
  struct Case {
    const char* what;
    Host host;
    Strings want;
  };
  const std::vector<Case> cases{
      {"good", drained({good}), undrained},
      {"of another Node of this host", drained({good}, "slurmlet: GPUHealthy: x [uid-old]"),
       undrained},
      {"slurmctld added to it", drained({good}, kReason + " : Not responding"), undrained},
      {"not for long enough", drained({condition("GPUHealthy", "True", minutes{9})}), nothing},
      {"bad for less than drains", drained({condition("GPUHealthy", "False", seconds{1})}),
       nothing},
      {"Unknown", drained({condition("GPUHealthy", "Unknown", minutes{99})}), nothing},
      {"absent", drained({}), nothing},
      {"another condition is bad", drained({good, condition("KernelDeadlock", "True", {})}),
       nothing},
      {"another condition comes and goes",
       drained({good, condition("KernelDeadlock", "False", minutes{1})}), nothing},
      {"both are good", drained({good, condition("KernelDeadlock", "False", minutes{10})}),
       undrained},
      {"not of drainOn any more", drained({good}, "slurmlet: OldType: x [uid-n1]"), nothing},
      {"an administrator's", drained({good}, "GPUHealthy: x"), nothing},
      {"an administrator wrote more", drained({good}, kReason + ", ticket 7"), nothing},
      {"cordoned", cordoned, nothing},
      {"not Ready", not_ready, nothing},
      {"slurmd does not respond", silent, nothing},
      {"slurmd is back", back, {"n1 resume"}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.what);
    EXPECT_EQ(rule({test.host}), test.want);
  }
}

TEST(HealthRules, DrainsNoMoreThanItsPartOfAPartition) {
  std::vector<Host> hosts;
  for (int i = 10; i < 40; ++i) {  // 30 nodes, 10 %
    hosts.push_back(host("n" + std::to_string(i), {condition("GPUHealthy", "False", minutes{i})}));
  }
  EXPECT_EQ(rule(hosts).size(), 30U);
  auto rulings = rule(hosts);
  EXPECT_EQ(
      std::ranges::count_if(rulings, [](const auto& one) { return one.find("drain") != one.npos; }),
      3);
  EXPECT_EQ(rulings.front().substr(0, 9), "n39 drain");  // bad for longest
  for (const int drained : {3, 4}) {
    hosts[static_cast<std::size_t>(drained)].slurm.state.flags = {"DRAIN"};
    hosts[static_cast<std::size_t>(drained)].slurm.reason = kReason;
  }
  rulings = rule(hosts);
  EXPECT_EQ(
      std::ranges::count_if(rulings, [](const auto& one) { return one.find("drain") != one.npos; }),
      1);
  // A node of two partitions must fit into both; an unknown partition has no room.
  hosts.assign(1, host("n1", {condition("KernelDeadlock", "True", {})}));
  hosts.push_back(host("n2", {}, "IDLE", {"DRAIN"}, kReason));
  EXPECT_EQ(rule(hosts), Strings{"n1 limited"});
  hosts[1].slurm.partitions = {"q"};
  EXPECT_EQ(rule(hosts).front().substr(0, 8), "n1 drain");
  hosts[0].slurm.partitions = {"p", "q"};
  EXPECT_EQ(rule(hosts), Strings{"n1 limited"});
  hosts[0].slurm.partitions.clear();
  EXPECT_EQ(rule(hosts), Strings{"n1 limited"});
}

TEST(HealthRules, KnowsItsReason) {
  EXPECT_EQ(health_type(kReason), "GPUHealthy");
  EXPECT_EQ(health_type("slurmlet: example.com/Disk: x: y [u] : reboot complete"),
            "example.com/Disk");
  for (const char* other : {"", "bad dimm", "slurmlet: cordoned", "slurmlet: cordoned [u], was: x",
                            "slurmlet: machine deleted [u]", "slurmlet: undrained",
                            "slurmlet: cordoned : Not responding", "slurmlet: GPUHealthy: x",
                            "slurmlet: GPUHealthy: x [u] y"}) {
    EXPECT_EQ(health_type(other), "") << other;
  }
}

// Conditions flap, administrators drain and resume, probes go bad together. At all times no more
// than the limit is drained for health, no administrator's drain is changed; at the end what is
// good is in service, and what is bad is drained as far as the limit permits.
TEST(HealthRules, KeepsItsPromisesWhateverComes) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 chance{seed};
    HealthPolicy policy = kPolicy;
    policy.max_unhealthy = 20;
    std::vector<Host> hosts;
    for (int i = 0; i < 20; ++i) {
      hosts.push_back(host("n" + std::to_string(i), {condition("GPUHealthy", "True", {})}));
      hosts.back().slurm.partitions = {i % 2 == 0 ? "even" : "odd", "all"};
    }
    WallTime now = kNow;
    const auto is_ours = [](const Host& one) { return is_drained_for_health(one.slurm); };
    const auto turn = [&] {
      std::vector<HealthFacts> facts;
      std::map<std::string, SlurmNode> all;
      for (const Host& one : hosts) {
        facts.push_back({&one.node, &one.slurm, one.machine});
        all[one.slurm.name] = one.slurm;
      }
      for (const auto& ruling : rule_health(policy, facts, all, now)) {
        auto& slurm = std::ranges::find_if(hosts, [&](const Host& one) {
                        return &one.slurm == ruling.facts->slurm;
                      })->slurm;
        EXPECT_NE(slurm.reason, "bad dimm");
        if (ruling.action == DrainAction::kDrain) {
          slurm.state.flags = {"DRAIN"};
          slurm.reason = ruling.reason;
        } else if (is_final(ruling.action)) {
          EXPECT_EQ(ruling.facts->node->conditions.front().condition.status, "True");
          slurm.state.flags.clear();
          slurm.reason.clear();
        }
      }
      for (const char* partition : {"even", "odd", "all"}) {
        const auto in = [&](const Host& one) {
          return is_ours(one) && std::ranges::count(one.slurm.partitions, partition) > 0;
        };
        EXPECT_LE(std::ranges::count_if(hosts, in), *partition == 'a' ? 4 : 2) << partition;
      }
    };
    for (int i = 0; i < 200; ++i) {
      Host& one = hosts[chance() % hosts.size()];
      auto& first = one.node.conditions.front();
      switch (chance() % 5) {
        case 0:
          one.slurm.state.flags = {"DRAIN"};
          one.slurm.reason = "bad dimm";
          break;
        case 1:
          if (one.slurm.reason == "bad dimm") {
            one.slurm.state.flags.clear();
            one.slurm.reason.clear();
          }
          break;
        default: {
          const char* const states[] = {"True", "False", "Unknown"};
          first.condition.status = states[chance() % 3];
          first.last_transition_time = rfc3339(now);
        }
      }
      now += seconds{chance() % 120};
      turn();
    }
    for (Host& one : hosts) {
      one.node.conditions.front() = condition("GPUHealthy", "True", {});
      one.node.conditions.front().last_transition_time = rfc3339(now);
    }
    hosts[3].node.conditions.front().condition.status = "False";
    now += minutes{11};
    turn();
    turn();
    for (const Host& one : hosts) {
      const bool is_bad = &one == &hosts[3] && one.slurm.reason != "bad dimm";
      EXPECT_EQ(is_ours(one), is_bad) << one.slurm.name << ": " << one.slurm.reason;
    }
  }
}

}  // namespace health_rules_test
}  // namespace slurmlet::op
