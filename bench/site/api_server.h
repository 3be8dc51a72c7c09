#pragma once

// An API server for a simulated site. It knows Nodes, Leases, Events and the two watches of each
// node; pods there are none. It is up, refuses connections, or hangs; after each outage all watches
// are cut and a resourceVersion of before is too old (410), as a restarted server's cache has it.
// Nobody but the daemon changes its Node: a watch tells bookmarks, and the echo of a daemon's own
// writes, which changes nothing, is counted but not sent.
// Each node sees it through a NodeAccess of its own: what the daemon gets as http::Client and as
// the interfaces of kube/api.h.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "http/client.h"
#include "kube/api.h"
#include "world.h"

namespace slurmlet::site {

// core/v1 Node as a server sends it; kube::node_from_json() reads it back.
std::string node_json(const node::ObservedNode& node);

struct ApiServer {
  World& world;
  std::vector<Outage> outages = {};
  Duration takes = std::chrono::milliseconds{5};  // to answer a request
  std::uint64_t version = 1000;                   // resourceVersion of the last write
  std::uint64_t oldest = 0;                       // that a watch may begin with

  // Sends a request and waits for its answer; the error of one that gets none.
  std::optional<Error> contact(Count what, Duration timeout);
  // Whether an outage began or ended in (since, now]: the connections of before are dead.
  bool was_cut(SteadyTime since) const;
  // To be called when an outage is over.
  void forget_history() { oldest = ++version; }
};

// What the server holds of one node, and that node's connections. All calls are made by `main` but
// those for the Lease.
class NodeAccess final : public http::Client,
                         public kube::NodeApi,
                         public kube::EventApi,
                         public kube::PodApi {
 public:
  NodeAccess(ApiServer& server, Actor& main, std::string name)
      : server_(server), main_(main), name_(std::move(name)), leases_(*this) {}

  kube::LeaseApi& leases() { return leases_; }
  // The longest time without a renewal of the Lease, since the last call.
  Duration longest_lease_gap();
  // Wakes whoever watches: an outage begins or ends.
  void wake() { server_.world.wake(main_, server_.world.now().steady); }

  // --- http::Client, for the watches
  Result<http::Response> call(const http::Request& request) override;
  std::unique_ptr<http::Stream> open_stream(const http::Request& request) override;
  std::vector<int> wait(SteadyTime, const std::vector<int>&) override { return {}; }
  void interrupt() override {}
  void set_abort_fd(int) override {}
  void close_idle_connections() override {}
  std::string local_address() const override { return {}; }

  // --- kube::NodeApi
  Result<std::string> server_version() override { return std::string{"v1.37.2"}; }
  Result<node::ObservedNode> get(const std::string& name) override;
  Result<node::ObservedNode> create(const node::DesiredNode& desired, WallTime now) override;
  Result<node::ObservedNode> patch_status(const std::string& name,
                                          const node::NodePatch& patch) override;
  Result<node::ObservedNode> set_provider_id(const std::string& name, const std::string& uid,
                                             const std::string& provider_id) override;

  // --- kube::EventApi, kube::PodApi
  Status create(const kube::Event& event) override { return count_event(event); }
  Status update(const kube::Event& event) override { return count_event(event); }
  Status set_failed(const kube::Pod&, const std::string&, const std::string&) override {
    return {};
  }
  Status remove_now(const kube::Pod&) override { return {}; }

 private:
  friend class WatchStream;
  class Leases final : public kube::LeaseApi {
   public:
    explicit Leases(NodeAccess& access) : access_(access) {}
    Result<kube::Lease> get(const std::string& name) override;
    Result<kube::Lease> create(const kube::Lease& lease) override;
    Result<kube::Lease> update(const kube::Lease& lease) override;
    Result<kube::Lease> renew_held(const std::string& name, const std::string& holder,
                                   const std::string& renew_time) override;

   private:
    friend class NodeAccess;
    Result<kube::Lease> store(const kube::Lease& lease);
    NodeAccess& access_;
    std::optional<kube::Lease> lease_;
    SteadyTime renewed_{};
    Duration longest_gap_{};
  };

  Status count_event(const kube::Event& event);
  void changed();
  Error absent() const;

  ApiServer& server_;
  Actor& main_;
  std::string name_;
  Leases leases_;
  std::optional<node::ObservedNode> node_;
};

}  // namespace slurmlet::site
