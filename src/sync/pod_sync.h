#pragma once

// Rejects every pod that is bound to this node: fails it at once with a reason that says what this
// node is, finishes it when it is being deleted, and forgets none. Controllers that keep
// re-creating pods here are slowed down (node/reject_policy.h).
//
// A pod that is being deleted fails too before it is removed: what holds it back by a finalizer
// (the Job controller) waits for a terminal phase.
//
// A step object without threads or sleeping; not thread-safe.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "base/keyed_backoff.h"
#include "kube/api.h"
#include "node/reject_policy.h"
#include "sync/event_sink.h"

namespace slurmlet::sync {

struct PodSyncOptions {
  std::string node_name;
  std::string cluster;  // Slurm cluster name, "" if unknown
  Duration max_backoff = std::chrono::seconds{60};
  std::string node_uid = {};
};

class PodSync {
 public:
  PodSync(kube::PodApi& api, kube::Watch<kube::Pod>& watch, EventSink& events,
          PodSyncOptions options, Random random);

  SteadyTime step(Now now);
  // The Node is not ours: ignores its pods until the next step().
  void rest() { watch_.rest(); }
  void credential_replaced(Now now) { watch_.credential_replaced(now.steady); }

  std::uint64_t rejected() const { return rejected_; }
  std::uint64_t finished() const { return finished_; }
  std::size_t waiting() const;
  // Pods that the API server has and that are too large for us.
  std::size_t unreadable() const { return watch_.unreadable().size(); }
  // Whether new pods are seen.
  bool sees() const { return !watch_.last_error(); }
  void set_cluster(const std::string& cluster) { options_.cluster = cluster; }
  void set_node_uid(std::string uid) { options_.node_uid = std::move(uid); }

 private:
  struct Entry {
    kube::Pod pod;
    SteadyTime due{};
    Backoff backoff;
    bool done = false;  // nothing left to do for this version of the pod
  };
  void read_watch(Now now);
  void on_pod(const kube::Pod& pod, Now now);
  void report_unseen(Now now);
  bool handle(Entry& entry, Now now);
  Status finish(kube::Pod& pod);
  Status reject(const kube::Pod& pod, Now now);
  std::string message() const;

  kube::PodApi& api_;
  kube::Watch<kube::Pod>& watch_;
  EventSink& events_;
  PodSyncOptions options_;
  Random random_;
  node::RejectPolicy policy_;
  SteadyTime not_before_{};  // the API server requested a pause
  KeyedBackoff failing_;     // a namespace may fail for good (webhook, quota): it comes last
  std::map<std::string, Entry> pods_;  // by uid
  SteadyTime watch_next_ = kNever;
  std::vector<std::string> reported_unreadable_;
  std::optional<SteadyTime> blind_since_;
  bool reported_blind_ = false;
  std::uint64_t rejected_ = 0;
  std::uint64_t finished_ = 0;
};

}  // namespace slurmlet::sync
