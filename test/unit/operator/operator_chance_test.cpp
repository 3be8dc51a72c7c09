// Two Slurm clusters at one API server, each with its operator, under random events: watches lag or
// hang, writes conflict, operators are killed and lose the lead, slurmctld and the API servers
// fail, hosts are off for long, and Slurm hides nodes and jobs. At all times:
//   - no hook is removed while any Slurm node of that host has a job,
//   - no drain of an administrator is changed, and none is ended while the Node is cordoned,
//   - no operator touches an object of another cluster,
// and when all has recovered
//   - every cordoned Node is drained, and every deleted Machine without jobs is released,
//   - no drain, DOWN, note or mark of ours is left that is not wanted any more.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"
#include "operator/operator_loop.h"

namespace slurmlet::op {
namespace operator_chance_test {

namespace names = node::vocabulary;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using NodeEvent = kube::WatchEvent<kube::SiteNode>::Type;
using MachineEvent = kube::WatchEvent<kube::Machine>::Type;

enum class Naming : std::uint8_t {
  kSame,         // Node and Slurm node have the same name
  kLonger,       // the Node's name has a domain
  kByAddresses,  // only the Machine's addresses match
};

struct Host {
  std::string name;
  std::string cluster;
  std::vector<std::string> slurm;  // its Slurm nodes; the first is the daemon's
  bool dynamic = false;
  Naming naming = Naming::kSame;
  int generation = 0;
  bool off = false;
  std::string node() const {
    return naming == Naming::kLonger ? name + ".site"
           : naming == Naming::kSame ? name
                                     : "k-" + name;
  }
  std::string machine() const { return "m" + std::to_string(generation) + "-of-" + name; }
};

// One Slurm cluster and its operator.
struct Cluster {
  FakeSlurm slurm;
  std::unique_ptr<fakes::FakeWatch<kube::SiteNode>> nodes;
  std::unique_ptr<fakes::FakeWatch<kube::Machine>> machines;
  std::unique_ptr<Leader> leader;
  std::unique_ptr<OperatorLoop> loop;
  SteadyTime next{};
  int returns = 1;         // ReturnToService
  bool accounting = true;  // slurmctld clears the Reason when a drain ends
};

class World : public ::testing::Test {
 protected:
  World() {
    for (const char* name : {"a", "b"}) {
      clusters_[name];
    }
    hosts_ = {{"h1", "a", {"h1"}},       {"h2", "a", {"h2", "h2b"}},
              {"h3", "a", {"h3"}, true}, {"h4", "a", {"h4"}, false, Naming::kLonger},
              {"h5", "b", {"h5"}},       {"h6", "b", {"s6"}, false, Naming::kByAddresses}};
    site_.before_annotate = [this](const std::string& node) { of_this_cluster(node); };
    api_.before_release = [this](const kube::Machine& machine) { check_release(machine); };
    for (auto& [name, cluster] : clusters_) {
      watch_over(name, cluster);
    }
  }

  Cluster& of(const Host& host) { return clusters_.at(host.cluster); }
  FakeSlurm& slurm_of(const Host& host) { return of(host).slurm; }
  const Host* host_of_node(const std::string& node) const {
    const auto found = std::find_if(hosts_.begin(), hosts_.end(),
                                    [&](const Host& host) { return host.node() == node; });
    return found == hosts_.end() ? nullptr : &*found;
  }
  const Host* host_of_slurm(const std::string& slurm) const {
    const auto found = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& host) {
      return std::count(host.slurm.begin(), host.slurm.end(), slurm) != 0;
    });
    return found == hosts_.end() ? nullptr : &*found;
  }
  bool is_cordoned(const Host& host) const {
    const auto node = site_.nodes.find(host.node());
    return node != site_.nodes.end() && node->second.unschedulable;
  }

  // --- the invariants

