#pragma once

// A ListWatch whose objects are decoded to T: the one implementation of Watch<T>. Internal to the
// component.

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kube/api.h"
#include "kube/list_watch.h"

namespace slurmlet::kube {

template <typename T>
using Decode = std::function<Result<T>(const nlohmann::json&)>;

// Keeps the pages of a list until it is complete.
template <typename T>
class TypedWatch final : public Watch<T>, private ObjectSink {
 public:
  TypedWatch(std::unique_ptr<ListWatch> list_watch, Decode<T> decode)
      : list_watch_(std::move(list_watch)), decode_(std::move(decode)) {}

  SteadyTime step(Now now, std::vector<WatchEvent<T>>& events) override {
    events_ = &events;
    return list_watch_->step(now, *this);
  }
  std::optional<Error> last_error() const override { return list_watch_->last_error(); }
  void restart() override { list_watch_->restart(); }
  const std::vector<std::string>& unreadable() const override { return unreadable_; }
  void rest() override { list_watch_->rest(); }
  void credential_replaced(SteadyTime now) override { list_watch_->credential_replaced(now); }
  std::string position() const override { return list_watch_->position(); }
  void watch_from(const std::string& resource_version) override {
    list_watch_->watch_from(resource_version);
  }

 private:
  using Type = typename WatchEvent<T>::Type;

  void begin_list() override {
    listed_.clear();
    left_out_.clear();
  }

  bool page(const nlohmann::json& items) override {
    if (!items.is_array()) {
      return false;
    }
    for (const nlohmann::json& item : items) {
      if (auto object = decode_(item)) {
        listed_.push_back(*std::move(object));
      } else {
        left_out_.push_back(object_name(item));
      }
    }
    return true;
  }

  void unreadable(std::string name) override { left_out_.push_back(std::move(name)); }

  bool end_list() override {
    unreadable_ = std::exchange(left_out_, {});
    auto objects = std::exchange(listed_, {});
    if (unreadable_.empty()) {
      events_->push_back({Type::kReplaced, std::move(objects)});
      return true;
    }
    // What could not be read is still there, and must not be taken for deleted.
    for (T& object : objects) {
      events_->push_back({Type::kModified, {std::move(object)}});
    }
    return false;
  }

  bool changed(Change change, const nlohmann::json& value) override {
    auto object = decode_(value);
    if (!object) {
      return false;
    }
    const Type type = change == Change::kAdded      ? Type::kAdded
                      : change == Change::kModified ? Type::kModified
                                                    : Type::kDeleted;
    WatchEvent<T> event{type, {}};
    event.objects.push_back(*std::move(object));
    events_->push_back(std::move(event));
    return true;
  }

  std::unique_ptr<ListWatch> list_watch_;
  Decode<T> decode_;
  std::vector<WatchEvent<T>>* events_ = nullptr;  // of the step under way
  std::vector<T> listed_;                         // by the pages so far
  std::vector<std::string> left_out_;             // of these pages
  std::vector<std::string> unreadable_;           // of the last whole list
};

}  // namespace slurmlet::kube
