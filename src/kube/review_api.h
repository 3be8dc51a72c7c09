#pragma once

// TokenReview and SubjectAccessReview: who a caller of our own endpoint is and what it may do, as
// with the kubelet (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/).
// Every node credential may create both. Calls do not block: they are answered while their
// http::Client waits, and belong to its thread. Below: what our own credential may do.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

// authentication.k8s.io/v1 UserInfo.
struct UserInfo {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool operator==(const UserInfo&) const = default;
};

struct TokenReview {
  bool authenticated = false;
  UserInfo user;
  std::string error;  // status.error, for people
};

struct AccessReview {
  bool allowed = false;
  std::string reason;
};

// resource "nodes" of the core group, always about one node.
struct AccessCheck {
  UserInfo user;
  std::string verb;         // get, create, update, patch, delete; "" for other methods
  std::string subresource;  // "metrics", "proxy", …
  std::string node_name;
  bool operator==(const AccessCheck&) const = default;
};

// A call under way; destroying it gives it up.
template <typename T>
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  // The answer or the Error, once; nothing while it is under way. kDenied: our own credential may
  // not ask; kTimeout and kUnavailable: the API server does not answer.
  virtual std::unique_ptr<Result<T>> poll(SteadyTime now) = 0;
  // When to poll() at the latest; earlier when the client's wait() returns for stream news.
  virtual SteadyTime deadline() const = 0;
};

class ReviewApi {
 public:
  virtual ~ReviewApi() = default;
  virtual std::unique_ptr<PendingCall<TokenReview>> review_token(const std::string& token,
                                                                 SteadyTime now) = 0;
  virtual std::unique_ptr<PendingCall<AccessReview>> review_access(const AccessCheck& check,
                                                                   SteadyTime now) = 0;
};

class RestReviewApi final : public ReviewApi, private RestCaller {
 public:
  using RestCaller::RestCaller;
  std::unique_ptr<PendingCall<TokenReview>> review_token(const std::string& token,
                                                         SteadyTime now) override;
  std::unique_ptr<PendingCall<AccessReview>> review_access(const AccessCheck& check,
                                                           SteadyTime now) override;
};

// What the credential in use may do, and who it is: SelfSubjectAccessReview, SelfSubjectReview
// (https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access) and
// the server's version. Questions that change nothing; for `slurmlet check`. Each blocks like
// Client::call, at most `timeout`.

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

// The user that the API server takes us for. kNotFound before Kubernetes 1.28.
Result<UserInfo> who_am_i(http::Client& client, const CallOptions& options);

// "v1.36.2".
Result<std::string> server_version(http::Client& client, const CallOptions& options);

}  // namespace slurmlet::kube