  void of_this_cluster(const std::string& node) {
    const Host* host = host_of_node(node);
    EXPECT_TRUE(host == nullptr || host->cluster == stepping_)
        << what_ << ": the operator of " << stepping_ << " wrote to " << node;
  }
  void check_release(const kube::Machine& machine) {
    ++released_;
    EXPECT_TRUE(machine.deleted_at) << what_;
    for (Host& host : hosts_) {
      if (host.machine() != machine.name) {
        continue;
      }
      EXPECT_EQ(host.cluster, stepping_) << what_ << ": another cluster's Machine was released";
      for (const auto& name : host.slurm) {
        const auto node = slurm_of(host).nodes.find(name);
        EXPECT_FALSE(slurm_of(host).busy(name)) << what_ << ": a job runs on " << name;
        // The operator cannot know of an undrain after the last dump.
        const bool is_drained =
            node != slurm_of(host).nodes.end() && node->second.flags.contains("DRAIN");
        EXPECT_TRUE(is_drained || clock_.now().steady - resumed_at_ < seconds{20})
            << what_ << ": a job may come on " << name;
      }
    }
  }
  void watch_over(const std::string& name, Cluster& cluster) {
    cluster.slurm.before_update = [this, name, &cluster](const std::string& slurm,
                                                         const std::string& state) {
      const FakeNode& node = cluster.slurm.nodes.at(slurm);
      const Host& host = *host_of_slurm(slurm);
      EXPECT_EQ(name, stepping_) << what_;
      EXPECT_FALSE(node.flags.contains("DRAIN") && node.reason == kAdministrators)
          << what_ << ": an administrator's drain of " << slurm << " was changed";
      const bool ends = state == "undrain" || state == "resume" || state == "fail";
      EXPECT_FALSE(ends && slurm == host.slurm.front() && is_cordoned(host))
          << what_ << ": " << slurm << " was undrained under a cordon";
      EXPECT_FALSE(state == "resume" && host.off) << what_ << ": nobody is there";
    };
    cluster.slurm.after_update = [&cluster](const std::string& slurm, const std::string& state) {
      if (cluster.accounting && (state == "undrain" || state == "resume")) {
        FakeNode& node = cluster.slurm.nodes.at(slurm);
        node.reason = node.base == "DOWN" ? node.reason : "";
      }
    };
    cluster.slurm.before_end = [this, &cluster](const std::string& id) {
      const Host& host = *host_of_slurm(cluster.slurm.jobs.at(id).node);
      const auto machine = api_.machines.find(host.machine());
      EXPECT_TRUE(machine != api_.machines.end() && machine->second.deleted_at &&
                  machine->second.drain_policy == "now")
          << what_ << ": a job was ended that should not be";
    };
  }

  // --- what people and Cluster API do

  void start(const std::string& name) {
    Cluster& cluster = clusters_.at(name);
    cluster.loop.reset();
    cluster.nodes = std::make_unique<fakes::FakeWatch<kube::SiteNode>>();
    cluster.machines = std::make_unique<fakes::FakeWatch<kube::Machine>>();
    cluster.nodes->list = [this] { return values(site_.nodes); };
    cluster.machines->list = [this] { return values(api_.machines); };
    cluster.leader = std::make_unique<Leader>(
        leases_, leader_lease(name), name + std::to_string(++started_), [] { return 0.5; }, clock_);
    OperatorSettings settings;
    settings.dump = {{}, seconds{15}, name};
    cluster.loop = std::make_unique<OperatorLoop>(
        settings,
        OperatorContext{clock_, *cluster.nodes, site_, *cluster.leader, events_, *cluster.machines,
                        api_, events_, [this](SteadyTime) { return clock_.now().wall; },
                        node_leases_, node_api_,
                        [&cluster] { return std::make_unique<FakeSlurmRunner>(cluster.slurm); }},
        std::make_unique<slurm::ScontrolDump>(slurm::ClientSettings{},
                                              std::make_unique<FakeSlurmRunner>(cluster.slurm)),
        [] { return 0.5; });
    cluster.next = clock_.now().steady;
  }
  void register_node(Host& host) {
    site_.nodes[host.node()] =
        site_node(host.node(), "uid-of-" + host.machine(), host.slurm.front(), host.cluster,
                  "metal3://ns/" + host.name + "/" + host.machine());
    kube::Machine& machine = api_.machines.at(host.machine());
    machine.node = host.node();
    machine.resource_version += "+";
  }
  void next_machine(Host& host) {
    ++host.generation;
    kube::Machine& one = api_.machines[host.machine()];
    one = hooked_machine(host.machine(), "");
    one.provisioned = true;
    one.provider_id = "metal3://ns/" + host.name + "/" + host.machine();
    one.addresses = {"10.0.0." + host.name.substr(1), host.name + ".site"};
    power(host, true);
    register_node(host);
    feed_watch(host);
  }
  void feed_watch(const Host& host) {
    for (auto& [name, cluster] : clusters_) {
      const auto node = site_.nodes.find(host.node());
      const auto machine = api_.machines.find(host.machine());
      if (node != site_.nodes.end()) {
        cluster.nodes->feed(NodeEvent::kModified, {node->second});
      }
      if (machine != api_.machines.end()) {
        cluster.machines->feed(MachineEvent::kModified, {machine->second});
      }
      cluster.next = clock_.now().steady;
    }
  }
  void finish(Host& host) {
    for (auto& [name, cluster] : clusters_) {
      cluster.machines->feed(MachineEvent::kDeleted, {api_.machines.at(host.machine())});
      if (const auto node = site_.nodes.find(host.node()); node != site_.nodes.end()) {
        cluster.nodes->feed(NodeEvent::kDeleted, {node->second});
      }
    }
    api_.machines.erase(host.machine());
    site_.nodes.erase(host.node());
    power(host, false);
  }
  void delete_machine(Host& host, const char* policy) {
    kube::Machine& machine = api_.machines.at(host.machine());
    machine.drain_policy = policy;
    machine.deleted_at = clock_.now().wall;
    machine.resource_version += "+";
  }

