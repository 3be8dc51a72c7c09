#pragma once

// Answers by key for a time, in bounded memory: when it is full, the answer given longest ago goes.
// Not thread-safe.

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"

namespace slurmlet::podapi {

template <typename Value>
class ReviewCache {
 public:
  explicit ReviewCache(std::size_t max_entries) : max_entries_(max_entries) {}

  // nullptr if there is none, or none that still holds at `now`. Valid until the next put().
  const Value* find(const std::string& key, SteadyTime now) const {
    const auto found = by_key_.find(key);
    return found != by_key_.end() && now < found->second->until ? &found->second->value : nullptr;
  }
  // Whether there was an answer, even if it no longer holds.
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
  std::size_t size() const { return by_age_.size(); }

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

}  // namespace slurmlet::podapi
