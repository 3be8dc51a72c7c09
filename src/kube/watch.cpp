#include "kube/watch.h"

#include <utility>

#include "kube/node_json.h"
#include "kube/pod_json.h"
#include "kube/typed_watch.h"

namespace slurmlet::kube {

std::unique_ptr<Watch<node::ObservedNode>> watch_own_node(http::Client& client,
                                                          const std::string& node_name,
                                                          CallOptions options, Random random) {
  return std::make_unique<TypedWatch<node::ObservedNode>>(
      std::make_unique<ListWatch>(client, "/api/v1/nodes", "metadata.name=" + node_name,
                                  std::move(options), std::move(random)),
      node_from_json);
}

std::unique_ptr<Watch<Pod>> watch_own_pods(http::Client& client, const std::string& node_name,
                                           CallOptions options, Random random) {
  return std::make_unique<TypedWatch<Pod>>(
      std::make_unique<ListWatch>(client, "/api/v1/pods", "spec.nodeName=" + node_name,
                                  std::move(options), std::move(random)),
      pod_from_json);
}

}  // namespace slurmlet::kube