  // Off for longer than SlurmdTimeout, or on again, as slurmctld 24.11 handles it.
  void power(Host& host, bool on) {
    Cluster& cluster = of(host);
    host.off = !on;
    for (const auto& name : host.slurm) {
      FakeNode& node = cluster.slurm.nodes[name];
      node.host = host.name;
      node.address = "10.0.0." + host.name.substr(1);
      if (host.dynamic) {
        node.flags.insert("DYNAMIC_NORM");
      }
      if (on) {
        node.flags.erase("NOT_RESPONDING");
        const bool returns =
            cluster.returns == 2 || (cluster.returns == 1 && node.reason == "Not responding");
        if (node.base == "DOWN" && returns) {
          node.base = "IDLE";
          node.reason = node.flags.contains("DRAIN") ? node.reason : "";
        }
        continue;
      }
      std::erase_if(cluster.slurm.jobs, [&](const auto& job) { return job.second.node == name; });
      node.base = "DOWN";
      node.flags.insert("NOT_RESPONDING");
      if (node.reason.empty()) {
        node.reason = "Not responding";
      } else if (node.reason.find("Not responding") == std::string::npos) {
        node.reason += " : Not responding";
      }
    }
  }
  // A Slurm administrator ends their own drain.
  void resume(const Host& host) {
    for (const auto& name : host.slurm) {
      const auto found = slurm_of(host).nodes.find(name);
      if (found == slurm_of(host).nodes.end() || host.off) {
        continue;
      }
      FakeNode& node = found->second;
      const bool is_his = !is_own_drain(node.reason);
      resumed_at_ = clock_.now().steady;
      if (is_his) {
        node.flags.erase("DRAIN");
        node.flags.erase("FAIL");
        node.base = node.base == "DOWN" ? "IDLE" : node.base;
        node.reason = of(host).accounting ? "" : node.reason;
      }
    }
  }

  void random_event(Host& host, std::mt19937& chance) {
    const auto machine = api_.machines.find(host.machine());
    const bool lives = machine != api_.machines.end() && !machine->second.deleted_at;
    FakeSlurm& slurm = slurm_of(host);
    const std::string& name = host.slurm[chance() % host.slurm.size()];
    const auto node = slurm.nodes.find(name);
    const bool known = node != slurm.nodes.end();
    switch (chance() % 20) {
      case 0:
      case 1:
        slurm.submit(std::to_string(++jobs_), name, chance() % 2 == 0);
        break;
      case 2:
      case 3:
        end_a_job(slurm, name);
        break;
      case 4:
        if (lives) {
          const char* const policies[] = {"wait", "now", "", "deadline=100h"};
          delete_machine(host, policies[chance() % 4]);
        }
        break;
      case 5:
      case 6:
        if (site_.nodes.contains(host.node())) {
          bool& cordoned = site_.nodes.at(host.node()).unschedulable;
          cordoned = !cordoned;
        }
        break;
      case 7:
        if (known) {
          node->second.flags.insert("DRAIN");
          node->second.reason = kAdministrators;
        }
        break;
      case 8:
        resume(host);
        break;
      case 9:
        if (known && !node->second.flags.contains("DRAIN")) {
          chance() % 2 == 0 ? (void)(node->second.base = "DOWN")
                            : (void)node->second.flags.insert("FAIL");
          node->second.reason = "bad fan";
        }
        break;
      case 10:
        start(host.cluster);
        break;
      case 11:
        slurm.away = !slurm.away;
        break;
      case 12:
        api_.fail_always(chance() % 2 == 0 ? std::optional{Error{Code::kUnavailable, "no route"}}
                                           : std::nullopt);
        break;
      case 13:
        site_.fail_always(chance() % 2 == 0 ? std::optional{Error{Code::kTimeout, "slow"}}
                                            : std::nullopt);
        break;
      case 14:
        if (machine != api_.machines.end() && !machine->second.hooked) {
          finish(host);
          next_machine(host);
        }
        break;
      case 15:
        power(host, host.off);
        break;
      case 16:  // 409
        if (machine != api_.machines.end()) {
          machine->second.resource_version += "+";
        }
        break;
      case 17:
        slurm.private_data = chance() % 2 == 0 ? "jobs" : "none";
        break;
      case 18:
        slurm.requeued_from = chance() % 2 == 0 ? name : "";
        break;
      default:  // the Node is deleted, and its slurmlet registers it again without the cordon
        if (lives && !host.off) {
          register_node(host);
          site_.nodes.at(host.node()).uid += "+";
        }
        break;
    }
    if (chance() % 3 != 0) {  // otherwise its watch hangs
      feed_watch(host);
    }
  }
  static void end_a_job(FakeSlurm& slurm, const std::string& node) {
    const auto job = std::find_if(slurm.jobs.begin(), slurm.jobs.end(),
                                  [&](const auto& entry) { return entry.second.node == node; });
    if (job == slurm.jobs.end()) {
      return;
    }
    if (job->second.completing) {
      slurm.jobs.erase(job);
    } else {
      job->second.completing = true;
    }
  }

