#include "operator/record_publisher.h"

#include <algorithm>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

// In one step, which blocks.
constexpr int kBurst = 10;
constexpr Duration kLongestBurst = std::chrono::seconds{1};
constexpr Duration kFirstWritePause = std::chrono::seconds{5};
// Where it may be the server's fault, and where others could be written meanwhile.
constexpr Duration kLongestWritePause = std::chrono::seconds{30},
                   kLongestOwn = std::chrono::minutes{5};
constexpr Duration kApart = std::chrono::milliseconds{1000} / RecordPublisher::kWritesPerSecond;

}  // namespace

void RecordPublisher::want(const std::string& node, Urgency urgency) {
  if (urgency == Urgency::kNone) {
    return;
  }
  const auto [known, is_new] = places_.try_emplace(node, Place{urgency, ++places_given_});
  Place& place = known->second;
  if (!is_new && place.urgency <= urgency) {
    return;
  }
  queue_.erase(place);
  place.urgency = urgency;
  queue_.emplace(place, node);
}

void RecordPublisher::forget(const std::string& node) {
  if (node == failed_) {
    problem_.clear();
  }
  drop(node);
}

void RecordPublisher::drop(const std::string& node) {
  troubled_.erase(node);
  if (const auto known = places_.find(node); known != places_.end()) {
    queue_.erase(known->second);
    places_.erase(known);
  }
}

void RecordPublisher::forget_all() {
  places_.clear();
  queue_.clear();
  troubled_.clear();
  problem_.clear();
}

// Most of a write's cost is the wake-up, so they wait until a burst is due.
SteadyTime RecordPublisher::due() const {
  if (places_.empty()) {
    return kNever;
  }
  const SteadyTime burst = next_ + kApart * (kBurst - 1);
  if (troubled_.size() < places_.size()) {
    return burst;
  }
  SteadyTime first = kNever;
  for (const auto& [node, trouble] : troubled_) {
    first = std::min(first, trouble.until);
  }
  return std::max(burst, first);
}

const std::string* RecordPublisher::next_node(SteadyTime now) const {
  const auto found = std::find_if(queue_.begin(), queue_.end(), [&](const auto& entry) {
    const auto trouble = troubled_.find(entry.second);
    return trouble == troubled_.end() || now >= trouble->second.until;
  });
  return found == queue_.end() ? nullptr : &found->second;
}

void RecordPublisher::put_off(const std::string& node) {
  Trouble& trouble = troubled_[node];
  const Duration longest = trouble.writes == writes_ ? kLongestWritePause : kLongestOwn;
  const Duration longer = std::min(2 * trouble.pause, longest);
  trouble.pause = std::max({kFirstWritePause, trouble.pause, longer});
  trouble.until = clock_.now().steady + trouble.pause;
  trouble.writes = writes_;
}

// False when none waits.
bool RecordPublisher::write_next(SteadyTime now,
                                 const std::function<void(const std::string&)>& written) {
  const std::string* next = next_node(now);
  if (next == nullptr) {
    return false;
  }
  const std::string node = *next;
  const Text text = read_(node);
  next_ += kApart;
  if (text.annotation.empty()) {
    forget(node);
    return true;
  }
  const Status done = api_.annotate(node, text.uid, {{node::vocabulary::kRecord, text.annotation}});
  const SteadyTime ended = clock_.now().steady;
  if (done) {
    ++writes_;
    problem_.clear();
    backoff_.reset();
    drop(node);
    written(node);
    return true;
  }
  ++failures_;
  problem_ = last_failure_ = done.error().message;
  failed_ = node;
  if (!done.error().unanswered()) {
    drop(node);  // gone, another one, or refused for this Node: the next dump wants it again
    return true;
  }
  put_off(node);
  next_ = ended + backoff_.next(done.error().retry_after);
  return true;
}

SteadyTime RecordPublisher::step(SteadyTime now,
                                 const std::function<void(const std::string&)>& written) {
  next_ = std::max(next_, now - kApart * (kBurst - 1));  // what was saved up while idle
  if (now >= due()) {
    while (now >= next_ && clock_.now().steady - now < kLongestBurst && may_act_() &&
           write_next(now, written)) {
    }
  }
  return std::max(due(), now);
}

}  // namespace slurmlet::op
