#pragma once

// The API server in memory, behind the interfaces of kube/api.h: uids, resourceVersions, conflicts
// and strategic merge as the real one does them (the contract tests in test/unit/kube/contract pin
// the real one). Errors can be scripted; every call is logged as "verb name". Thread-safe, so that
// a test may look on while a loop runs.

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/rfc3339.h"
#include "kube/api.h"
#include "node/node_fixtures.h"

namespace slurmlet::fakes {

// Scripted errors and the log of calls, common to all fakes.
class Scripted {
 public:
  // The next `times` calls fail with `error`.
  void fail_next(const Error& error, int times = 1) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < times; ++i) {
      queue_.emplace_back(error);
    }
  }
  // The next call goes through (to script a failure after it).
  void pass_next() {
    const std::lock_guard lock(mutex_);
    queue_.emplace_back(std::nullopt);
  }
  // Every call fails until told otherwise; nothing = works again.
  void fail_always(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    always_ = std::move(error);
  }
  // Calls that begin so fail until told otherwise; nothing = work again.
  void fail_calls(const std::string& beginning, std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    failing_ = beginning;
    failure_ = std::move(error);
  }
  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int count(const std::string& call) const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::count(calls_.begin(), calls_.end(), call));
  }
  // Calls that change something, whether they succeeded or not.
  int writes() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::ranges::count_if(calls_, [](const std::string& call) {
      return !call.starts_with("get ") && !call.starts_with("watch ");
    }));
  }
  void clear_calls() {
    const std::lock_guard lock(mutex_);
    calls_.clear();
  }

 protected:
  // Logs the call and gives the error it is to fail with. Called with mutex_ held.
  std::optional<Error> begin(const std::string& call) {
    calls_.push_back(call);
    if (!queue_.empty()) {
      const auto error = queue_.front();
      queue_.pop_front();
      return error;
    }
    return failure_ && call.starts_with(failing_) ? failure_ : always_;
  }
  std::string next_version() { return std::to_string(++version_); }

  mutable std::mutex mutex_;

 private:
  std::deque<std::optional<Error>> queue_;
  std::optional<Error> always_, failure_;
  std::string failing_;
  std::vector<std::string> calls_;
  int version_ = 1000;
};

// The objects of one kind that the server holds.
template <typename T>
class Stored : public Scripted {
 public:
  std::optional<T> find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto at = held_.find(name);
    return at == held_.end() ? std::nullopt : std::optional(at->second);
  }
  void remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    held_.erase(name);
  }

 protected:
  // Null if there is none. Called with mutex_ held.
  T* at(const std::string& name) {
    const auto found = held_.find(name);
    return found == held_.end() ? nullptr : &found->second;
  }
  static Error absent(const std::string& name) {
    return {Code::kNotFound, name + ": 404 Not Found: \"" + name + "\" not found"};
  }
  static Error exists(const std::string& name) {
    return {Code::kConflict, "POST: 409 Conflict: \"" + name + "\" already exists"};
  }
  static Error invalid(const std::string& why) {
    return {Code::kInvalid, "422 Unprocessable Content: " + why};
  }

  std::map<std::string, T> held_;
};

class FakeNodeApi final : public kube::NodeApi, public Stored<node::ObservedNode> {
 public:
  // --- the server's state, for the test
  void put(node::ObservedNode node) {
    const std::lock_guard lock(mutex_);
    if (node.uid.empty()) {
      node.uid = "node-uid-" + std::to_string(++uids_);
    }
    node.resource_version = next_version();
    held_.insert_or_assign(node.name, node);
  }
  // What an administrator does to the Node.
  void change(const std::string& name, const std::function<void(node::ObservedNode&)>& edit) {
    const std::lock_guard lock(mutex_);
    node::ObservedNode& node = held_.at(name);
    edit(node);
    node.resource_version = next_version();
  }
  // An admission plugin: what it does to each Node that is written.
  std::function<void(node::ObservedNode&)> admit = [](node::ObservedNode&) {};
  std::vector<node::NodePatch> patches() const {
    const std::lock_guard lock(mutex_);
    return patches_;
  }
  std::vector<node::DesiredNode> created() const {
    const std::lock_guard lock(mutex_);
    return created_;
  }

  std::string server = "v1.37.2";

  // --- kube::NodeApi
  Result<std::string> server_version() override {
    const std::lock_guard lock(mutex_);
    const auto error = begin("server_version");
    return error ? Result<std::string>(*error) : server;
  }

