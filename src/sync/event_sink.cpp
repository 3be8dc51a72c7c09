#include "sync/event_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/plain_text.h"

namespace slurmlet::sync {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kRepeatEvery = seconds{60};  // a raised count is sent at most this often
constexpr Duration kForgetAfter = minutes{10};
constexpr std::size_t kMaxKeyBytes = 1024;
// Both have a share that pods cannot use up: Node Events must survive a storm.
constexpr double kTokensForNode = 10;
constexpr std::size_t kKnownForNode = 32;

// Whether pods can cause any number of these Events.
bool is_of_pods(const std::string& involved_kind, const std::string& reason) {
  return involved_kind == "Pod" || reason == kPodRejected;
}

}  // namespace

EventSink::EventSink(kube::EventApi& api, std::string host, Random random, std::string component,
                     EventLimits limits)
    : api_(api),
      host_(std::move(host)),
      component_(std::move(component)),
      limits_(limits),
      backoff_(Delay::kEventRetry, std::move(random)),
      failing_({}, {}),
      tokens_({limits_.per_second, limits_.burst}) {}

void EventSink::emit(const kube::ObjectRef& about, bool warning, const std::string& reason,
                     const std::string& message, const std::string& key, Now now) {
  const std::string full_key =
      about.kind + "/" + about.name + "/" + reason + "/" + key.substr(0, kMaxKeyBytes);
  auto found = known_.find(full_key);
  if (found != known_.end() && now.steady - found->second.last_seen < kForgetAfter) {
    Known& known = found->second;
    ++known.event.count;
    known.event.last_seen = now.wall;
    known.last_seen = now.steady;
    if (!known.dirty) {
      known.dirty = true;
      known.send_at = known.created ? now.steady + kRepeatEvery : now.steady;
    }
    return;
  }
  if (known_.size() >= limits_.known - (is_of_pods(about.kind, reason) ? kKnownForNode : 0)) {
    ++dropped_;
    return;
  }
  Known known;
  known.event = {
      .namespace_name = about.namespace_name.empty() ? "default" : about.namespace_name,
      .name = fmt::format(
          "{}.{:x}{:04x}", about.name,
          std::chrono::duration_cast<std::chrono::microseconds>(now.wall.time_since_epoch())
              .count(),
          ++sequence_ & 0xffffU),
      .type = warning ? "Warning" : "Normal",
      .reason = reason,
      .message = plain_text(message),
      .about = about,
      .source_component = component_,
      .source_host = host_,
      .first_seen = now.wall,
      .last_seen = now.wall,
  };
  known.dirty = true;
  known.send_at = now.steady + delay_;
  known.last_seen = now.steady;
  known_.insert_or_assign(full_key, std::move(known));
}

Status EventSink::send(Known& known) {
  if (known.created) {
    Status updated = api_.update(known.event);
    if (updated || updated.error().code != Code::kNotFound) {
      return updated;
    }
  }
  Status created = api_.create(known.event);
  if (!created && created.error().code == Code::kConflict) {
    // An earlier create whose answer got lost.
    created = api_.update(known.event);
  }
  known.created = known.created || created.has_value();
  return created;
}

void EventSink::forget_old(SteadyTime now) {
  std::erase_if(known_, [&](const auto& entry) {
    return !entry.second.dirty && now - entry.second.last_seen > kForgetAfter;
  });
  if (known_.empty()) {
    failing_.forget_all();
  }
}

// Whether to go on with the next.
bool EventSink::send_in_turn(Known& known, Now now) {
  const std::string& namespace_name = known.event.namespace_name;
  const Status sent = send(known);
  if (!sent && sent.error().code == Code::kCancelled) {
    return false;  // by a signal; the next step tries again
  }
  if (!sent && sent.error().unanswered()) {
    // Either the API server is down or one namespace fails: try the others first.
    not_before_ = now.steady + backoff_.next(sent.error().retry_after);
    known.send_at = not_before_;
    failing_.failed(namespace_name, now.steady);
    return false;
  }
  failing_.forget(namespace_name);
  backoff_.reset();
  if (!sent) {
    log::debug("event " + known.event.reason + " not sent: " + sent.error().message);
    ++dropped_;
  }
  known.dirty = false;
  return true;
}

void EventSink::flush(Now now) {
  for (auto& [key, known] : known_) {
    known.send_at = std::min(known.send_at, now.steady);
  }
  (void)step(now);
}

SteadyTime EventSink::step(Now now) {
  if (now.steady < not_before_) {
    return not_before_;
  }
  std::vector<Known*> due;
  for (auto& [key, known] : known_) {
    if (known.dirty && known.send_at <= now.steady) {
      due.push_back(&known);
    }
  }
  std::ranges::stable_sort(due, {}, [this](const Known* known) {
    return std::pair{failing_.not_before(known->event.namespace_name), known->send_at};
  });
  int calls_left = kCallsPerStep;
  for (Known* known : due) {
    if (calls_left == 0) {
      break;
    }
    const bool of_pods = is_of_pods(known->event.about.kind, known->event.reason);
    if (!tokens_.take(now.steady, of_pods ? 1 + kTokensForNode : 1)) {
      known->send_at = now.steady + std::chrono::duration_cast<Duration>(
                                        std::chrono::duration<double>(1 / limits_.per_second));
      continue;
    }
    --calls_left;
    if (!send_in_turn(*known, now)) {
      break;
    }
  }
  SteadyTime next = kNever;
  for (const auto& [key, known] : known_) {
    if (known.dirty) {
      next = std::min(next, std::max(known.send_at, not_before_));
    }
  }
  forget_old(now.steady);
  return next;
}

}  // namespace slurmlet::sync
