#pragma once

// Authentication and authorization of the kubelet API, as the kubelet does them
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/, KEP-2862): a
// believed client certificate (user = CN, groups = O) or else a bearer token by TokenReview;
// anonymous is refused; then SubjectAccessReview for verb and subresource of nodes/NAME, the
// fine-grained subresource first and nodes/proxy second where the kubelet falls back. Answers are
// cached for the kubelet's times, in bounded memory; tokens are kept as salted digests only. When
// the API server cannot be asked, the answer is 503, never yes; reviews of strangers' tokens are
// limited in rate and number, so that nobody can make this node hammer the API server. Who gets
// what is logged when it changes, a bounded number of lines.
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

// What the kubelet would ask for this request: the verb and the subresources to try in order. Pure.
struct RequestAttributes {
  std::string verb;
  std::vector<std::string> subresources;
};
RequestAttributes request_attributes(const std::string& method, const std::string& path);

struct GateOptions {
  std::string node_name;
  Duration token_ttl = std::chrono::minutes{2};  // believed or not
  Duration allowed_ttl = std::chrono::minutes{5};
  Duration denied_ttl = std::chrono::seconds{30};
  std::size_t max_cached = 512;  // entries of each cache
  std::size_t max_waiting = 32;  // requests that wait for the API server
  // For tokens and access never granted before, of known addresses and of all others; what has been
  // granted has a bucket of its own. So neither strangers nor users without rights shut out the
  // others.
  Rate reviews{8, 32};
};

struct GateCounters {
  std::uint64_t token_reviews = 0, access_reviews = 0;
};

class Gate final : public RequestHandler {
 public:
  // `serve` answers a request that was let through; what it gets has no headers.
  Gate(kube::ReviewApi& api, std::function<Response(const RequestHead&)> serve,
       GateOptions options);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  // At once where the caches have what it takes.
  std::optional<Response> begin(RequestId id, const Caller& caller, const RequestHead& head,
                                Now now) override;
  std::vector<std::pair<RequestId, Response>> take_answers(Now now, SteadyTime& next) override;
  void forget(RequestId id) override;
  const GateCounters& counters() const { return counters_; }

 private:
  using Answers = std::vector<std::pair<RequestId, Response>>;
  // A request on its way through the gate.
  struct PendingRequest {
    RequestHead head;  // without headers: no route reads them, and one is the caller's token
    std::string host;
    std::string path;  // normalized
    RequestAttributes attributes;
    std::size_t asking = 0;  // index of the subresource in question
    kube::UserInfo user;     // name "" until the token is reviewed
    bool is_stranger = false;
  };

  std::string digest(std::string_view text) const;
  std::optional<Response> review_token(RequestId id, PendingRequest request,
                                       const std::string& token, SteadyTime now);
  std::optional<Response> review_access(RequestId id, PendingRequest request, SteadyTime now);
  std::optional<Response> refuse_to_wait(const PendingRequest& request, std::size_t under_way);
  void settle(const Finished<kube::TokenReview>& finished, SteadyTime now, Answers& answers);
  void settle(const Finished<kube::AccessReview>& finished, SteadyTime now, Answers& answers);
  std::optional<PendingRequest> take_waiting(RequestId id);

  void say(const PendingRequest& request, bool is_allowed, SteadyTime now);
  Response allow(const PendingRequest& request);
  Response unauthorized(const PendingRequest& request);
  Response forbidden(const PendingRequest& request);
  Response unavailable(const PendingRequest& request, int code, const char* why);
  Response cannot_ask(const PendingRequest& request, const Error& error);

  kube::ReviewApi& api_;
  std::function<Response(const RequestHead&)> serve_;
  GateOptions options_;
  std::string salt_;
  // By digest. Apart, so that a flood of what is refused does not displace what is not.
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
