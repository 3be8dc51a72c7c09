#pragma once

// Nodes that nobody else will delete: their Machine has gone and left them behind. One goes only
// after its Lease was not renewed for long (lease_watch.h): a slurmlet that lives keeps its Node.
//
// A step object; its calls of the API server block. Not thread-safe.

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

// What must outlive it.
struct LeftoverContext {
  kube::SiteApi& site;
  kube::LeaseApi& leases;  // of the Nodes
  sync::EventSink& events;
  std::function<bool()> may_act;  // asked before each call
};

// Why each of these Nodes is left over, by name: the Machine of its annotation, or where Cluster
// API has not written that, of its providerID (metal3://NAMESPACE/HOST/MACHINE) is not there. The
// machine itself wrote its providerID, so that says of nobody else's Node anything. `machines` are
// all of their clusters: of one without a Machine that lives nothing is said, for it may be the
// wrong server that was asked.
std::map<std::string, std::string> left_over(const std::map<std::string, KubeNode>& nodes,
                                             const Machines& machines);

class LeftoverNodes {
 public:
  LeftoverNodes(LeftoverContext context, bool dry_run)
      : context_(std::move(context)), dry_run_(dry_run) {}

  // `machines`: null while they are not known.
  SteadyTime step(Now now, const std::map<std::string, KubeNode>& nodes, const Machines* machines);
  std::uint64_t deleted() const { return deleted_; }
  std::uint64_t failures() const { return failures_; }

 private:
  struct Suspect {
    std::string uid;
    LeaseWatch lease;
    SteadyTime next;  // look
  };
  // These return whether the API server answers.
  bool look_at(const KubeNode& node, const std::string& why, Now now);
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
