#include "cluster.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "http/curl_client.h"
#include "kube/kubeconfig.h"
#include "kube/object_json.h"
#include "tls/client_identity.h"

namespace slurmlet::kube::contract {

using nlohmann::json;

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<std::unique_ptr<http::Client>> connect(const std::string& kubeconfig) {
  const auto access = load_kubeconfig(kubeconfig);
  if (!access) {
    return access.error();
  }
  auto identity = tls::ClientIdentity::make(access->pem);
  if (!identity) {
    return identity.error();
  }
  return http::make_curl_client(
      {access->server, access->proxy_url, access->tls_server_name, "slurmlet-contract-test"},
      *identity, [token = access->token] { return token; });
}

node::DesiredNode desired_node(const std::string& name) {
  node::DesiredNode node;
  node.name = name;
  node.labels = {{"kubernetes.io/hostname", name}, {"type", "slurmlet"}};
  node.annotations = {{"slurmlet.io/slurm-state", "IDLE"}};
  node.taints = {{"slurmlet.io/zero-pods", "", "NoSchedule"}};
  node.capacity = {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "0"}, {"nvidia.com/gpu", "2"}};
  node.allocatable = {{"cpu", "4"}, {"memory", "8Gi"}, {"pods", "0"}, {"nvidia.com/gpu", "2"}};
  node.conditions = {{"MemoryPressure", "False", "Enough", ""},
                     {"DiskPressure", "False", "Enough", ""},
                     {"PIDPressure", "False", "Enough", ""},
                     {"SlurmNodeStateDown", "True", "Test", "down"},
                     {"Ready", "True", "KubeletReady", "ready"}};
  node.addresses = {{"InternalIP", "192.0.2.7"}, {"Hostname", name}};
  node.node_info.machine_id = "machine";
  node.node_info.operating_system = "linux";
  node.node_info.architecture = "amd64";
  node.kubelet_port = 10250;
  return node;
}

void ContractTest::SetUp() {
  name_ = environment("SLURMLET_TEST_NODE");
  const std::string kubeconfig = environment("SLURMLET_TEST_KUBECONFIG");
  const std::string admin_kubeconfig = environment("SLURMLET_TEST_ADMIN_KUBECONFIG");
  if (name_.empty() || kubeconfig.empty() || admin_kubeconfig.empty()) {
    GTEST_SKIP() << "needs a real API server and the environment that cluster.h names";
  }
  for (const auto& [path, client] :
       {std::pair{kubeconfig, &client_}, {admin_kubeconfig, &admin_}}) {
    auto made = connect(path);
    ASSERT_TRUE(made) << made.error().message;
    *client = std::move(*made);
  }
  nodes_ = std::make_unique<RestNodeApi>(*client_, options_);
  leases_ = std::make_unique<RestLeaseApi>(*client_, options_);
  pods_ = std::make_unique<RestPodApi>(*client_, options_);
  events_ = std::make_unique<RestEventApi>(*client_, options_);
}

int ContractTest::admin(const std::string& method, const std::string& path, const std::string& body,
                        const std::string& content_type) {
  const auto response = admin_->call({method, path, body, content_type, std::chrono::seconds{10}});
  if (!response) {
    ADD_FAILURE() << response.error().message;
    return 0;
  }
  if (response->status >= 400 && response->status != 404) {
    ADD_FAILURE() << method << " " << path << ": " << response->status << " " << response->body;
  }
  return response->status;
}

node::ObservedNode ContractTest::fresh_node() {
  admin("DELETE", "/api/v1/nodes/" + name_);
  return ensure_node();
}

node::ObservedNode ContractTest::ensure_node() {
  auto node = nodes_->create(desired_node(name_), clock_.now().wall);
  if (!node && node.error().code == Code::kConflict) {
    node = nodes_->get(name_);
  }
  if (!node) {
    ADD_FAILURE() << node.error().message;
    return {};
  }
  return *node;
}

Pod ContractTest::create_pod(const std::string& name, const std::string& node_name) {
  json pod{{"apiVersion", "v1"},
           {"kind", "Pod"},
           {"metadata", {{"name", name}, {"namespace", "default"}}},
           {"spec",
            {{"automountServiceAccountToken", false},
             {"containers", json::array({{{"name", "c"}, {"image", "none.invalid/none"}}})},
             {"tolerations", json::array({{{"operator", "Exists"}}})}}}};
  if (!node_name.empty()) {
    pod["spec"]["nodeName"] = node_name;
  } else {
    pod["spec"]["schedulerName"] = "nobody";  // stays unbound
  }
  const std::string path = "/api/v1/namespaces/default/pods";
  admin("DELETE", path + "/" + name + "?gracePeriodSeconds=0");
  // The service account "default" comes a moment after the cluster.
  for (int tries = 0; tries < 100; ++tries) {
    const auto response = admin_->call({"POST", path, pod.dump(), kJson, kCallTimeout});
    if (response && response->status == 201) {
      const auto read = pod_from_json(json::parse(response->body));
      return read ? *read : Pod{};
    }
    if (!response || response->status != 403) {
      ADD_FAILURE() << (response ? response->body : response.error().message);
      return {};
    }
    admin_->wait(clock_.now().steady + std::chrono::milliseconds{100}, {});
  }
  ADD_FAILURE() << "no service account within 10 s";
  return {};
}

}  // namespace slurmlet::kube::contract
