#include "compute_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/watch.h"
#include "node/desired_node.h"
#include "sync/event_sink.h"
#include "sync/lease_sync.h"
#include "sync/node_sync.h"
#include "sync/pod_sync.h"

namespace slurmlet::site {
namespace {

sync::NodeSyncOptions node_options(const std::string& holder) {
  sync::NodeSyncOptions options;
  options.holder_identity = holder;
  return options;
}

std::unique_ptr<slurm::ControllerPoll> make_poll(const DaemonSettings& settings, SlurmSite& site,
                                                 const SlurmNode& node) {
  return std::make_unique<slurm::ControllerPoll>(
      settings.poll, make_sources(site, node, settings.has_operator), site.world().random());
}

}  // namespace

struct ComputeNode::Daemon {
  Daemon(const std::string& name, int number, const SitePlace& place,
         const DaemonSettings& settings, NodeAccess& access, SlurmSite& site,
         const SlurmNode& slurm, const Machine& machine, const Random& random)
      : local(name, number, place, machine, make_poll(settings, site, slurm)),
        holder(name + "/" + local.facts().machine.system_uuid),
        node_watch(kube::watch_own_node(access, name, {}, random)),
        pod_watch(kube::watch_own_pods(access, name, {}, random)),
        events(access, name, random),
        node(access, access.leases(), *node_watch, events, node_options(holder), random, link),
        pods(access, *pod_watch, events, {name, "alps", std::chrono::seconds{60}}, random),
        lease(access.leases(), {name, holder, std::chrono::seconds{40}}, random, link) {
    policy.node_name = name;
    node.set_site(place, site.world().now());
  }

  LocalFacts local;
  node::NodePolicy policy;
  std::string holder;
  sync::LeaseLink link;
  std::unique_ptr<kube::Watch<node::ObservedNode>> node_watch;
  std::unique_ptr<kube::Watch<kube::Pod>> pod_watch;
  sync::EventSink events;
  sync::NodeSync node;
  sync::PodSync pods;
  sync::LeaseSync lease;
  std::shared_ptr<const std::string> known_uid;
  bool is_described = false;  // `node` knows what is desired
};

ComputeNode::ComputeNode(int number, std::int64_t index, std::int64_t site_nodes, ApiServer& api,
                         SlurmSite& slurm)
    : number_(number),
      api_(api),
      site_(slurm),
      slurm_{fmt::format("n{:05d}", index)},
      place_(slurm_.name, site_nodes),
      machine_{1000 + number, {}},
      access_(api, *this, slurm_.name) {
  slurm_.tell = [this] { api_.world.wake(*this, api_.world.now().steady); };
}

ComputeNode::~ComputeNode() = default;

void ComputeNode::start_daemon(const DaemonSettings& settings) {
  World& world = api_.world;
  daemon_ = std::make_unique<Daemon>(slurm_.name, number_, place_, settings, access_, site_, slurm_,
                                     machine_, world.random());
  world.wake(*this, world.now().steady);
  world.wake(lease_thread_, world.now().steady);
}

void ComputeNode::stop_daemon() { daemon_.reset(); }

void ComputeNode::set_machine(const Machine& machine) {
  machine_ = machine;
  api_.world.wake(*this, api_.world.now().steady);
}

SteadyTime ComputeNode::step() {
  if (!daemon_) {
    return kNever;
  }
  const World& world = api_.world;
  Daemon& daemon = *daemon_;
  const Now at = world.now();
  daemon.local.set_record(slurm_.record);
  SteadyTime next = daemon.local.step(at);
  if (daemon.local.changed() || !daemon.is_described) {
    daemon.node.set_desired(node::desired_node(daemon.local.facts(), daemon.policy,
                                               daemon.local.ready_context(at), "0.0.0"),
                            at);
    daemon.is_described = true;
  }
  next = std::min(next, daemon.node.step(at));
  if (daemon.node.registered()) {
    next = std::min(next, daemon.pods.step(world.now()));
  } else {
    daemon.pods.rest();
  }
  next = std::min(next, daemon.events.step(world.now()));
  if (const auto uid = daemon.link.node_uid.get(); uid != daemon.known_uid) {
    daemon.known_uid = uid;
    api_.world.wake(lease_thread_, world.now().steady);
  }
  return next;
}

SteadyTime ComputeNode::LeaseThread::step() {
  return node.daemon_ ? node.daemon_->lease.step(node.api_.world.now()) : kNever;
}

}  // namespace slurmlet::site
