#include "sync/pod_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "node/vocabulary.h"

namespace slurmlet::sync {
namespace {

using std::chrono::seconds;

// Restarts of the API server and resumed watches need no attention.
constexpr Duration kBlindPatience = seconds{15};

bool is_terminal(const kube::Pod& pod) { return pod.phase == "Failed" || pod.phase == "Succeeded"; }

// kubectl debug adds a container to a failed pod and waits for its outcome.
bool has_new_container(const kube::Pod& pod) {
  return pod.phase == "Failed" &&
         std::any_of(pod.ephemeral_containers.begin(), pod.ephemeral_containers.end(),
                     [](const auto& each) { return !each.has_ended; });
}

bool needs_nothing(const kube::Pod& pod) {
  return is_terminal(pod) && !pod.deleting && !has_new_container(pod);
}

std::string full_name(const kube::Pod& pod) { return pod.namespace_name + "/" + pod.name; }

}  // namespace

PodSync::PodSync(kube::PodApi& api, kube::Watch<kube::Pod>& watch, EventSink& events,
                 PodSyncOptions options, Random random)
    : api_(api),
      watch_(watch),
      events_(events),
      options_(std::move(options)),
      random_(std::move(random)),
      policy_(options_.max_backoff),
      failing_({}, {}) {}

std::size_t PodSync::waiting() const {
  return static_cast<std::size_t>(std::count_if(
      pods_.begin(), pods_.end(), [](const auto& entry) { return !entry.second.done; }));
}

std::string PodSync::message() const {
  return fmt::format(
      "node {} belongs to Slurm{} and runs no pods. Submit a Slurm job, or remove spec.nodeName or "
      "the toleration that brought the pod here.",
      options_.node_name,
      options_.cluster.empty() ? "" : fmt::format(" cluster \"{}\"", options_.cluster));
}

void PodSync::on_pod(const kube::Pod& pod, Now now) {
  if (needs_nothing(pod)) {
    pods_.erase(pod.uid);
    return;
  }
  const auto found = pods_.find(pod.uid);
  if (found == pods_.end()) {
    const SteadyTime due = pod.deleting || is_terminal(pod)
                               ? now.steady
                               : policy_.due(pod.controller ? pod.controller->uid : "", now.steady);
    pods_.emplace(pod.uid, Entry{pod, due, Backoff{Delay::kPodRetry, random_}, false});
    return;
  }
  Entry& entry = found->second;
  if (entry.pod != pod) {
    if (pod.deleting && !entry.pod.deleting) {
      entry.due = now.steady;  // finishing never waits
    }
    entry.pod = pod;
    entry.done = false;
  }
}

void PodSync::read_watch(Now now) {
  std::vector<kube::WatchEvent<kube::Pod>> events;
  watch_next_ = watch_.step(now, events);
  using Type = kube::WatchEvent<kube::Pod>::Type;
  for (const auto& event : events) {
    if (event.type == Type::kReplaced) {
      std::set<std::string> live;
      for (const auto& pod : event.objects) {
        live.insert(pod.uid);
      }
      std::erase_if(pods_, [&](const auto& entry) { return !live.contains(entry.first); });
    }
    for (const auto& pod : event.objects) {
      if (event.type == Type::kDeleted) {
        pods_.erase(pod.uid);
      } else {
        on_pod(pod, now);
      }
    }
  }
}

void PodSync::report_unseen(Now now) {
  const auto& unreadable = watch_.unreadable();
  for (const std::string& name : unreadable) {
    if (std::find(reported_unreadable_.begin(), reported_unreadable_.end(), name) ==
        reported_unreadable_.end()) {
      log::warning("pod " + name +
                   " cannot be read and is not rejected: it is larger than slurmlet accepts; "
                   "retrying every few minutes");
    }
  }
  if (unreadable.empty() && !reported_unreadable_.empty()) {
    log::info("all pods of this node can be read again");
  }
  if (reported_unreadable_ != unreadable) {
    reported_unreadable_ = unreadable;
  }
  const auto error = watch_.last_error();
  if (!error) {
    if (reported_blind_) {
      log::info("watching the pods bound to this node again");
    }
    blind_since_.reset();
    reported_blind_ = false;
    return;
  }
  blind_since_ = blind_since_.value_or(now.steady);
  if (!reported_blind_ && now.steady - *blind_since_ >= kBlindPatience) {
    reported_blind_ = true;
    log::warning("cannot watch the pods bound to this node: " + error->message);
  }
}

Status PodSync::reject(const kube::Pod& pod, Now now) {
  const std::string reason = node::vocabulary::kPodRejectedReason;
  Status failed = api_.set_failed(pod, reason, message());
  if (!failed || is_terminal(pod)) {
    return failed;
  }
  ++rejected_;
  const std::string owner =
      pod.controller ? fmt::format(" (of {} {})", pod.controller->kind, pod.controller->name) : "";
  const int rounds = pod.controller ? policy_.rounds(pod.controller->uid) : 0;
  log::info(fmt::format("rejected pod {}{}{}", full_name(pod), owner,
                        rounds > 0 ? fmt::format(", round {}", rounds + 1) : ""));
  const std::string key = pod.controller ? pod.controller->uid : pod.namespace_name;
  events_.emit(
      {"Node", "", options_.node_name, options_.node_uid}, true, kPodRejected,
      fmt::format("rejected pod {}{}: node accepts no pods; repeats are counted in this event",
                  full_name(pod), owner),
      key, now);
  if (rounds >= 2) {
    events_.emit({"Node", "", options_.node_name, options_.node_uid}, true, "PodCreationLoop",
                 fmt::format("{} {} in namespace {} keeps creating pods for this node; they are "
                             "rejected at increasing intervals",
                             pod.controller->kind, pod.controller->name, pod.namespace_name),
                 pod.namespace_name, now);  // not behind those of its pods, so one for a namespace
  } else {
    events_.emit({"Pod", pod.namespace_name, pod.name, pod.uid}, true, reason, message(), pod.uid,
                 now);
  }
  return failed;
}

// As a kubelet does: the end is reported before the pod is gone.
Status PodSync::finish(kube::Pod& pod) {
  if (!is_terminal(pod)) {
    TRY(api_.set_failed(pod, node::vocabulary::kPodRejectedReason, message()));
    pod.phase = "Failed";
  }
  return api_.remove_now(pod);
}

// Whether to continue with the next pod: an unresponsive API server would stall the loop at each.
bool PodSync::handle(Entry& entry, Now now) {
  kube::Pod& pod = entry.pod;
  const Status done = pod.deleting ? finish(pod) : reject(pod, now);
  // Not kConflict or kInvalid: they may come for a pod that is still there, and for another one of
  // the same name the watch soon ends the retries.
  if (done || done.error().code == Code::kNotFound) {
    entry.done = true;
    failing_.forget(pod.namespace_name);
    finished_ += done && pod.deleting ? 1 : 0;
    return true;
  }
  if (done.error().code == Code::kCancelled) {
    return true;  // we are being stopped
  }
  if (entry.backoff.failures() == 0) {
    log::warning("pod " + full_name(pod) + " not rejected yet: " + done.error().message);
  }
  failing_.failed(pod.namespace_name, now.steady);
  const Duration requested = requested_pause(done.error().retry_after, random_);
  if (done.error().retry_after) {
    not_before_ =
        now.steady + requested;  // the others go first then: it may be about this pod alone
  }
  entry.due = now.steady + requested + entry.backoff.next();
  return done.error().code != Code::kTimeout && !done.error().retry_after;
}

SteadyTime PodSync::step(Now now) {
  read_watch(now);
  report_unseen(now);
  policy_.forget_idle(now.steady);
  if (pods_.empty()) {
    failing_.forget_all();
  }
  std::vector<Entry*> due;
  for (auto& [uid, entry] : pods_) {
    if (!entry.done && entry.due <= now.steady && not_before_ <= now.steady) {
      due.push_back(&entry);
    }
  }
  std::ranges::stable_sort(due, {}, [this](const Entry* entry) {
    return std::pair{failing_.not_before(entry->pod.namespace_name), entry->due};
  });
  due.resize(std::min<std::size_t>(due.size(), kCallsPerStep));
  for (Entry* entry : due) {
    if (!handle(*entry, now)) {
      break;
    }
  }
  SteadyTime next = watch_next_;
  for (const auto& [uid, entry] : pods_) {
    if (!entry.done) {
      next = std::min(next, std::max(entry.due, not_before_));
    }
  }
  return next;
}

}  // namespace slurmlet::sync
