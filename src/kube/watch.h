#pragma once

// The watches of slurmlet: its own Node and the pods bound to it, with the field selectors that the
// Node authorizer requires (https://kubernetes.io/docs/reference/access-authn-authz/node/), and for
// the operator all Nodes with a label that every slurmlet sets (vocabulary.h, kVersion).
// See Watch<T> in api.h. Each belongs to the thread of its client and must not outlive it.

#include <memory>
#include <string>

#include "base/delay.h"
#include "kube/api.h"
#include "kube/object_json.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

std::unique_ptr<Watch<node::ObservedNode>> watch_own_node(http::Client& client,
                                                          const std::string& node_name,
                                                          CallOptions options, Random random);

std::unique_ptr<Watch<Pod>> watch_own_pods(http::Client& client, const std::string& node_name,
                                           CallOptions options, Random random);

std::unique_ptr<Watch<SiteNode>> watch_site_nodes(http::Client& client, CallOptions options,
                                                  Random random, ConditionTypes conditions = {});

// The Machines of Cluster API, by the newest version that is served and known here (v1beta2,
// v1beta1). `cluster` is NAMESPACE/NAME; "" = of all clusters. While the server has no Machines,
// last_error() is kNotFound, and it is tried again every few minutes.
std::unique_ptr<Watch<Machine>> watch_machines(http::Client& client, const std::string& cluster,
                                               CallOptions options, Random random);

}  // namespace slurmlet::kube
