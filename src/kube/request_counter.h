#pragma once

// Counts the requests to the API server by verb and HTTP status, for /metrics. Thread-safe.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace slurmlet::kube {

class RequestCounter {
 public:
  // GET, LIST, WATCH, POST, PUT, PATCH or DELETE, and the HTTP status; 0 = no answer.
  using Key = std::pair<std::string, int>;

  void count(const std::string& verb, int status) {
    const std::lock_guard lock(mutex_);
    ++counts_[{verb, status}];
    if (status == 401) {
      ++unauthorized_;
    } else if (status != 0) {
      unauthorized_ = 0;
    }
  }
  // Answers 401 since the last other one: the server does not take our credential.
  std::uint64_t unauthorized_in_a_row() const {
    const std::lock_guard lock(mutex_);
    return unauthorized_;
  }
  std::map<Key, std::uint64_t> snapshot() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<Key, std::uint64_t> counts_;
  std::uint64_t unauthorized_ = 0;
};

}  // namespace slurmlet::kube
