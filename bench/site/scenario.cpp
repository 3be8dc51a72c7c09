#include "scenario.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <stdexcept>

namespace slurmlet::site {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

// How far apart things happen that one command sets off on all nodes.
constexpr Duration kAllAtOnce = seconds{1};
constexpr Duration kEpilog = seconds{5};
// At 10,000 nodes a record is believed for three refreshes of 10 min and three dumps; the youngest
// was written with the last dump.
constexpr Duration kRecordLasts = seconds{1890};
constexpr Duration kRecordMissed = minutes{11};  // a refresh and two dumps
constexpr Duration kSteadyFor = minutes{5};

// When the steady state is looked at.
enum class Steady { kBefore, kAtTheEnd };

class Site {
 public:
  explicit Site(const Plan& plan) : plan_(plan), world_(plan.seed), api_{world_}, slurm_(world_) {
    settings_.poll = slurm::poll_pace({}, plan.site_nodes);
    for (int number = 0; number < plan.nodes; ++number) {
      const auto index = std::int64_t{number} * plan.site_nodes / plan.nodes;
      nodes_.push_back(std::make_unique<ComputeNode>(number, index, plan.site_nodes, api_, slurm_));
    }
  }

  void use_operator() {
    settings_.has_operator = true;
    std::vector<SlurmNode*> nodes;
    for (const auto& node : nodes_) {
      nodes.push_back(&node->slurm());
    }
    slurm_.publish(nodes);
  }
  // Starts all daemons bit by bit and lets time pass up to the first event.
  void settle() {
    each_within(Duration::zero(), plan_.settle / 5 * 2, &Site::start);
    world_.run(world_.time_of(plan_.settle));
  }

  // --- what is to happen, by the time since the beginning
  Duration now() const { return world_.since_begin(world_.now().steady); }
  void api_outage(Duration at, Duration lasts, bool hangs) {
    api_.outages.push_back({world_.time_of(at), world_.time_of(at + lasts), hangs});
    const auto wake_all = [this] {
      for (const auto& node : nodes_) {
        node->wake();
      }
    };
    world_.at(world_.time_of(at), wake_all);
    world_.at(world_.time_of(at + lasts), [this, wake_all] {
      api_.forget_history();
      wake_all();
    });
  }
  void slurm_outage(Duration at, Duration lasts) {
    slurm_.add_outage({world_.time_of(at), world_.time_of(at + lasts)});
  }
  void end_operator() { slurm_.stop_publishing(); }
  // Each node somewhere in [from, from + spread).
  using Act = void (Site::*)(ComputeNode&);
  void each_within(Duration from, Duration spread, Act act, std::size_t count = SIZE_MAX) {
    for (std::size_t i = 0; i < std::min(count, nodes_.size()); ++i) {
      const SteadyTime time = world_.time_of(from + world_.chance(spread));
      world_.at(time, [this, act, &node = *nodes_[i]] { (this->*act)(node); });
    }
  }
  void for_all(Duration at, Act act, std::size_t count = SIZE_MAX) {
    each_within(at, Duration::zero(), act, count);
  }

  // --- what may happen to a node
  // In place of the one that ran, if any.
  void start(ComputeNode& node) { node.start_daemon(settings_); }
  void stop(ComputeNode& node) { node.stop_daemon(); }
  void lose_slurmd(ComputeNode& node) {
    node.set_machine({});
    node.slurm().state = {"DOWN", {"NOT_RESPONDING"}};
  }
  void start_slurmd(ComputeNode& node) { node.set_machine({++pid_, {}}); }
  void restart_slurmd(ComputeNode& node) {
    node.set_machine({});
    world_.at(world_.now().steady + seconds{1}, [this, &node] { start_slurmd(node); });
  }
  void reconfigure_slurmd(ComputeNode& node) { node.set_machine({++pid_, node.machine().jobs}); }
  void register_node(ComputeNode& node) { node.slurm().state = {"IDLE", {}}; }
  void allocate(ComputeNode& node) { node.slurm().state = {"ALLOCATED", {}}; }
  void start_step(ComputeNode& node) { node.set_machine({node.machine().slurmd_pid, {4711}}); }
  void end_step(ComputeNode& node) { node.set_machine({node.machine().slurmd_pid, {}}); }
  void complete(ComputeNode& node) { node.slurm().state = {"IDLE", {"COMPLETING"}}; }
  // Power, then slurmd two seconds after the daemon, then its registration.
  void boot(ComputeNode& node) {
    start(node);
    const SteadyTime now = world_.now().steady;
    world_.at(now + seconds{2}, [this, &node] { start_slurmd(node); });
    world_.at(now + seconds{3}, [this, &node] { register_node(node); });
  }

