#pragma once

// Reviews under way, by what they ask, and the requests that wait for each: whoever asks the same
// waits for the same. Not thread-safe.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/review_api.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

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

// Takes out what has been answered.
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
