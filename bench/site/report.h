#pragma once

// What a run comes to, beside the goals of docs/contributors/performance.md.

#include <string>
#include <vector>

#include "scenario.h"

namespace slurmlet::site {

// Of one second.
struct Load {
  double steady = 0;        // mean
  double first_second = 0;  // of the event
  double next_10_s = 0;     // highest second of the nine after it
  double next_10_min = 0;   // highest second of the rest, up to the next event
};

struct EventReport {
  Happening event;
  Load api;                         // requests, those included that nobody answered
  double first_second_watches = 0;  // of api.first_second
  Load slurmctld;                   // RPCs
  double slurmctld_10_s = 0;        // highest mean of ten seconds up to the next event
  double slurmctld_refused = 0;     // highest second of connections that slurmctld refused
  // Of the seconds that the goal is about: the highest beside the steady state.
  double ratio = 0;
  double most_rpcs = 0;
  bool api_good = false, slurmctld_good = false;
};

// Goals: of the API server's load in the ten seconds after an event, but for the watches of the
// first second, to the steady one; of slurmctld's RPCs in any second.
inline constexpr double kMostRatio = 3;
inline constexpr double kMostSlurmRpcs = 40;

std::vector<EventReport> report(const Run& run);
std::string table_head();
std::string table(const Run& run, const std::vector<EventReport>& events);
std::string csv(const Run& run);

}  // namespace slurmlet::site
