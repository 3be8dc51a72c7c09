#pragma once

// The newest immutable value of T, handed from one thread to others. All sharing between threads
// goes through this. Thread-safe.

#include <memory>
#include <mutex>
#include <utility>

namespace slurmlet {

template <typename T>
class Published {
 public:
  void set(T value) {
    auto fresh = std::make_shared<const T>(std::move(value));
    const std::lock_guard lock{mutex_};
    value_.swap(fresh);
  }
  // nullptr before the first set().
  std::shared_ptr<const T> get() const {
    const std::lock_guard lock{mutex_};
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace slurmlet
