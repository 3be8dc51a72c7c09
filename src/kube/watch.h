#pragma once

// The two watches of slurmlet: its own Node and the pods bound to it, with the field selectors that
// the Node authorizer requires (https://kubernetes.io/docs/reference/access-authn-authz/node/).
// See Watch<T> in api.h. Each belongs to the thread of its client and must not outlive it.

#include <memory>
#include <string>

#include "base/backoff.h"
#include "kube/api.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

std::unique_ptr<Watch<node::ObservedNode>> watch_own_node(http::Client& client,
                                                          const std::string& node_name,
                                                          CallOptions options, Random random);

std::unique_ptr<Watch<Pod>> watch_own_pods(http::Client& client, const std::string& node_name,
                                           CallOptions options, Random random);

}  // namespace slurmlet::kube
