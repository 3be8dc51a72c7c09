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
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/review_api.h"
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
  // For tokens never seen to be good, likewise for access never granted before; what has been
  // granted has a bucket of its own, as great as that of the unknown addresses. So neither
  // strangers nor users without rights shut out the others.
  SourceLimits reviews{{5, 20}, {6, 24}, {8, 32}};
};

struct Verdict {
  bool allowed = false;
  Response refusal;  // when not allowed: 401, 403, 429 or 503 as an API Status
};

struct GateCounters {
  std::uint64_t unauthenticated = 0, forbidden = 0, unavailable = 0;
  std::uint64_t token_reviews = 0, access_reviews = 0;
};

class Gate {
 public:
  Gate(kube::ReviewApi& api, GateOptions options);
  ~Gate();
  // The verdict at once where the caches have it, else nothing: it comes from step().
  std::optional<Verdict> begin(RequestId id, const Caller& caller, const RequestHead& head,
                               Now now);
  std::vector<std::pair<RequestId, Verdict>> step(Now now, SteadyTime& next);
  void forget(RequestId id);
  const GateCounters& counters() const;
  // Why the last review failed; nothing once one succeeded. For the log and the metrics.
  const std::optional<Error>& last_error() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace slurmlet::podapi
