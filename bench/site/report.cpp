#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace slurmlet::site {
namespace {

constexpr int kNear = 10;
constexpr int kFar = 600;

double at(const Row& row, Count what) { return row.at(static_cast<std::size_t>(what)); }

double api_requests(const Row& row) {
  double sum = 0;
  for (auto what = Count::kLeaseGet; what <= Count::kWatchRefused;
       what = static_cast<Count>(static_cast<int>(what) + 1)) {
    sum += at(row, what);
  }
  return sum;
}

double watches(const Row& row) {
  return at(row, Count::kNodeWatch) + at(row, Count::kPodWatch) + at(row, Count::kWatchRefused);
}

double slurm_rpcs(const Row& row) { return at(row, Count::kSlurmRpc); }
double slurm_refused(const Row& row) { return at(row, Count::kSlurmRefused); }

// One figure of each second.
class Seconds {
 public:
  Seconds(const Run& run, double (*figure)(const Row&)) {
    for (const Row& row : run.seconds) {
      figures_.push_back(figure(row));
    }
  }
  double of(int second) const { return figures_.at(static_cast<std::size_t>(second)); }
  double highest(int from, int to) const {
    double most = 0;
    for (int second = from; second < std::min(to, size()); ++second) {
      most = std::max(most, of(second));
    }
    return most;
  }
  double mean(int from, int to) const {
    double sum = 0;
    for (int second = from; second < to; ++second) {
      sum += of(second);
    }
    return to > from ? sum / (to - from) : 0;
  }
  int size() const { return static_cast<int>(figures_.size()); }

  Load load(const Run& run, int event, int until) const {
    return {mean(run.steady_from, run.steady_to), of(event),
            highest(event + 1, std::min(event + kNear, until)), highest(event + kNear, until)};
  }

 private:
  std::vector<double> figures_;
};

}  // namespace

std::vector<EventReport> report(const Run& run) {
  const Seconds api{run, api_requests};
  const Seconds api_watches{run, watches};
  const Seconds slurm{run, slurm_rpcs};
  const Seconds refused{run, slurm_refused};
  std::vector<EventReport> out;
  for (std::size_t i = 0; i < run.events.size(); ++i) {
    const int event = run.events[i].second;
    const int next = i + 1 < run.events.size() ? run.events[i + 1].second : api.size();
    const int until = std::min(next, event + kFar);
    EventReport each;
    each.event = run.events[i];
    each.api = api.load(run, event, until);
    each.first_second_watches = api_watches.of(event);
    each.slurmctld = slurm.load(run, event, until);
    each.slurmctld_refused = refused.highest(event, until);
    for (int second = event; second + kNear <= until; ++second) {
      each.slurmctld_10_s = std::max(each.slurmctld_10_s, slurm.mean(second, second + kNear));
    }
    const double most =
        std::max(each.api.next_10_s, each.api.first_second - each.first_second_watches);
    each.ratio = each.api.steady > 0 ? most / each.api.steady : 0;
    each.api_good = each.ratio <= kMostRatio;
    each.most_rpcs = slurm.highest(event, until);
    each.slurmctld_good = each.most_rpcs <= kMostSlurmRpcs;
    out.push_back(std::move(each));
  }
  return out;
}

std::string table_head() {
  return fmt::format(
      "{:17} {:34} | requests to the API server, per second          | RPCs of slurmctld, per "
      "second\n"
      "{:17} {:34} | {:>6} {:>7} {:>7} {:>7} {:>7} {:>5}      | {:>6} {:>6} {:>6} {:>7} {:>6} "
      "{:>7}      | lease gap\n",
      "", "", "scenario", "event", "steady", "1st s", "watches", "10 s", "10 min", "ratio",
      "steady", "1st s", "10 s", "10 min", "mean10", "refused");
}

std::string table(const Run& run, const std::vector<EventReport>& events) {
  std::string out;
  for (const auto& each : events) {
    out += fmt::format(
        "{:17} {:34} | {:6.0f} {:7.0f} {:7.0f} {:7.0f} {:7.0f} {:5.1f} {:4} | {:6.1f} {:6.0f} "
        "{:6.0f} {:7.0f} {:6.1f} {:7.0f} {:4} | {:5.1f} s\n",
        run.scenario, each.event.what, each.api.steady, each.api.first_second,
        each.first_second_watches, each.api.next_10_s, each.api.next_10_min, each.ratio,
        each.api_good ? "pass" : "MISS", each.slurmctld.steady, each.slurmctld.first_second,
        each.slurmctld.next_10_s, each.slurmctld.next_10_min, each.slurmctld_10_s,
        each.slurmctld_refused, each.slurmctld_good ? "pass" : "MISS", run.lease_gap);
  }
  return out;
}

std::string csv(const Run& run) {
  std::string out = fmt::format("# {}: {} nodes, steady from {} to {} s\n", run.scenario, run.nodes,
                                run.steady_from, run.steady_to);
  for (const auto& event : run.events) {
    out += fmt::format("# event {} {}\n", event.second, event.what);
  }
  out += "second";
  for (std::size_t i = 0; i < kCounts; ++i) {
    out += fmt::format(",{}", name_of(static_cast<Count>(i)));
  }
  for (std::size_t second = 0; second < run.seconds.size(); ++second) {
    out += fmt::format("\n{}", second);
    for (const auto count : run.seconds[second]) {
      out += fmt::format(",{}", count);
    }
  }
  return out + "\n";
}

}  // namespace slurmlet::site
