#pragma once

// A ListWatch whose objects are decoded to T: the one implementation of Watch<T>. Internal to the
// room.

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "kube/api.h"
#include "kube/list_watch.h"

namespace slurmlet::kube {

template <typename T>
using Decode = Result<T> (*)(const nlohmann::json&);

// Turns objects into WatchEvents of T.
template <typename T>
class TypedSink final : public ObjectSink {
 public:
  using Type = typename WatchEvent<T>::Type;
  TypedSink(Decode<T> decode, std::vector<WatchEvent<T>>& events)
      : decode_(decode), events_(events) {}

  bool replaced(const nlohmann::json& items) override {
    if (!items.is_array()) {
      return false;
    }
    WatchEvent<T> event{Type::kReplaced, {}};
    for (const nlohmann::json& item : items) {
      auto object = decode_(item);
      if (!object) {
        return false;
      }
      event.objects.push_back(*std::move(object));
    }
    events_.push_back(std::move(event));
    return true;
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
    events_.push_back(std::move(event));
    return true;
  }

 private:
  Decode<T> decode_;
  std::vector<WatchEvent<T>>& events_;
};

template <typename T>
class TypedWatch final : public Watch<T> {
 public:
  TypedWatch(std::unique_ptr<ListWatch> list_watch, Decode<T> decode)
      : list_watch_(std::move(list_watch)), decode_(decode) {}

  SteadyTime step(Now now, std::vector<WatchEvent<T>>& events) override {
    TypedSink<T> sink(decode_, events);
    return list_watch_->step(now, sink);
  }
  std::optional<Error> last_error() const override { return list_watch_->last_error(); }

 private:
  std::unique_ptr<ListWatch> list_watch_;
  Decode<T> decode_;
};

}  // namespace slurmlet::kube
