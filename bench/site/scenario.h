#pragma once

// What happens to a simulated site. All scenarios but the cold start begin with a site that was
// started bit by bit and has settled.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compute_node.h"
#include "world.h"

namespace slurmlet::site {

struct Plan {
  int nodes = 10000;                           // simulated, evenly taken from
  int site_nodes = 10000;                      // those of slurm.conf
  Duration settle = std::chrono::minutes{25};  // before the first event
  Duration after = std::chrono::minutes{12};   // the last one
  std::uint32_t seed = 1;
};

struct Happening {
  std::string what;
  int second;
};

struct Run {
  std::string scenario;
  int nodes = 0;
  std::vector<Row> seconds;
  std::vector<Happening> events;
  int steady_from = 0, steady_to = 0;  // seconds of the steady state
  double lease_gap = 0;                // the longest since the first event, in seconds
};

struct ScenarioName {
  std::string_view name, title;
};
const std::vector<ScenarioName>& scenarios();

// std::invalid_argument where there is no such scenario.
Run run_scenario(std::string_view scenario, const Plan& plan);
// Those that begin alike share the time before their event; `take` is called in a child process.
void run_scenarios(const std::vector<std::string>& names, const Plan& plan,
                   const std::function<void(const Run&)>& take);

}  // namespace slurmlet::site