  Result<node::ObservedNode> get(const std::string& name) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("get " + name)) {
      return *error;
    }
    const auto* const node = at(name);
    return node == nullptr ? Result<node::ObservedNode>(absent(name)) : *node;
  }

  Result<node::ObservedNode> create(const node::DesiredNode& desired, WallTime now) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("create " + desired.name)) {
      return *error;
    }
    if (at(desired.name) != nullptr) {
      return exists(desired.name);
    }
    created_.push_back(desired);
    node::ObservedNode node = observed(desired, now);
    admit(node);
    node.uid = "node-uid-" + std::to_string(++uids_);
    node.resource_version = next_version();
    held_[desired.name] = node;
    return node;
  }

  Result<node::ObservedNode> patch_status(const std::string& name,
                                          const node::NodePatch& patch) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("patch_status " + name)) {
      return *error;
    }
    auto* const node = at(name);
    if (node == nullptr) {
      return absent(name);
    }
    if (!patch.uid.empty() && patch.uid != node->uid) {
      return invalid("metadata.uid: field is immutable");
    }
    patches_.push_back(patch);
    apply(patch, *node);
    admit(*node);
    node->resource_version = next_version();
    return *node;
  }

  Result<node::ObservedNode> set_provider_id(const std::string& name, const std::string& uid,
                                             const std::string& provider_id) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("set_provider_id " + name)) {
      return *error;
    }
    auto* const node = at(name);
    if (node == nullptr) {
      return absent(name);
    }
    if (uid != node->uid) {
      return invalid("metadata.uid: field is immutable");
    }
    if (!node->provider_id.empty() && node->provider_id != provider_id) {
      return invalid("spec.providerID: Forbidden");
    }
    node->provider_id = provider_id;
    node->resource_version = next_version();
    return *node;
  }

  // What the server holds after a create: admission adds the not-ready taint.
  static node::ObservedNode observed(const node::DesiredNode& desired, WallTime now) {
    node::ObservedNode node = node::observed_from(desired, rfc3339(now));
    node.uid.clear();
    node.unschedulable = desired.unschedulable;
    node.taints.push_back({"node.kubernetes.io/not-ready", "", "NoSchedule"});
    return node;
  }

  // Strategic merge of what a NodePatch can say.
  static void apply(const node::NodePatch& patch, node::ObservedNode& node) {
    merge(patch.labels, node.labels);
    merge(patch.annotations, node.annotations);
    merge(patch.capacity, node.capacity);
    merge(patch.allocatable, node.allocatable);
    std::erase_if(node.conditions, [&patch](const node::ObservedCondition& held) {
      return patch.removed_conditions.contains(held.condition.type);
    });
    for (const node::PatchedCondition& item : patch.conditions) {
      merge_condition(item, node.conditions);
    }
    if (patch.addresses) {
      node.addresses = *patch.addresses;
    }
    if (patch.node_info) {
      node.node_info = *patch.node_info;
    }
    if (patch.kubelet_port) {
      node.kubelet_port = *patch.kubelet_port;
    }
  }

 private:
  static void merge(const std::map<std::string, std::optional<std::string>>& changes,
                    std::map<std::string, std::string>& into) {
    for (const auto& [key, value] : changes) {
      if (value) {
        into[key] = *value;
      } else {
        into.erase(key);
      }
    }
  }
  static void merge_condition(const node::PatchedCondition& item,
                              std::vector<node::ObservedCondition>& into) {
    const auto at = std::ranges::find_if(into, [&item](const node::ObservedCondition& held) {
      return held.condition.type == item.condition.type;
    });
    if (at == into.end()) {
      into.push_back({item.condition, item.last_transition_time});
    } else {
      *at = {item.condition, item.last_transition_time};
    }
  }
  std::vector<node::NodePatch> patches_;
  std::vector<node::DesiredNode> created_;
  int uids_ = 0;
};

class FakeLeaseApi final : public kube::LeaseApi, public Stored<kube::Lease> {
 public:
  // What another writer does: the resourceVersion moves on.
  void put(kube::Lease lease) {
    const std::lock_guard lock(mutex_);
    lease.resource_version = next_version();
    held_[lease.name] = lease;
  }

  // What happens while a GET is under way.
  std::function<void()> during_get = [] {};

  Result<kube::Lease> get(const std::string& name) override {
    during_get();
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("get " + name)) {
      return *error;
    }
    const auto* const lease = at(name);
    return lease == nullptr ? Result<kube::Lease>(absent(name)) : *lease;
  }
  Result<kube::Lease> create(const kube::Lease& lease) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("create " + lease.name)) {
      return *error;
    }
    if (at(lease.name) != nullptr) {
      return exists(lease.name);
    }
    return store(lease);
  }
  Result<kube::Lease> update(const kube::Lease& lease) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("update " + lease.name)) {
      return *error;
    }
    const auto* const held = at(lease.name);
    if (held == nullptr) {
      return store(lease);  // Leases allow a PUT to create
    }
    if (lease.resource_version.empty()) {
      return invalid("metadata.resourceVersion: must be specified for an update");
    }
    if (lease.resource_version != held->resource_version) {
      return Error{Code::kConflict, "PUT lease: 409 Conflict: the object has been modified"};
    }
    return store(lease);
  }
  Result<kube::Lease> renew_held(const std::string& name, const std::string& holder,
                                 const std::string& renew_time) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("renew " + name)) {
      return *error;
    }
    const auto* const held = at(name);
    if (held == nullptr) {
      return absent(name);
    }
    kube::Lease lease = *held;
    if (lease.holder_identity != holder) {
      return invalid("the server rejected our request due to an error in our request");
    }
    lease.acquire_time = std::exchange(lease.renew_time, renew_time);
    return store(lease);
  }

 private:
  kube::Lease store(kube::Lease lease) {
    lease.resource_version = next_version();
    held_[lease.name] = lease;
    return lease;
  }
};

