#pragma once

// Keeps the Node on the API server what desired_node() says: registers it, adopts it when it is
// ours, re-creates it when somebody deletes it, and lets its NodeWriter write what differs. Sees
// the Node through a watch, so a steady node reads nothing.
//
//   Unclaimed ─► Claimed ─► Registered ─► Unclaimed (deleted, replaced, or the Lease is lost)
//     ▲   │                     │
//     │   └─► Blocked ◄─────────┤ (deleted with its Machine, or recreation is disabled)
//     └────────── Confirming ◄──┘ (a write found no Node; the watch will report how it ended)
//
// One node, one daemon: before anything is written the Node and its Lease are read. A Node of
// another machine is left alone until it is deleted; a Lease that another machine renews, until it
// is silent. When the loop of the Lease finds such a holder later on, the Node is released.
//
// A step object without threads or sleeping; not thread-safe.

#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"
#include "node/machine_deletion.h"
#include "node/node.h"
#include "sync/deletion_tracker.h"
#include "sync/event_sink.h"
#include "sync/failure_streak.h"
#include "sync/lease_claim.h"
#include "sync/lease_link.h"
#include "sync/node_announcer.h"
#include "sync/node_writer.h"

namespace slurmlet::sync {

struct NodeSyncOptions {
  Duration report_interval = std::chrono::minutes{5};
  bool recreate = true;                    // when somebody deletes our Node
  std::optional<Duration> recreate_after;  // when it went with its Machine; nothing = never
  // Of an earlier run in this boot, under this identity.
  std::optional<node::DeletionRecord> deletion;
  DeletionTracker::Changed deletion_changed = [](const auto&) {};
  std::string remembered_provider_id;  // of an earlier run, for a Node that must be re-created
  std::function<void(const std::string& provider_id)> provider_id_seen = [](const auto&) {};
  std::string holder_identity;  // ours in the Lease: LeaseOptions::holder_identity
  // status.nodeInfo.kubeletVersion of a Node that is no Cluster API Machine's is the API server's.
  bool publish_server_version = false;
};

class NodeSync {
 public:
  NodeSync(kube::NodeApi& api, kube::LeaseApi& leases, kube::Watch<node::ObservedNode>& watch,
           EventSink& events, NodeSyncOptions options, Random random, LeaseLink& link);

  // Before anything else, and again as it becomes known: what a whole site does at a start, and
  // what it reports of jobs that run on many nodes, is spread over its nodes. A Lease that this
  // machine holds is renewed meanwhile.
  void set_site(const SitePlace& site, Now now);
  void set_desired(node::DesiredNode desired, Now now);
  const node::DesiredNode& desired() const { return desired_; }
  void set_cluster(std::string cluster) { announcer_.set_cluster(std::move(cluster)); }
  // A Node that was found to be ours, or to be missing, is registered by the next step: by then its
  // connection has shown our address.
  SteadyTime step(Now now);

  // Sends the desired state at once, whatever the timers say (host shutdown). An error too where
  // there is no Node of ours.
  Status flush(Now now);

  bool registered() const { return std::holds_alternative<Registered>(state_); }
  // Of our Node; "" = there is none, or it is not known yet.
  std::string uid() const;
  // slurmlet-operator's annotation on our Node: "" where it has none, nothing while it is not
  // known.
  std::optional<std::string> record() const;
  // Whether slurmlet-operator has taken this machine out of Slurm; nothing while it is not known.
  std::optional<bool> detached() const;
  // Retries soon what was denied.
  void credential_replaced(Now now);
  // Forgets the previous Node: this is another Machine now.
  void forget_deletion(Now now);

  // Why this machine may not have the Node; "" = it may.
  std::string block_reason() const;
  // Whether because the Node was deleted with its Machine.
  bool went_with_machine() const;
  // Why the Node could not be registered or written; nothing after a success.
  const std::optional<Error>& write_error() const { return failures_.error(); }
  // When the current series of failures began.
  SteadyTime write_error_since() const { return failures_.since(); }
  // Why the Node differs from the desired one although it can be written; "" = it does not, or not
  // for long.
  std::string drift(SteadyTime now) const;

 private:
  struct Unclaimed {
    SteadyTime retry_at;
  };
  struct Claimed {
    std::optional<node::ObservedNode> existing;  // nothing = there is none
  };
  struct Registered {
    node::ObservedNode node;
    NodeWriter writer;
    ProviderIdWriter provider_id;
    bool uuid_label_surrendered = false;  // a label sync took metal3.io/uuid away: leave it
  };
  struct Confirming {
    std::string uid;
    SteadyTime retry_at, deadline;  // once the watch has reported the end, and without it
  };
  struct Blocked {
    enum class Why { kForeignNode, kLeaseHeld, kMachineDeleted, kRecreationDisabled };
    Why why;
    std::string message;
    SteadyTime recheck_at = kNever;
  };
  struct ServerVersion {
    std::string text;  // "" = not known
    SteadyTime read_at{};
  };
  struct Start {
    SitePlace site;
    std::optional<SteadyTime> begun;
    SteadyTime lookup_not_before{};
  };

  template <typename T>
  T* in() {
    return std::get_if<T>(&state_);
  }
  template <typename T>
  const T* in() const {
    return std::get_if<T>(&state_);
  }

  // node_watch.cpp
  bool watches() const;
  void read_watch(Now now);
  void on_seen(const node::ObservedNode& seen, Now now);
  void on_gone(const std::optional<node::ObservedNode>& last, Now now);
  Duration watch_lag() const;

  // node_registration.cpp
  SteadyTime lookup_at() const;
  void check_ownership(Now now);
  void register_node(Now now);
  void enter_registered(node::ObservedNode node, Now now);
  void on_deleted(Now now, bool watch_has_reported);
  bool remains_deleted(Now now);
  void end_of_deletion(SteadyTime now);
  void release(SteadyTime retry_at);
  void release_lost_lease(Now now);

  void observe(node::ObservedNode node);
  void write(Now now);
  SteadyTime write_at() const;
  void on_failed_write(const Error& error, Now now);
  void fail(const Error& error, Now now);
  void publish_uid(const std::string& uid);
  const std::string& provider_id() const;
  bool publishes_server_version() const;
  void read_server_version(SteadyTime now);
  node::DesiredNode effective_desired() const;

  kube::NodeApi& api_;
  kube::Watch<node::ObservedNode>& watch_;
  std::optional<SteadyTime> watch_next_;  // nothing: it has never been read
  NodeSyncOptions options_;
  Random random_;
  LeaseLink& link_;
  LeaseClaim claim_;
  NodeAnnouncer announcer_;
  DeletionTracker deletion_;
  FailureStreak failures_;
  node::DesiredNode desired_;
  std::string seen_provider_id_;  // to re-create the Node with
  ServerVersion server_version_;
  Start start_;
  std::variant<Unclaimed, Claimed, Registered, Confirming, Blocked> state_;
};

}  // namespace slurmlet::sync
