#pragma once

// Keeps the Node on the API server what desired_node() says: registers it, adopts it when it is
// ours, re-creates it when somebody deletes it, patches what differs and reports every few minutes
// when nothing does. Sees the Node through a watch, so a steady node reads nothing.
//
// One node, one daemon: before anything is written the Node and its Lease are read. A Node of
// another machine is left alone until it is deleted; a Lease that another machine renews, until it
// is silent. When the loop of the Lease finds such a holder later on, the Node is let go.
//
// A Node that was deleted while it was cordoned and belonged to a Cluster API Machine went with
// that Machine (node/machine_end.h): it is not made again unless recreate_after says when.
//
// A step object without threads or sleeping; not thread-safe.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"
#include "node/lease_holder.h"
#include "node/machine_end.h"
#include "node/node.h"
#include "sync/event_sink.h"
#include "sync/lease_link.h"

namespace slurmlet::sync {

struct NodeSyncOptions {
  Duration report_interval = std::chrono::minutes{5};
  bool recreate = true;                    // when somebody deletes our Node
  std::optional<Duration> recreate_after;  // when it went with its Machine; nothing = never
  std::string remembered_provider_id;      // of an earlier run, for a Node that must be re-created
  std::optional<node::NodeEnd> end;        // of an earlier run in this boot, under this identity
  std::function<void(const std::optional<node::NodeEnd>&)> end_changed = [](const auto&) {};
  std::string holder_identity;  // ours in the Lease: LeaseOptions::holder_identity
};

class NodeSync {
 public:
  using ProviderIdSeen = std::function<void(const std::string& provider_id)>;

  NodeSync(kube::NodeApi& api, kube::LeaseApi& leases, kube::Watch<node::ObservedNode>& watch,
           EventSink& events, NodeSyncOptions options, Random random, LeaseLink& link,
           ProviderIdSeen provider_id_seen);

  // Before anything else, and again as it becomes known: what a whole site does at a start, and
  // what it reports of jobs that run on many nodes, is spread over its nodes. A Lease that this
  // machine holds is renewed meanwhile.
  void set_site(const SitePlace& site, Now now);
  void set_desired(node::DesiredNode desired, Now now);
  // The beginning of step(), for who has much to do before it: reads the Node and its Lease where
  // there is none of ours. From the moment that they are found to be ours the Lease is renewed. Of
  // what is desired only what tells machines apart must be known. Whether anything was read.
  bool look(Now now);
  void set_cluster(std::string cluster) { cluster_ = std::move(cluster); }
  SteadyTime step(Now now);

  // Sends the desired state at once, whatever the timers say (host shutdown). An error too where
  // there is no Node of ours.
  Status flush(Now now);

  bool registered() const { return observed_.has_value(); }
  // slurmlet-operator's annotation on our Node: "" where it has none, nothing while it is not
  // known.
  std::optional<std::string> record() const {
    const auto& node = observed_ || !found_ ? observed_ : found_->node;
    return node ? std::optional{node::record_of(*node)} : std::nullopt;
  }
  // Whether slurmlet-operator has taken this machine out of Slurm; nothing while it is not known.
  std::optional<bool> detached() const {
    if (observed_) {
      return node::is_detached(*observed_);
    }
    return let_go_ ? std::optional{end_->detached} : std::nullopt;
  }
  // A write or look that was denied is tried again soon.
  void credential_replaced(Now now);
  // Nothing of an earlier Node holds any longer: this is another Machine now.
  void forget_end();

  // Why this machine may not have the Node: somebody else's, run by another machine, or deleted
  // with its Machine, or deleted and recreate is off.
  const std::optional<std::string>& refusal() const { return refusal_; }
  // Whether that is since the Node went with its Machine.
  bool went_with_machine() const { return let_go_; }
  // Why the Node could not be registered or written; nothing after a success.
  const std::optional<Error>& write_error() const { return write_error_; }
  // When the current series of failures began.
  SteadyTime write_error_since() const { return write_error_since_; }
  // Why the Node is not as wanted although it can be written; "" = it is, or soon will be.
  std::string difference(Now now) const;

 private:
  Duration watch_lag() const;
  SteadyTime look_not_before() const { return std::max({next_try_, start_from_, told_by_}); }
  bool may_read_watch() const;
  void read_watch(Now now);
  std::string known_uid() const;
  void on_seen(const node::ObservedNode& seen);
  void on_gone(const std::optional<node::ObservedNode>& last, Now now);
  void on_deleted(Now now);
  void set_end(std::optional<node::NodeEnd> end);
  bool stays_gone(Now now);
  void end_let_go();
  void set_observed(std::optional<node::ObservedNode> observed);
  // What registration begins with.
  struct Found {
    std::optional<node::ObservedNode> node;  // ours; nothing = there is none
  };