class FakePodApi final : public kube::PodApi, public Stored<kube::Pod> {
 public:
  struct Failed {
    std::string uid, reason, message;
  };
  void put(const kube::Pod& pod) {
    const std::lock_guard lock(mutex_);
    held_[key(pod)] = pod;
  }
  std::vector<Failed> failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

  Status set_failed(const kube::Pod& pod, const std::string& reason,
                    const std::string& message) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("set_failed " + key(pod))) {
      return *error;
    }
    auto* const held = at(key(pod));
    if (held == nullptr) {
      return absent(key(pod));
    }
    if (held->uid != pod.uid) {
      return invalid("field is immutable");
    }
    held->phase = "Failed";
    failed_.push_back({pod.uid, reason, message});
    return {};
  }
  Status remove_now(const kube::Pod& pod) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("remove_now " + key(pod))) {
      return *error;
    }
    const auto* const held = at(key(pod));
    if (held == nullptr) {
      return absent(key(pod));
    }
    if (held->uid != pod.uid) {
      return Error{Code::kConflict, "DELETE pod: 409 Conflict: UID precondition failed"};
    }
    held_.erase(key(pod));
    return {};
  }

 private:
  static std::string key(const kube::Pod& pod) { return pod.namespace_name + "/" + pod.name; }
  std::vector<Failed> failed_;
};

class FakeEventApi final : public kube::EventApi, public Scripted {
 public:
  // As the server holds them now, oldest first.
  std::vector<kube::Event> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  // The server forgets events after an hour.
  void expire_all() {
    const std::lock_guard lock(mutex_);
    events_.clear();
  }

  Status create(const kube::Event& event) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("create " + event.name)) {
      return *error;
    }
    if (find(event) != events_.end()) {
      return Error{Code::kConflict,
                   "POST events: 409 Conflict: events \"" + event.name + "\" already exists"};
    }
    events_.push_back(event);
    return {};
  }
  Status update(const kube::Event& event) override {
    const std::lock_guard lock(mutex_);
    if (const auto error = begin("update " + event.name)) {
      return *error;
    }
    const auto at = find(event);
    if (at == events_.end()) {
      return Error{Code::kNotFound,
                   "PATCH event: 404 Not Found: events \"" + event.name + "\" not found"};
    }
    at->count = event.count;
    at->message = event.message;
    at->last_seen = event.last_seen;
    return {};
  }

 private:
  std::vector<kube::Event>::iterator find(const kube::Event& event) {
    return std::ranges::find_if(events_, [&event](const kube::Event& held) {
      return held.namespace_name == event.namespace_name && held.name == event.name;
    });
  }
  std::vector<kube::Event> events_;
};

// A watch fed by the test. Not thread-safe.
template <typename T>
class FakeWatch final : public kube::Watch<T> {
 public:
  using Event = kube::WatchEvent<T>;
  void feed(typename Event::Type type, std::vector<T> objects) {
    pending_.push_back({type, std::move(objects)});
  }
  void fail(std::optional<Error> error) { error_ = std::move(error); }
  void set_wake(SteadyTime wake) { wake_ = wake; }
  int steps() const { return steps_; }

  SteadyTime step(Now, std::vector<Event>& events) override {
    ++steps_;
    for (Event& event : pending_) {
      events.push_back(std::move(event));
    }
    pending_.clear();
    return wake_;
  }
  std::optional<Error> last_error() const override { return error_; }
  // What a list gives; nothing: none is made.
  std::function<std::vector<T>()> list;
  void restart() override {
    pending_.clear();
    if (list) {
      feed(Event::Type::kReplaced, list());
    }
  }
  const std::vector<std::string>& unreadable() const override { return unreadable_; }
  void leave_out(std::vector<std::string> names) { unreadable_ = std::move(names); }
  void rest() override {}
  void credential_replaced(SteadyTime) override { ++credentials_; }
  int credentials() const { return credentials_; }  // so often replaced
  std::string position() const override { return position_; }
  void set_position(const std::string& position) { position_ = position; }

 private:
  std::string position_;
  std::vector<std::string> unreadable_;
  int credentials_ = 0;
  std::vector<Event> pending_;
  std::optional<Error> error_;
  SteadyTime wake_ = kNever;
  int steps_ = 0;
};

}  // namespace slurmlet::fakes
