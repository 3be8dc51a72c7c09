#include "operator/nodes/record_publisher.h"

#include <algorithm>
#include <tuple>

#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

// Limits of one step, whose writes block.
constexpr int kBurst = 10;
constexpr Duration kLongestBurst = std::chrono::seconds{1};
constexpr Duration kFirstWritePause = std::chrono::seconds{5};
constexpr Duration kLongestWritePause = std::chrono::minutes{1};
constexpr Duration kApart = std::chrono::milliseconds{1000} / RecordPublisher::kWritesPerSecond;

}  // namespace

RecordPublisher::RecordPublisher(kube::SiteApi& api, Read read, std::function<bool()> may_act,
                                 const Clock& clock, Random random)
    : api_(api),
      read_(std::move(read)),
      may_act_(std::move(may_act)),
      clock_(clock),
      backoff_(std::chrono::milliseconds{200}, std::chrono::seconds{1}, std::chrono::seconds{30},
               std::move(random)),
      failed_(kFirstWritePause, kLongestWritePause) {}

void RecordPublisher::want(const std::string& node, Urgency urgency) {
  if (urgency != Urgency::kNone) {
    Waiting& one = waiting_.try_emplace(node, Waiting{urgency, ++arrivals_}).first->second;
    one.urgency = std::min(one.urgency, urgency);
  }
}

void RecordPublisher::forget(const std::string& node) {
  if (node == failed_node_) {
    problem_.clear();
  }
  failed_.forget(node);
  waiting_.erase(node);
}

void RecordPublisher::forget_all() {
  waiting_.clear();
  failed_.forget_all();
  problem_.clear();
}

// A wake-up costs more than a write, so writes are batched into bursts.
SteadyTime RecordPublisher::due() const {
  SteadyTime first = kNever;
  for (auto one = waiting_.begin(); first > next_ && one != waiting_.end(); ++one) {
    first = std::min(first, failed_.not_before(one->first));
  }
  return first == kNever ? kNever : std::max(next_ + kApart * (kBurst - 1), first);
}

std::vector<std::string> RecordPublisher::next_nodes(SteadyTime now) const {
  std::vector<std::tuple<Urgency, std::uint64_t, std::string>> ready;
  for (const auto& [node, one] : waiting_) {
    if (failed_.may_try(node, now)) {
      ready.emplace_back(one.urgency, one.number, node);
    }
  }
  const auto end = ready.begin() + std::min<std::ptrdiff_t>(kBurst, std::ssize(ready));
  std::partial_sort(ready.begin(), end, ready.end());
  std::vector<std::string> out;
  std::transform(ready.begin(), end, std::back_inserter(out),
                 [](const auto& one) { return std::get<std::string>(one); });
  return out;
}

void RecordPublisher::write(const std::string& node,
                            const std::function<void(const std::string&)>& written) {
  const Text text = read_(node);
  next_ += kApart;
  if (text.annotation.empty()) {
    forget(node);
    return;
  }
  const Status done = api_.annotate(node, text.uid, {{node::vocabulary::kRecord, text.annotation}});
  if (done) {
    ++writes_;
    problem_.clear();
    backoff_.reset();
    forget(node);
    written(node);
    return;
  }
  ++failures_;
  if (done.error().unanswered()) {
    const SteadyTime ended = clock_.now().steady;
    failed_.failed(node, ended);
    next_ = ended + backoff_.next(done.error().retry_after);
  } else {
    forget(node);  // deleted, replaced or rejected; the next dump requests it again
  }
  problem_ = last_failure_ = done.error().message;
  failed_node_ = node;
}

SteadyTime RecordPublisher::step(SteadyTime now,
                                 const std::function<void(const std::string&)>& written) {
  next_ = std::max(next_, now - kApart * (kBurst - 1));  // idle time earns one burst
  if (now >= due()) {
    for (const auto& node : next_nodes(now)) {
      if (now < next_ || clock_.now().steady - now >= kLongestBurst || !may_act_()) {
        break;
      }
      write(node, written);
    }
  }
  return std::max(due(), now);
}

}  // namespace slurmlet::op
