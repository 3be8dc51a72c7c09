#pragma once

// Cluster API's Machines, as their watch shows them, and whether it is certain that they are those
// of this site. One thread, that of the API's client.

#include <string>

#include "kube/api.h"
#include "operator/machines/machine_place.h"

namespace slurmlet::op {

class SiteMachines {
 public:
  // `all_clusters`: no Cluster was named, so they are only certain where they are all of one.
  SiteMachines(kube::Watch<kube::Machine>& watch, bool all_clusters)
      : watch_(watch), all_clusters_(all_clusters) {}

  // Sets `changed` where something has changed. Returns when to come again.
  SteadyTime step(Now now, bool& changed);
  void forget();  // as after a restart

  Machines& all() { return all_; }
  const Machines& all() const { return all_; }
  // There is an answer, be it that there is no such resource.
  bool answered() const { return listed_; }
  // The list has succeeded: a Machine that is missing does not exist.
  bool known() const { return listed_ && !absent_; }
  // And they are this site's, now.
  bool certain() const { return known() && ambiguous_.empty() && watch_problem_.empty(); }
  // Why it is not certain whose they are; "" = it is.
  const std::string& ambiguous() const { return ambiguous_; }
  // Why they may be others by now.
  const std::string& watch_problem() const { return watch_problem_; }

 private:
  kube::Watch<kube::Machine>& watch_;
  bool all_clusters_;
  Machines all_;
  bool listed_ = false;
  bool absent_ = false;  // there is no such resource
  std::string ambiguous_, watch_problem_;
};

}  // namespace slurmlet::op
