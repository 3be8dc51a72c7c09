#include "operator/machines/site_machines.h"

#include <utility>
#include <vector>

#include "base/log.h"

namespace slurmlet::op {

SteadyTime SiteMachines::step(Now now, bool& changed) {
  using Type = kube::WatchEvent<kube::Machine>::Type;
  std::vector<kube::WatchEvent<kube::Machine>> events;
  const SteadyTime next = watch_.step(now, events);
  for (auto& event : events) {
    if (event.type == Type::kReplaced) {
      all_.clear();
      listed_ = true;
    }
    for (auto& machine : event.objects) {
      const std::string key = key_of(machine);
      if (event.type == Type::kDeleted) {
        all_.erase(key);
      } else {
        all_.insert_or_assign(key, std::move(machine));
      }
    }
  }
  if (!events.empty()) {
    changed = true;
    ambiguous_ = all_clusters_ ? doubt_about(all_) : "";
  }
  const auto error = watch_.last_error();
  const bool absent = error && error->code == Code::kNotFound;
  if (absent && !absent_) {
    log::info("Cluster API is not installed in this cluster; cordons drain all the same");
    all_.clear();
    changed = true;
  }
  absent_ = absent;
  watch_problem_ = error && !absent ? error->message : "";
  return next;
}

void SiteMachines::forget() {
  watch_.restart();
  listed_ = false;
  watch_problem_.clear();
  ambiguous_.clear();
}

}  // namespace slurmlet::op
