#pragma once

// Running reviews by the API server, and a cache of their results. Not thread-safe.

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/review_api.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

// Results by key, with expiry, in bounded memory: the oldest is evicted.
template <typename Value>
class ReviewCache {
 public:
  explicit ReviewCache(std::size_t max_entries) : max_entries_(max_entries) {}

  // nullptr if there is none or it has expired. Valid until the next put().
  const Value* find(const std::string& key, SteadyTime now) const {
    const auto found = by_key_.find(key);
    return found != by_key_.end() && now < found->second->until ? &found->second->value : nullptr;
  }
  // Whether there is a result, even an expired one.
  bool remembers(const std::string& key) const { return by_key_.contains(key); }

  void put(const std::string& key, Value value, SteadyTime until) {
    erase(key);
    by_age_.push_back({key, std::move(value), until});
    by_key_[key] = std::prev(by_age_.end());
    while (by_age_.size() > max_entries_) {
      by_key_.erase(by_age_.front().key);
      by_age_.pop_front();
    }
  }
  void erase(const std::string& key) {
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      by_age_.erase(found->second);
      by_key_.erase(found);
    }
  }

 private:
  struct Entry {
    std::string key;
    Value value;
    SteadyTime until;
  };
  std::size_t max_entries_;
  std::list<Entry> by_age_;
  std::unordered_map<std::string, typename std::list<Entry>::iterator> by_key_;
};

// A running review and the requests that share it.
template <typename T>
struct Review {
  std::unique_ptr<kube::PendingCall<T>> call;
  std::vector<RequestId> waiters;
};

template <typename T>
struct Finished {
  std::string key;
  std::vector<RequestId> waiters;
  Result<T> result;
};

template <typename T>
using Reviews = std::map<std::string, Review<T>>;

// Removes and returns the finished reviews.
template <typename T>
std::vector<Finished<T>> take_finished(Reviews<T>& reviews, SteadyTime now) {
  std::vector<Finished<T>> finished;
  for (auto review = reviews.begin(); review != reviews.end();) {
    if (auto result = review->second.call->poll(now)) {
      finished.push_back({review->first, std::move(review->second.waiters), *std::move(result)});
      review = reviews.erase(review);
    } else {
      ++review;
    }
  }
  return finished;
}

template <typename T>
SteadyTime earliest_deadline(const Reviews<T>& reviews) {
  SteadyTime earliest = kNever;
  for (const auto& [key, review] : reviews) {
    earliest = std::min(earliest, review.call->deadline());
  }
  return earliest;
}

template <typename T>
void drop_waiter(Reviews<T>& reviews, RequestId id) {
  for (auto& [key, review] : reviews) {
    std::erase(review.waiters, id);
  }
}

}  // namespace slurmlet::podapi
