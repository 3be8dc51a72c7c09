#pragma once

// Authentication and authorization of the kubelet API as in the kubelet
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/, KEP-2862): a
// verified client certificate (user = CN, groups = O) or else a bearer token by TokenReview, never
// anonymous; then SubjectAccessReview for verb and subresource of nodes/NAME, the fine-grained
// subresource first and nodes/proxy second where the kubelet falls back. Results are cached for the
// kubelet's times, in bounded memory; tokens are kept as salted digests only. While the API server
// does not answer, requests get 503. Reviews of unknown tokens are limited in rate and number, so
// that nobody can make this node overload the API server. Changed decisions are logged, a bounded
// number of lines.
//
// A step object of the endpoint's thread.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/token_bucket.h"
#include "kube/review_api.h"
#include "podapi/caller_budget.h"
#include "podapi/reviews.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

// The kubelet's verb and subresources, in order, for this request. Pure.
struct RequestAttributes {
  std::string verb;
  std::vector<std::string> subresources;
};
RequestAttributes request_attributes(const std::string& method, const std::string& path);

struct GateOptions {
  std::string node_name;
  Duration token_ttl = std::chrono::minutes{2};  // authenticated or not
  Duration allowed_ttl = std::chrono::minutes{5};
  Duration denied_ttl = std::chrono::seconds{30};
  std::size_t max_cached = 512;  // entries of each cache
  std::size_t max_waiting = 32;  // requests waiting for the API server
  // For first reviews, in separate buckets for known addresses and all others; repeated reviews of
  // what was granted have a bucket of their own. So neither unauthenticated clients nor users
  // without rights lock out others.
  Rate reviews{8, 32};
};

struct GateCounters {
  std::uint64_t token_reviews = 0, access_reviews = 0;
};

class Gate final : public RequestHandler {
 public:
  // `serve` answers an authorized request, whose headers are removed.
  Gate(kube::ReviewApi& api, std::function<Response(const RequestHead&)> serve,
       GateOptions options);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  // Answers at once if the caches suffice.
  std::optional<Response> begin(RequestId id, const Caller& caller, const RequestHead& head,
                                Now now) override;
  std::vector<std::pair<RequestId, Response>> take_answers(Now now, SteadyTime& next) override;
  void forget(RequestId id) override;
  const GateCounters& counters() const { return counters_; }

 private:
  using Answers = std::vector<std::pair<RequestId, Response>>;
  struct PendingRequest {
    RequestHead head;  // without headers, one of which is the caller's token
    std::string host;
    std::string path;  // normalized
    RequestAttributes attributes;
    std::size_t subresource = 0;  // index of the one under review
    kube::UserInfo user;          // name "" until the token is reviewed
    bool is_unauthenticated = false;
  };

  std::string digest(std::string_view text) const;
  std::optional<Response> review_token(RequestId id, PendingRequest request,
                                       const std::string& token, SteadyTime now);
  std::optional<Response> review_access(RequestId id, PendingRequest request, SteadyTime now);
  std::optional<Response> reject_if_full(const PendingRequest& request, std::size_t under_way);
  void settle(const Finished<kube::TokenReview>& finished, SteadyTime now, Answers& answers);
  void settle(const Finished<kube::AccessReview>& finished, SteadyTime now, Answers& answers);
  std::optional<PendingRequest> take_waiting(RequestId id);

  void log_decision(const PendingRequest& request, bool is_allowed, SteadyTime now);
  Response allow(const PendingRequest& request);
  Response unauthorized(const PendingRequest& request);
  Response forbidden(const PendingRequest& request);
  Response unavailable(const PendingRequest& request, int code, const char* why);
  Response review_failed(const PendingRequest& request, const Error& error);

  kube::ReviewApi& api_;
  std::function<Response(const RequestHead&)> serve_;
  GateOptions options_;
  std::string salt_;
  // By digest; separate, so that a flood of rejected ones displaces no accepted ones.
  ReviewCache<kube::UserInfo> good_tokens_;
  ReviewCache<bool> bad_tokens_;
  ReviewCache<bool> allowed_;
  ReviewCache<bool> denied_;
  CallerBudget new_reviews_;
  TokenBucket repeated_reviews_;
  TokenBucket lines_;  // of the log
  Reviews<kube::TokenReview> token_reviews_;
  Reviews<kube::AccessReview> access_reviews_;
  std::map<RequestId, PendingRequest> waiting_;
  GateCounters counters_;
};

}  // namespace slurmlet::podapi