  std::size_t half() const { return nodes_.size() / 2; }
  Run run(std::string_view scenario, std::vector<std::pair<std::string, Duration>> events,
          Steady steady = Steady::kBefore) {
    for (const auto& node : nodes_) {
      (void)node->longest_lease_gap();
    }
    const Duration end = events.back().second + plan_.after;
    world_.run(world_.time_of(end));
    Run out;
    out.scenario = scenario;
    out.nodes = plan_.nodes;
    for (const auto& node : nodes_) {
      const std::chrono::duration<double> gap = node->longest_lease_gap();
      out.lease_gap = std::max(out.lease_gap, gap.count());
    }
    out.seconds = world_.seconds();
    out.seconds.resize(static_cast<std::size_t>(end / seconds{1}));
    for (const auto& [what, at] : events) {
      out.events.push_back({what, static_cast<int>(at / seconds{1})});
    }
    const Duration to = steady == Steady::kBefore ? events.front().second : end;
    out.steady_to = static_cast<int>(to / seconds{1});
    out.steady_from = static_cast<int>((to - std::min(kSteadyFor, to / 4)) / seconds{1});
    return out;
  }

 private:
  const Plan& plan_;
  World world_;
  ApiServer api_;
  SlurmSite slurm_;
  DaemonSettings settings_;
  std::vector<std::unique_ptr<ComputeNode>> nodes_;
  int pid_ = 100000;
};

Run cold_start(Site& site) {
  const Duration at = seconds{10};
  site.each_within(at, kAllAtOnce, &Site::start);
  return site.run("cold-start", {{"all daemons start", at}}, Steady::kAtTheEnd);
}

// What one command does to all nodes.
Run to_all(Site& site, std::string_view name, Site::Act act, const char* event) {
  const Duration at = site.now();
  site.each_within(at, kAllAtOnce, act);
  return site.run(name, {{event, at}});
}

Run daemon_restart(Site& site) {
  return to_all(site, "daemon-restart", &Site::start, "all daemons restart");
}

Run slurmd_restart(Site& site) {
  return to_all(site, "slurmd-restart", &Site::restart_slurmd, "slurmd restarts everywhere");
}

Run power_on(Site& site) {
  const Duration off = site.now();
  const Duration on = off + minutes{2};
  site.for_all(off, &Site::stop);
  site.for_all(off, &Site::lose_slurmd);
  site.each_within(on, seconds{30}, &Site::boot);
  return site.run("power-on", {{"power off", off}, {"the first node is up", on}});
}

Run api_restart(Site& site) {
  const Duration down = site.now();
  const Duration back = down + seconds{30};
  site.api_outage(down, back - down, false);
  return site.run("api-restart", {{"API server down", down}, {"API server back", back}});
}

Run api_hang(Site& site) {
  const Duration down = site.now();
  const Duration back = down + minutes{1};
  site.api_outage(down, back - down, true);
  return site.run("api-hang", {{"API server hangs", down}, {"API server back", back}});
}

Run slurmctld_restart(Site& site) {
  const Duration down = site.now();
  const Duration back = down + minutes{3};
  site.slurm_outage(down, back - down);
  return site.run("slurmctld-restart", {{"slurmctld down", down}, {"slurmctld back", back}});
}

Run operator_gone(Site& site) {
  const Duration gone = site.now();
  site.end_operator();
  return site.run("operator-gone",
                  {{"operator gone", gone}, {"a refresh is missed", gone + kRecordMissed}});
}

Run operator_slurmctld(Site& site) {
  const Duration down = site.now();
  const Duration back = down + minutes{36};
  site.slurm_outage(down, back - down);
  return site.run("operator-slurmctld", {{"slurmctld down", down},
                                         {"last record too old", down + kRecordLasts},
                                         {"slurmctld back", back}});
}

Run big_job(Site& site, std::string_view name, Duration lasts) {
  const Duration begin = site.now();
  const Duration end = begin + lasts;
  const std::size_t nodes = site.half();
  site.for_all(begin, &Site::allocate, nodes);
  site.each_within(begin, kAllAtOnce, &Site::start_step, nodes);
  site.for_all(end, &Site::complete, nodes);
  site.each_within(end, kAllAtOnce, &Site::end_step, nodes);
  site.for_all(end + kEpilog, &Site::register_node, nodes);
  return site.run(name, {{"a job starts on half of the nodes", begin}, {"it ends", end}});
}

Run long_job(Site& site) { return big_job(site, "job", minutes{10}); }
Run short_job(Site& site) { return big_job(site, "short-job", minutes{4}); }

Run reconfigure(Site& site) {
  return to_all(site, "reconfigure", &Site::reconfigure_slurmd, "scontrol reconfigure");
}

// What a scenario begins with.
enum class Begin { kNothing, kSettled, kSettledWithOperator };

struct Known {
  ScenarioName name;
  Begin begin;
  Run (*run)(Site&);
};

const std::vector<Known>& known() {
  static const std::vector<Known> all{
      {{"cold-start", "all daemons start for the first time within a second"},
       Begin::kNothing,
       cold_start},
      {{"daemon-restart", "all daemons are restarted, or killed and started, within a second"},
       Begin::kSettled,
       daemon_restart},
      {{"slurmd-restart", "slurmd is restarted on all nodes within a second"},
       Begin::kSettled,
       slurmd_restart},
      {{"power-on", "all nodes boot within 30 s"}, Begin::kSettled, power_on},
      {{"api-restart", "the API server is down for 30 s, then 410 for all"},
       Begin::kSettled,
       api_restart},
      {{"api-hang", "the API server hangs for 60 s, then 410 for all"}, Begin::kSettled, api_hang},
      {{"slurmctld-restart", "slurmctld is down for 3 min"}, Begin::kSettled, slurmctld_restart},
      {{"job", "a job on half of the nodes, for 10 min"}, Begin::kSettled, long_job},
      {{"short-job", "a job on half of the nodes, for 4 min"}, Begin::kSettled, short_job},
      {{"reconfigure", "scontrol reconfigure"}, Begin::kSettled, reconfigure},
      {{"operator-gone", "slurmlet-operator is gone"}, Begin::kSettledWithOperator, operator_gone},
      {{"operator-slurmctld", "slurmctld is down for 20 min, all nodes have records"},
       Begin::kSettledWithOperator,
       operator_slurmctld}};
  return all;
}

const Known& find_scenario(std::string_view name) {
  const auto found = std::find_if(known().begin(), known().end(),
                                  [name](const Known& each) { return each.name.name == name; });
  if (found == known().end()) {
    throw std::invalid_argument(fmt::format("no scenario {}", name));
  }
  return *found;
}

std::unique_ptr<Site> make_site(Begin begin, const Plan& plan) {
  auto site = std::make_unique<Site>(plan);
  // Larger sites need it.
  if (begin == Begin::kSettledWithOperator || plan.site_nodes > slurm::kMostNodes) {
    site->use_operator();
  }
  if (begin != Begin::kNothing) {
    site->settle();
  }
  return site;
}

// In a process of its own, so that the next scenario finds the site as this one did.
void run_apart(const Known& scenario, Site& site, const std::function<void(const Run&)>& take) {
  const pid_t child = ::fork();
  if (child == 0) {
    take(scenario.run(site));
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error(fmt::format("scenario {} failed", scenario.name.name));
  }
}

}  // namespace

const std::vector<ScenarioName>& scenarios() {
  static const std::vector<ScenarioName> names = [] {
    std::vector<ScenarioName> out;
    for (const auto& each : known()) {
      out.push_back(each.name);
    }
    return out;
  }();
  return names;
}

Run run_scenario(std::string_view scenario, const Plan& plan) {
  const Known& known = find_scenario(scenario);
  return known.run(*make_site(known.begin, plan));
}

void run_scenarios(const std::vector<std::string>& names, const Plan& plan,
                   const std::function<void(const Run&)>& take) {
  std::unique_ptr<Site> site;
  std::optional<Begin> begin;
  for (const auto& name : names) {
    const Known& scenario = find_scenario(name);
    if (begin != scenario.begin) {
      site.reset();
      site = make_site(scenario.begin, plan);
      begin = scenario.begin;
    }
    run_apart(scenario, *site, take);
  }
}

}  // namespace slurmlet::site
