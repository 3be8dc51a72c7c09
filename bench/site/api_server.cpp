#include "api_server.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fakes/fake_api.h"
#include "kube/rest_call.h"

namespace slurmlet::site {

using fakes::FakeNodeApi;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration kCall = kube::kCallTimeout;
constexpr Duration kRefusal = milliseconds{1};
constexpr Duration kBookmarks = seconds{60};

json conditions_of(const node::ObservedNode& node) {
  json list = json::array();
  for (const auto& [condition, since] : node.conditions) {
    list.push_back({{"type", condition.type},
                    {"status", condition.status},
                    {"reason", condition.reason},
                    {"message", condition.message},
                    {"lastTransitionTime", since}});
  }
  return list;
}

json node_info_of(const node::NodeInfo& info) {
  json object;
  for (const auto& [name, text] : node::kNodeInfoFields) {
    object[name] = info.*text;
  }
  if (info.swap_bytes) {
    object["swap"] = {{"capacity", *info.swap_bytes}};
  }
  return object;
}

// The value of a parameter of the query that is a number; 0 without it.
std::uint64_t number_in(const std::string& path, std::string_view key) {
  const auto at = path.find(key);
  std::uint64_t value = 0;
  if (at != std::string::npos) {
    std::from_chars(path.data() + at + key.size(), path.data() + path.size(), value);
  }
  return value;
}

bool is_of_pods(const http::Request& request) { return request.path.starts_with("/api/v1/pods"); }

std::string event_line(const char* type, const std::string& object) {
  return std::string{R"({"type":")"} + type + R"(","object":)" + object + "}\n";
}

std::string bookmark(bool of_pods, std::uint64_t version) {
  return event_line("BOOKMARK", std::string{R"({"kind":")"} + (of_pods ? "Pod" : "Node") +
                                    R"(","metadata":{"resourceVersion":")" +
                                    std::to_string(version) + "\"}}");
}

constexpr const char* kTooOld =
    R"({"kind":"Status","status":"Failure","message":"too old resource version",)"
    R"("reason":"Expired","code":410})";

}  // namespace

std::string node_json(const node::ObservedNode& node) {
  json taints = json::array();
  for (const auto& taint : node.taints) {
    taints.push_back({{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  }
  json addresses = json::array();
  for (const auto& address : node.addresses) {
    addresses.push_back({{"type", address.type}, {"address", address.address}});
  }
  json object{{"kind", "Node"},
              {"metadata",
               {{"name", node.name},
                {"uid", node.uid},
                {"resourceVersion", node.resource_version},
                {"labels", node.labels},
                {"annotations", node.annotations}}},
              {"spec",
               {{"providerID", node.provider_id},
                {"unschedulable", node.unschedulable},
                {"taints", std::move(taints)}}},
              {"status",
               {{"capacity", node.capacity},
                {"allocatable", node.allocatable},
                {"conditions", conditions_of(node)},
                {"addresses", std::move(addresses)},
                {"nodeInfo", node_info_of(node.node_info)},
                {"daemonEndpoints", {{"kubeletEndpoint", {{"Port", node.kubelet_port}}}}}}}};
  return object.dump();
}

std::optional<Error> ApiServer::contact(Count what, Duration timeout) {
  const Outage* outage = outage_at(outages, world.now().steady);
  if (outage == nullptr) {
    world.count(what);
    world.elapse(takes);
    return std::nullopt;
  }
  world.count(Count::kApiRefused);
  world.elapse(outage->hangs ? timeout : kRefusal);
  return outage->hangs ? Error{Code::kTimeout, "no answer"}
                       : Error{Code::kUnavailable, "connection refused"};
}

bool ApiServer::was_cut(SteadyTime since) const {
  const SteadyTime now = world.now().steady;
  return std::any_of(outages.begin(), outages.end(), [&](const Outage& outage) {
    // One that hangs keeps its connections until it is replaced.
    return (!outage.hangs && since < outage.from && outage.from <= now) ||
           (since < outage.to && outage.to <= now);
  });
}

// --- watches

class WatchStream final : public http::Stream {
 public:
  WatchStream(NodeAccess& access, const http::Request& request)
      : access_(access), of_pods_(is_of_pods(request)) {
    World& world = access.server_.world;
    opened_ = world.now().steady;
    const Outage* outage = outage_at(access.server_.outages, opened_);
    if (outage != nullptr) {
      world.count(Count::kWatchRefused);
      error_ = outage->hangs ? Error{Code::kTimeout, "no answer"}
                             : Error{Code::kUnavailable, "connection refused"};
      answered_ = ends_ = opened_ + (outage->hangs ? request.timeout : kRefusal);
      world.wake(access.main_, ends_);
      return;
    }
    world.count(of_pods_ ? Count::kPodWatch : Count::kNodeWatch);
    status_ = 200;
    answered_ = opened_ + access.server_.takes;
    world.wake(access.main_, answered_);
    if (number_in(request.path, "&resourceVersion=") < access.server_.oldest) {
      world.count(Count::kWatchEvent);
      news_ = event_line("ERROR", kTooOld);
      ends_ = answered_;
      return;
    }
    ends_ = opened_ + seconds{number_in(request.path, "&timeoutSeconds=")};
    world.wake(access.main_, ends_);
    bookmark_at_ = answered_ + kBookmarks;
    world.wake(access.main_, bookmark_at_);
  }

  int status() const override { return now() >= answered_ ? status_ : 0; }
  std::optional<Duration> retry_after() const override { return std::nullopt; }
  bool ended() const override { return now() >= ends_ || is_cut(); }
  std::optional<Error> error() const override {
    return is_cut() ? Error{Code::kUnavailable, "connection reset"} : error_;
  }

  std::string take() override {
    send_bookmark();
    return now() >= answered_ && !is_cut() ? std::exchange(news_, {}) : std::string{};
  }

 private:
  SteadyTime now() const { return access_.server_.world.now().steady; }
  bool is_cut() const { return status_ == 200 && access_.server_.was_cut(opened_); }

  void send_bookmark() {
    World& world = access_.server_.world;
    if (now() < bookmark_at_ || is_cut()) {
      return;
    }
    if (outage_at(access_.server_.outages, now()) == nullptr) {
      world.count(Count::kWatchEvent);
      news_ += bookmark(of_pods_, access_.server_.version);
    }
    bookmark_at_ = now() + kBookmarks;
    world.wake(access_.main_, bookmark_at_);
  }

  NodeAccess& access_;
  bool of_pods_;
  int status_ = 0;
  SteadyTime opened_{};
  SteadyTime answered_{};
  SteadyTime ends_ = kNever;
  SteadyTime bookmark_at_ = kNever;
  std::string news_;
  std::optional<Error> error_;
};

std::unique_ptr<http::Stream> NodeAccess::open_stream(const http::Request& request) {
  return std::make_unique<WatchStream>(*this, request);
}

Result<http::Response> NodeAccess::call(const http::Request& request) {
  const bool of_pods = is_of_pods(request);
  if (request.method != "GET" || (!of_pods && !request.path.starts_with("/api/v1/nodes?"))) {
    throw std::logic_error(request.method + " " + request.path + " is not simulated");
  }
  if (auto error = server_.contact(of_pods ? Count::kPodList : Count::kNodeList, request.timeout)) {
    return *error;
  }
  http::Response response;
  response.status = 200;
  response.body = R"({"kind":"List","metadata":{"resourceVersion":")" +
                  std::to_string(server_.version) + R"("},"items":[)" +
                  (!of_pods && node_ ? node_json(*node_) : std::string{}) + "]}";
  return response;
}

// --- Nodes

Error NodeAccess::absent() const { return {Code::kNotFound, "nodes \"" + name_ + "\" not found"}; }

void NodeAccess::changed() {
  node_->resource_version = std::to_string(++server_.version);
  server_.world.count(Count::kWatchEvent);
}

Result<node::ObservedNode> NodeAccess::get(const std::string& /*name*/) {
  if (auto error = server_.contact(Count::kNodeGet, kCall)) {
    return *error;
  }
  return node_ ? Result<node::ObservedNode>(*node_) : absent();
}

Result<node::ObservedNode> NodeAccess::create(const node::DesiredNode& desired, WallTime now) {
  if (auto error = server_.contact(Count::kNodePost, kCall)) {
    return *error;
  }
  if (node_) {
    return Error{Code::kConflict, "nodes \"" + name_ + "\" already exists"};
  }
  node_ = FakeNodeApi::observed(desired, now);
  node_->uid = "uid-" + std::to_string(server_.version);
  changed();
  return *node_;
}

Result<node::ObservedNode> NodeAccess::patch_status(const std::string& /*name*/,
                                                    const node::NodePatch& patch) {
  if (auto error = server_.contact(Count::kNodePatch, kCall)) {
    return *error;
  }
  if (!node_) {
    return absent();
  }
  FakeNodeApi::apply(patch, *node_);
  changed();
  return *node_;
}

Result<node::ObservedNode> NodeAccess::set_provider_id(const std::string&, const std::string&,
                                                       const std::string&) {
  throw std::logic_error("spec.providerID is not simulated");
}

Status NodeAccess::count_event(const kube::Event& /*event*/) {
  if (auto error = server_.contact(Count::kEvent, kCall)) {
    return *error;
  }
  ++server_.version;
  return {};
}

// --- Leases

Result<kube::Lease> NodeAccess::Leases::get(const std::string& /*name*/) {
  if (auto error = access_.server_.contact(Count::kLeaseGet, kCall)) {
    return *error;
  }
  return lease_ ? Result<kube::Lease>(*lease_) : Error{Code::kNotFound, "lease not found"};
}

Result<kube::Lease> NodeAccess::Leases::store(const kube::Lease& lease) {
  const SteadyTime now = access_.server_.world.now().steady;
  longest_gap_ = std::max(longest_gap_, lease_ ? now - renewed_ : Duration::zero());
  renewed_ = now;
  lease_ = lease;
  lease_->resource_version = std::to_string(++access_.server_.version);
  return *lease_;
}

Duration NodeAccess::longest_lease_gap() {
  const Duration open = leases_.lease_ ? server_.world.now().steady - leases_.renewed_ : Duration{};
  return std::max(std::exchange(leases_.longest_gap_, {}), open);
}

Result<kube::Lease> NodeAccess::Leases::create(const kube::Lease& lease) {
  if (auto error = access_.server_.contact(Count::kLeasePost, kCall)) {
    return *error;
  }
  return lease_ ? Error{Code::kConflict, "lease already exists"} : store(lease);
}

Result<kube::Lease> NodeAccess::Leases::update(const kube::Lease& lease) {
  if (auto error = access_.server_.contact(Count::kLeasePut, kCall)) {
    return *error;
  }
  if (lease_ && lease_->resource_version != lease.resource_version) {
    return Error{Code::kConflict, "the lease has been modified"};
  }
  return store(lease);
}

Result<kube::Lease> NodeAccess::Leases::renew_held(const std::string& /*name*/,
                                                   const std::string& holder,
                                                   const std::string& renew_time) {
  if (auto error = access_.server_.contact(Count::kLeasePut, kCall)) {
    return *error;
  }
  if (!lease_ || lease_->holder_identity != holder) {
    return Error{lease_ ? Code::kInvalid : Code::kNotFound, "no lease of this holder"};
  }
  kube::Lease lease = *lease_;
  lease.acquire_time = std::exchange(lease.renew_time, renew_time);
  return store(lease);
}

}  // namespace slurmlet::site
