#pragma once

// Cluster API's Machines by their watch, and whether they are certainly this site's. One thread,
// that of the API's client.

#include <set>
#include <string>
#include <utility>

#include "kube/api.h"
#include "operator/machines/machine_place.h"

namespace slurmlet::op {

class SiteMachines {
 public:
  // `all_clusters`: no Cluster is configured, so Machines are certain only if all are of one.
  SiteMachines(kube::Watch<kube::Machine>& watch, bool all_clusters)
      : watch_(watch), all_clusters_(all_clusters) {}

  // Sets `changed` if Machines have changed.
  SteadyTime step(Now now, bool& changed);
  void forget();  // resets to the state after a restart

  Machines& all() { return all_; }
  const Machines& all() const { return all_; }
  // The server has answered, if only that there is no such resource.
  bool answered() const { return listed_; }
  // The list has succeeded: a Machine that is missing does not exist.
  bool known() const { return listed_ && !absent_; }
  // They are known, current and this site's.
  bool certain() const { return known() && ambiguous_.empty() && watch_problem_.empty(); }
  // Why they may be another site's; "" = they are not.
  const std::string& ambiguous() const { return ambiguous_; }
  // The same of them and of what else these Clusters (NAMESPACE/NAME) have.
  std::string doubt_with(std::set<std::string> clusters) const {
    return all_clusters_ ? doubt_about(all_, std::move(clusters)) : "";
  }
  // Why they may be outdated; "" = they are current.
  const std::string& watch_problem() const { return watch_problem_; }

 private:
  kube::Watch<kube::Machine>& watch_;
  bool all_clusters_;
  Machines all_;
  bool listed_ = false;
  bool absent_ = false;  // the server has no such resource
  std::string ambiguous_, watch_problem_;
};

}  // namespace slurmlet::op
