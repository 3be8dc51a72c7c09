#pragma once

// Deletes Nodes whose Machine is gone, as no other controller does. The Lease must have expired
// first (lease_watch.h), so a running slurmlet keeps its Node.
//
// A step object; its calls to the API server block. Not thread-safe.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "kube/api.h"
#include "operator/machines/machine_place.h"
#include "operator/site/lease_watch.h"
#include "operator/site/site_nodes.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

// Must outlive LeftoverNodes.
struct LeftoverContext {
  kube::SiteApi& site;
  kube::LeaseApi& leases;
  sync::EventSink& events;
  std::function<bool()> may_act;  // checked before each call
};

// The leftover Nodes, by name, with the reason: the Machine in its annotation, or else in its
// providerID (metal3://NAMESPACE/HOST/MACHINE), does not exist. A machine writes its own
// providerID, so it only counts for its own Node. Nodes of a cluster without any live Machine are
// kept, since the list may come from the wrong server.
std::map<std::string, std::string> left_over(const std::map<std::string, KubeNode>& nodes,
                                             const Machines& machines);

class LeftoverNodes {
 public:
  LeftoverNodes(LeftoverContext context, bool dry_run)
      : context_(std::move(context)), dry_run_(dry_run) {}

  // `machines`: null = not known yet.
  SteadyTime step(Now now, const std::map<std::string, KubeNode>& nodes, const Machines* machines);
  std::uint64_t deleted() const { return deleted_; }
  std::uint64_t failures() const { return failures_; }

 private:
  struct Suspect {
    std::string uid;
    LeaseWatch lease;
    SteadyTime next;  // check
  };
  // These return false if the API server did not answer.
  bool check(const KubeNode& node, const std::string& why, Now now);
  bool remove(const KubeNode& node, const std::string& why, Now now);
  bool failed(const std::string& what, const Error& error);

  LeftoverContext context_;
  bool dry_run_;
  std::map<std::string, Suspect> suspects_;  // by name
  SteadyTime next_{};
  std::uint64_t deleted_ = 0, failures_ = 0;
  std::string problem_;
};

}  // namespace slurmlet::op
