#include "operator/record_publisher.h"

#include <algorithm>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

// In one step, which blocks.
constexpr int kBurst = 10;
constexpr Duration kLongestBurst = std::chrono::seconds{1};
constexpr Duration kApart = std::chrono::milliseconds{1000} / RecordPublisher::kWritesPerSecond;

}  // namespace

void RecordPublisher::want(const std::string& node, Urgency urgency) {
  if (urgency == Urgency::kNone) {
    return;
  }
  const auto [known, is_new] = urgency_of_.try_emplace(node, urgency);
  if (!is_new && known->second <= urgency) {
    return;
  }
  if (!is_new) {
    queues_[static_cast<std::size_t>(known->second)].erase(node);
    known->second = urgency;
  }
  queues_[static_cast<std::size_t>(urgency)].insert(node);
}

void RecordPublisher::forget(const std::string& node) {
  if (const auto known = urgency_of_.find(node); known != urgency_of_.end()) {
    queues_[static_cast<std::size_t>(known->second)].erase(node);
    urgency_of_.erase(known);
  }
}

void RecordPublisher::forget_all() {
  urgency_of_.clear();
  for (auto& queue : queues_) {
    queue.clear();
  }
}

// Most of a write's cost is the wake-up, so they wait until a burst is due.
SteadyTime RecordPublisher::due() const {
  return urgency_of_.empty() ? kNever : next_ + kApart * (kBurst - 1);
}

// False when none waits.
bool RecordPublisher::write_next(SteadyTime now,
                                 const std::function<void(const std::string&)>& written) {
  const auto queue = std::find_if(queues_.begin(), queues_.end(),
                                  [](const auto& waiting) { return !waiting.empty(); });
  if (queue == queues_.end()) {
    return false;
  }
  const std::string node = *queue->begin();
  const Text text = read_(node);
  next_ += kApart;
  if (text.annotation.empty()) {
    forget(node);
    return true;
  }
  const Status done = api_.annotate(node, text.uid, {{node::vocabulary::kRecord, text.annotation}});
  if (done) {
    ++writes_;
    problem_.clear();
    backoff_.reset();
    forget(node);
    written(node);
    return true;
  }
  ++failures_;
  problem_ = last_failure_ = done.error().message;
  const Code code = done.error().code;
  if (code != Code::kUnavailable && code != Code::kTimeout) {
    forget(node);  // gone, another one, or refused for this Node: the next dump wants it again
    return true;
  }
  next_ = now + backoff_.next(done.error().retry_after);
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
