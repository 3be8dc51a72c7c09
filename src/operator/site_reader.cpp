#include "operator/site_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/delay.h"
#include "kube/watch.h"
#include "operator/slurm_runner.h"

namespace slurmlet::op {
namespace {

constexpr Duration kListTime = std::chrono::seconds{60};
constexpr Duration kDumpTurn = std::chrono::milliseconds{500};

// All objects of a watch, by its first list. kNotFound: the server has no such kind.
template <class T>
Result<std::vector<T>> list_once(kube::Watch<T>& watch, http::Client& client, const Clock& clock) {
  const SteadyTime until = clock.now().steady + kListTime;
  while (clock.now().steady < until) {
    std::vector<kube::WatchEvent<T>> events;
    const SteadyTime next = watch.step(clock.now(), events);
    for (auto& event : events) {
      if (event.type != kube::WatchEvent<T>::Type::kReplaced) {
        continue;
      }
      if (const auto& missing = watch.unreadable(); !missing.empty()) {
        return Error{Code::kInvalid, missing.front() + " cannot be read"};
      }
      return std::move(event.objects);
    }
    if (const auto error = watch.last_error()) {
      return *error;
    }
    (void)client.wait(std::min(next, until), {});
  }
  return Error{Code::kTimeout, "the API server did not list its objects in time"};
}

}  // namespace

SiteReader::SiteReader(const Options& options, const std::string& cluster, http::Client& client,
                       http::Client& machine_client, const Clock& clock,
                       std::function<void()> meanwhile)
    : options_(options),
      client_(client),
      machine_client_(machine_client),
      clock_(clock),
      meanwhile_(std::move(meanwhile)),
      dump_({slurm_client(options), options.interval, cluster}, dump_source(options, client, clock),
            system_random()),
      nodes_(cluster) {}

Status SiteReader::dump() {
  dump_.forget();
  const auto before = dump_.counters();
  while (dump_.counters().dumps == before.dumps && dump_.counters().failures == before.failures) {
    const SteadyTime next = dump_.step(clock_.now(), true, false);
    meanwhile_();
    (void)client_.wait(std::min(next, clock_.now().steady + kDumpTurn), dump_.wake_fds());
  }
  const std::string problem = dump_.problem(clock_.now().wall);
  hosts_ = HostIndex{dump_.nodes()};
  return problem.empty() ? Status{} : Error{Code::kUnavailable, problem};
}

Status SiteReader::list_nodes() {
  const auto watch = kube::watch_site_nodes(client_, {}, system_random());
  const auto listed = TRY(list_once(*watch, client_, clock_));
  nodes_.forget();
  for (const kube::SiteNode& node : listed) {
    nodes_.put(node);
  }
  return {};
}

Status SiteReader::list_machines() {
  const auto watch =
      kube::watch_machines(machine_client_, options_.machine_cluster, {}, system_random());
  machines_.clear();
  auto found = list_once(*watch, machine_client_, clock_);
  if (!found) {
    return found.error().code == Code::kNotFound ? Status{} : found.error();
  }
  for (kube::Machine& machine : *found) {
    const std::string key = key_of(machine);
    machines_.emplace(key, std::move(machine));
  }
  return {};
}

}  // namespace slurmlet::op