  void run(Duration time) {
    const SteadyTime end = clock_.now().steady + time;
    while (clock_.now().steady < end) {
      SteadyTime next = end;
      for (auto& [name, cluster] : clusters_) {
        if (cluster.next <= clock_.now().steady) {
          stepping_ = name;
          cluster.next = cluster.loop->step();
        }
        next = std::min(next, cluster.next);
      }
      clock_.advance(std::clamp<Duration>(next - clock_.now().steady, milliseconds{1},
                                          end - clock_.now().steady + milliseconds{1}));
    }
  }

  // Ends all failures.
  void quiet() {
    api_.fail_always(std::nullopt);
    site_.fail_always(std::nullopt);
    for (Host& host : hosts_) {
      slurm_of(host).away = false;
      slurm_of(host).private_data = "none";
      power(host, true);
      feed_watch(host);
    }
    run(minutes{3});
    for (auto& [name, cluster] : clusters_) {
      cluster.slurm.jobs.clear();
    }
    run(minutes{5});
    for (Host& host : hosts_) {
      const kube::Machine machine = api_.machines.at(host.machine());
      EXPECT_EQ(machine.deleted_at.has_value(), !machine.hooked) << what_ << " " << host.name;
      if (is_cordoned(host)) {
        const FakeNode& node = slurm_of(host).nodes.at(host.slurm.front());
        EXPECT_TRUE(host.naming == Naming::kByAddresses || node.flags.contains("DRAIN"))
            << what_ << " " << host.name << " is cordoned and in service";
      }
      if (machine.deleted_at) {
        finish(host);
        next_machine(host);
      }
      site_.nodes.at(host.node()).unschedulable = false;
      feed_watch(host);
    }
    run(minutes{4});
    for (const Host& host : hosts_) {
      check_in_service(host);
      resume(host);
    }
  }
  void check_in_service(const Host& host) {
    const auto& annotations = site_.nodes.at(host.node()).annotations;
    EXPECT_FALSE(annotations.contains(names::kDetach)) << what_ << " " << host.name;
    EXPECT_FALSE(annotations.contains(names::kDrain)) << what_ << " " << host.name;
    for (const auto& name : host.slurm) {
      const auto found = slurm_of(host).nodes.find(name);
      if (found == slurm_of(host).nodes.end()) {
        continue;
      }
      const FakeNode& node = found->second;
      const bool is_out = node.flags.contains("DRAIN") || node.base == "DOWN";
      EXPECT_FALSE(is_out && is_own_drain(node.reason))
          << what_ << " " << name << " is " << node.state() << ": " << node.reason;
    }
  }

  static constexpr const char* kAdministrators = "bad dimm";

  fakes::FakeClock clock_;
  FakeSite site_;
  FakeMachines api_;
  fakes::FakeLeaseApi leases_, node_leases_;
  fakes::FakeNodeApi node_api_;
  fakes::FakeEventApi event_api_;
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  std::map<std::string, Cluster> clusters_;
  std::vector<Host> hosts_;
  std::string stepping_, what_;
  int jobs_ = 0, started_ = 0;
  std::size_t released_ = 0;
  SteadyTime resumed_at_{};  // by an administrator
};

TEST_F(World, KeepsItsPromisesWhateverComes) {
  for (const auto& [name, cluster] : clusters_) {
    start(name);
  }
  for (Host& host : hosts_) {
    next_machine(host);
  }
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 chance{seed};
    what_ = "seed " + std::to_string(seed);
    for (auto& [name, cluster] : clusters_) {
      cluster.returns = static_cast<int>(chance() % 3);
      cluster.accounting = chance() % 3 != 0;
    }
    for (int i = 0; i < 150; ++i) {
      random_event(hosts_[chance() % hosts_.size()], chance);
      run(milliseconds{500 + chance() % 15000});
    }
    quiet();
    if (HasFailure()) {
      break;
    }
  }
  EXPECT_GT(released_, 100U);
}

}  // namespace operator_chance_test
}  // namespace slurmlet::op
