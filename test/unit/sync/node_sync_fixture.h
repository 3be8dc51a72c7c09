#pragma once

// A NodeSync before an API server in memory, with a watch that the test feeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "sync/node_sync.h"

namespace slurmlet::sync {

inline constexpr char kUuidLabel[] = "metal3.io/uuid";

inline node::DesiredNode good_node() {
  node::DesiredNode node;
  node.name = "n1";
  node.labels = {{"type", "virtual-kubelet"}, {kUuidLabel, "u1"}};
  node.annotations = {{"slurmlet.io/slurm-state", "IDLE"}};
  node.taints = {{"virtual-kubelet.io/provider", "slurm", "NoSchedule"},
                 {"virtual-kubelet.io/provider", "slurm", "NoExecute"}};
  node.capacity = {{"cpu", "128"}, {"pods", "0"}};
  node.allocatable = {{"cpu", "128"}, {"pods", "0"}};
  node.conditions = {{"SlurmdReady", "True", "SlurmdRunning", "slurmd is running"},
                     {"SlurmNodeStateDrain", "False", "NotDrained", "not drained"},
                     {"SlurmNodeStateDown", "False", "NotDown", "not down"},
                     {"Ready", "True", "SlurmdRunning", "slurmd is running"}};
  node.addresses = {{"InternalIP", "192.0.2.101"}, {"Hostname", "n1"}};
  node.node_info.system_uuid = "s1";
  node.slurm_facts_known = true;
  return node;
}

inline node::DesiredNode drained_node() {
  node::DesiredNode node = good_node();
  node.annotations["slurmlet.io/slurm-state"] = "IDLE+DRAIN";
  node.conditions[1] = {"SlurmNodeStateDrain", "True", "Drained", "drained; no jobs are running"};
  return node;
}

class NodeSyncFixture : public ::testing::Test {
 protected:
  using Seen = kube::WatchEvent<node::ObservedNode>::Type;

  NodeSyncFixture() {
    options_.report_interval = std::chrono::minutes{5};
    options_.holder_identity = "n1/s1";
    options_.provider_id_seen = [this](const std::string& id) { provider_ids_.push_back(id); };
    make();
  }

  // A daemon that has just been started with `options_`.
  void make() {
    sync_ = std::make_unique<NodeSync>(
        api_, leases_, watch_, events_, options_, [] { return 0.5; }, link_);
    sync_->set_cluster("alps");
    sync_->set_desired(good_node(), clock_.now());
  }
  // With the step after it, which registers what was found to be ours.
  SteadyTime step() {
    const SteadyTime next = sync_->step(clock_.now());
    return next <= clock_.now().steady ? sync_->step(clock_.now()) : next;
  }
  SteadyTime step_after(Duration time) {
    clock_.advance(time);
    return step();
  }
  int run(Duration time) {
    return clock_.run(time, [this] { return step(); });
  }
  node::ObservedNode held() const { return api_.find("n1").value_or(node::ObservedNode{}); }
  void want(const node::DesiredNode& node) { sync_->set_desired(node, clock_.now()); }
  // The status of the one condition of that type.
  std::string condition(const std::string& type) const {
    for (const auto& one : held().conditions) {
      if (one.condition.type == type) {
        return one.condition.status;
      }
    }
    return "";
  }
  // The watch tells what the server holds.
  void tell(Seen type) { watch_.feed(type, {held()}); }
  void somebody_changes(const std::function<void(node::ObservedNode&)>& edit) {
    api_.change("n1", edit);
    tell(Seen::kModified);
  }
  void somebody_deletes_it() {
    const auto gone = held();
    api_.remove("n1");
    watch_.feed(Seen::kDeleted, {gone});
  }
  // A Node of our name that another machine made.
  void put_foreign() {
    node::ObservedNode node = fakes::FakeNodeApi::observed(good_node(), clock_.now().wall);
    node.labels[kUuidLabel] = "another-machine";
    api_.put(node);
  }
  void put_ours() { api_.put(fakes::FakeNodeApi::observed(good_node(), clock_.now().wall)); }
  std::string uid() const { return link_.node_uid.get() ? *link_.node_uid.get() : "(never set)"; }
  // Whether the lease thread was woken since this was last called.
  bool lease_was_woken() {
    pollfd changed{link_.changed.fd(), POLLIN, 0};
    const bool woken = ::poll(&changed, 1, 0) == 1;
    link_.changed.clear();
    return woken;
  }
  std::vector<std::string> event_reasons() {
    events_.step(clock_.now());
    std::vector<std::string> out;
    for (const auto& event : event_api_.events()) {
      out.push_back(event.reason);
    }
    return out;
  }

  fakes::FakeClock clock_;
  fakes::FakeNodeApi api_;
  fakes::FakeLeaseApi leases_;
  fakes::FakeWatch<node::ObservedNode> watch_;
  fakes::FakeEventApi event_api_;
  EventSink events_{event_api_, "n1", [] { return 0.0; }};
  LeaseLink link_;
  std::vector<std::string> provider_ids_;
  NodeSyncOptions options_;
  std::unique_ptr<NodeSync> sync_;
};

}  // namespace slurmlet::sync