  std::optional<Found> find(Now now);
  void publish_uid(const std::string& uid);
  void register_found(Found found, Now now);
  void create(Now now);
  void adopt(node::ObservedNode existing);
  void report_missing_taints(Now now);
  bool may_try() const { return !refusal_ || holder_refused_ || let_go_; }
  bool may_take_lease(Now now);
  void refuse_holder(const node::LeaseHolder& held, const node::HolderRuling& ruling, Now now);
  void take_over(const node::LeaseHolder& held);
  void let_go_if_refused(Now now);
  void announce(Now now);
  void remember_announced();
  void write_if_due(Now now);
  bool waits_with_news(bool news, Now now);
  Status write(const node::NodePatch& patch, Now now);
  void note_unkept(Now now);
  bool is_news(const node::NodePatch& patch);
  void note_revert(const node::NodePatch& patch, Now now);
  void hasten_conditions(const node::NodePatch& patch, Now now);
  bool is_quiet(Now now) const;
  void back_off(Now now);
  void note_write(bool again, Now now);
  void forget_former_writes();
  std::string contest() const;
  bool lacks_provider_id() const;
  Status write_provider_id(Now now);
  void on_failed_write(const Error& error, Now now);
  void on_write_error(const Error& error, Now now);
  void emit(bool warning, const std::string& reason, const std::string& message, Now now);
  node::DesiredNode effective_desired() const;

  kube::NodeApi& api_;
  kube::LeaseApi& leases_;
  kube::Watch<node::ObservedNode>& watch_;
  EventSink& events_;
  NodeSyncOptions options_;
  Random random_;
  LeaseLink& link_;
  ProviderIdSeen provider_id_seen_;
  Backoff backoff_;
  Backoff register_backoff_;  // there is no Node yet, and the API server is away
  Backoff recreate_backoff_;
  node::DesiredNode desired_;
  std::vector<node::Condition> announced_;  // conditions that events were made of
  std::string cluster_;                     // Slurm's, for the registration event
  std::optional<Found> found_;              // to be registered
  std::optional<node::ObservedNode> observed_;
  std::optional<node::NodePatch> unkept_;  // what the server does not keep as it is written
  int alterations_ = 0;                    // of writes in a row
  bool is_written_ = false;                // desired_, since it last changed
  Backoff revert_backoff_;                 // somebody changes back what we write
  SteadyTime revert_not_before_{};
  int reverts_ = 0;            // in a row
  std::string reverted_;       // by the last one: "the label type"
  bool reverted_now_ = false;  // and not written since
  SteadyTime contested_until_{};
  std::map<std::string, SteadyTime> hastened_;  // condition types, and when they were last wrong
  std::string provider_id_;                     // to re-create the Node with
  Backoff provider_id_backoff_;                 // the server rejects it
  Backoff provider_id_retry_;                   // it does not answer, or asks to come back later
  std::string provider_id_rejected_;            // why
  SteadyTime provider_id_not_before_{};
  std::optional<node::NodeEnd> end_;
  std::string lost_uid_;  // of a Node that a write found gone before the watch said so
  std::optional<std::string> refusal_;
  std::optional<node::HolderSighting> foreign_holder_;
  std::string told_holder_;  // the last one logged
  SteadyTime next_try_{};    // registration or write not before
  SteadyTime told_by_{};     // by then the watch has told how the Node ended
  SteadyTime next_report_{};
  SteadyTime recreated_at_{};
  SteadyTime found_at_{};  // to be ours
  SitePlace site_;
  std::optional<SteadyTime> begun_;
  SteadyTime start_from_{};              // by the place among all nodes of the site
  std::optional<SteadyTime> news_from_;  // when what waits may be written
  SteadyTime watch_next_ = kNever;
  bool watching_ = false;
  bool compared_ = false;  // desired and observed, since either changed
  bool ever_registered_ = false;
  bool gave_up_ = false;                 // deleted, and not to be re-created
  bool let_go_ = false;                  // gone with its Machine; next_try_ says until when
  bool holder_refused_ = false;          // refusal_ is about the Lease: ends by itself
  bool uuid_label_surrendered_ = false;  // a label sync took metal3.io/uuid away: leave it
  bool held_back_ = false;               // a write waits for revert_not_before_
  std::optional<Error> write_error_;
  SteadyTime write_error_since_{};
};

}  // namespace slurmlet::sync
