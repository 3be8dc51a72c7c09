#pragma once

// Access to a real API server for the contract tests:
//   SLURMLET_TEST_KUBECONFIG        kubeconfig of system:node:NAME
//   SLURMLET_TEST_NODE              NAME
//   SLURMLET_TEST_ADMIN_KUBECONFIG  kubeconfig that may create pods and delete Nodes
// Without them the tests are skipped.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/api.h"
#include "kube/rest_api.h"

namespace slurmlet::kube::contract {

// A client as the daemon makes it.
Result<std::unique_ptr<http::Client>> connect(const std::string& kubeconfig);

// A Node as slurmlet would register it.
node::DesiredNode desired_node(const std::string& name);

class ContractTest : public ::testing::Test {
 protected:
  void SetUp() override;

  // Sends as administrator; the HTTP status, 0 when there was no answer.
  int admin(const std::string& method, const std::string& path, const std::string& body = "",
            const std::string& content_type = "application/json");
  // Deletes the Node (if there is one) and registers it anew.
  node::ObservedNode fresh_node();
  // The Node, registered if it is not there.
  node::ObservedNode ensure_node();
  // A pod bound to the Node by an administrator, as read by the node itself.
  Pod create_pod(const std::string& name, const std::string& node_name);

  std::string name_;
  std::unique_ptr<http::Client> client_;
  std::unique_ptr<http::Client> admin_;
  CallOptions options_;
  std::unique_ptr<RestNodeApi> nodes_;
  std::unique_ptr<RestLeaseApi> leases_;
  std::unique_ptr<RestPodApi> pods_;
  std::unique_ptr<RestEventApi> events_;
  SystemClock clock_;
};

// Steps `watch` on `client` until `done` says so; false after `limit`.
template <typename T, typename Done>
bool run_until(http::Client& client, Watch<T>& watch, std::vector<WatchEvent<T>>& events,
               Duration limit, const Done& done) {
  const SystemClock clock;
  const SteadyTime deadline = clock.now().steady + limit;
  while (clock.now().steady < deadline) {
    const SteadyTime wake = watch.step(clock.now(), events);
    if (done()) {
      return true;
    }
    client.wait(std::min(wake, deadline), {});
  }
  return done();
}

}  // namespace slurmlet::kube::contract
