#pragma once

// What the credential in use may do, and who it is: SelfSubjectAccessReview, SelfSubjectReview
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access) and
// the server's version. Questions that change nothing; for `slurmlet check`. Each blocks like
// Client::call, at most `timeout`.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/rest_call.h"
#include "kube/review_api.h"

namespace slurmlet::kube {

// One thing to be allowed. The Node authorizer answers per name, and for lists and watches per
// field selector, so both are told where the call has them.
struct OwnRight {
  std::string verb;         // get, list, watch, create, update, patch, delete
  std::string group;        // "" = core
  std::string resource;     // "nodes"
  std::string subresource;  // "status"
  std::string name;
  std::string namespace_name;  // "" = all, or none has any
  std::string field_selector;  // "spec.nodeName=n1"
  bool operator==(const OwnRight&) const = default;
};

// "patch nodes/status n1", "get leases.coordination.k8s.io kube-node-lease/n1". Pure.
std::string describe(const OwnRight& right);

// Body of POST. Pure.
std::string own_right_body(const OwnRight& right);

Result<AccessReview> review_own_right(http::Client& client, const CallOptions& options,
                                      const OwnRight& right);

// Whom the API server takes us for. kNotFound before Kubernetes 1.28.
Result<UserInfo> who_am_i(http::Client& client, const CallOptions& options);

// "v1.36.2".
Result<std::string> server_version(http::Client& client, const CallOptions& options);

}  // namespace slurmlet::kube
