#include "podapi/gate.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "kube/status_error.h"
#include "podapi/request_path.h"
#include "podapi/status_json.h"
#include "tls/certificates.h"

namespace slurmlet::podapi {
namespace {

using kube::AccessReview;
using kube::TokenReview;
using kube::UserInfo;

constexpr int kRetrySeconds = 5;
constexpr std::size_t kMaxNameBytes = 256;  // of user names in messages
// Log lines about decisions.
constexpr Rate kLines{1.0 / 60, 20};

constexpr const char* kReviewsDenied =
    "slurmlet cannot authorize requests on this port: its user may not create tokenreviews and "
    "subjectaccessreviews. A cluster administrator can bind that user to the ClusterRole "
    "system:auth-delegator (not needed for system:node:NAME in the group system:nodes)";
constexpr const char* kApiServerDown =
    "slurmlet cannot authorize requests on this port: the API server cannot be queried now";
constexpr const char* kTooManyWaiting =
    "too many requests on this port are waiting for authorization by the API server";
constexpr const char* kTooManyReviews =
    "too many requests on this port need authorization by the API server";

std::string new_salt() {
  std::array<char, 32> bytes{};
  // getrandom(2) returns short only for a signal at boot.
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
  }
  return {bytes.data(), bytes.size()};
}

// CBOR is unambiguous whatever bytes the names have.
std::string query_text(const kube::AccessCheck& query) {
  const auto& [name, uid, groups, extra] = query.user;
  std::string text;
  nlohmann::json::to_cbor(
      nlohmann::json::array({name, uid, groups, extra, query.verb, query.subresource}), text);
  return text;
}

constexpr const char* kAuthenticated = "system:authenticated";
constexpr const char* kUnauthenticated = "system:unauthenticated";
constexpr const char* kAnonymous = "system:anonymous";

bool is_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

// As AuthenticatedGroupAdder in k8s.io/apiserver/pkg/authentication/group.
void add_authenticated_group(UserInfo& user) {
  const bool says_already =
      std::any_of(user.groups.begin(), user.groups.end(), [](const std::string& group) {
        return group == kAuthenticated || group == kUnauthenticated;
      });
  if (user.name != kAnonymous && !says_already) {
    user.groups.emplace_back(kAuthenticated);
  }
}

// The user of a client certificate: name = CN, groups = O and system:authenticated. The certificate
// may have expired since the handshake.
std::optional<UserInfo> certificate_user(const Caller& caller, WallTime now) {
  if (!caller.certificate || caller.certificate->common_name.empty() ||
      now > caller.certificate->not_after) {
    return std::nullopt;
  }
  UserInfo user;
  user.name = caller.certificate->common_name;
  user.groups = caller.certificate->organizations;
  add_authenticated_group(user);
  return user;
}

// The token of the only "Authorization: Bearer TOKEN".
std::optional<std::string> bearer_token(const RequestHead& head) {
  const auto header = head.header("authorization");
  if (!header) {
    return std::nullopt;
  }
  // Like the API server's authenticator, ignores anything after the token.
  const auto parts = split(trim(*header), ' ');
  if (parts.size() < 2 || to_lower(parts[0]) != "bearer" || parts[1].empty() ||
      !is_visible_ascii(parts[1])) {
    return std::nullopt;
  }
  return std::string{parts[1]};
}

}  // namespace

Gate::Gate(kube::ReviewApi& api, std::function<Response(const RequestHead&)> serve,
           GateOptions options)
    : api_(api),
      serve_(std::move(serve)),
      options_(std::move(options)),
      salt_(new_salt()),
      good_tokens_(options_.max_cached),
      bad_tokens_(options_.max_cached),
      allowed_(options_.max_cached),
      denied_(options_.max_cached),
      new_reviews_(options_.reviews),
      repeated_reviews_(options_.reviews),
      lines_(kLines) {}

std::string Gate::digest(std::string_view text) const {
  return tls::sha256(salt_ + std::string{text});
}

void Gate::forget(RequestId id) {
  waiting_.erase(id);
  drop_waiter(token_reviews_, id);
  drop_waiter(access_reviews_, id);
}

Response Gate::allow(const PendingRequest& request) {
  new_reviews_.know(request.host);
  return serve_(request.head);
}

Response Gate::unauthorized(const PendingRequest& request) {
  return rejection_response(request.path, {401, "Unauthorized", "Unauthorized"});
}

Response Gate::forbidden(const PendingRequest& request) {
  const auto& [verb, subresources] = request.attributes;
  const std::string message =
      fmt::format("Forbidden (user={}, verb={}, resource=nodes, subresource(s)=[{}])",
                  kube::one_line(request.user.name, kMaxNameBytes), verb, join(subresources, " "));
  return rejection_response(request.path, {403, "Forbidden", message});
}

Response Gate::unavailable(const PendingRequest& request, int code, const char* why) {
  const char* reason = code == 429 ? "TooManyRequests" : "ServiceUnavailable";
  return rejection_response(request.path, {code, reason, why, kRetrySeconds});
}

void Gate::log_decision(const PendingRequest& request, bool is_allowed, SteadyTime now) {
  if (lines_.take(now)) {
    log::info(fmt::format("kubelet endpoint: {} {} {} nodes/{}",
                          kube::one_line(request.user.name, kMaxNameBytes),
                          is_allowed ? "may" : "may not", request.attributes.verb,
                          request.attributes.subresources[request.subresource]));
  }
}

Response Gate::review_failed(const PendingRequest& request, const Error& error) {
  return unavailable(request, 503, error.code == Code::kDenied ? kReviewsDenied : kApiServerDown);
}

std::optional<Response> Gate::begin(RequestId id, const Caller& caller, const RequestHead& head,
                                    Now now) {
  PendingRequest request;
  request.head = head;
  request.head.headers.clear();
  request.host = caller.host;
  request.path = normalized_path(head.path).value_or("");
  request.attributes = request_attributes(head.method, head.path);
  if (auto user = certificate_user(caller, now.wall)) {
    request.user = *std::move(user);
    return review_access(id, std::move(request), now.steady);
  }
  if (const auto token = bearer_token(head)) {
    return review_token(id, std::move(request), *token, now.steady);
  }
  return unauthorized(request);
}

// Rejects the request if too many wait for the API server. Unknown tokens get half of the places,
// or three quarters from a known address, so that a flood of them leaves room for others.
std::optional<Response> Gate::reject_if_full(const PendingRequest& request, std::size_t under_way) {
  const auto is_unauthenticated = [](const auto& waiting) {
    return waiting.second.is_unauthenticated;
  };
  const auto unauthenticated =
      static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(), is_unauthenticated));
  const std::size_t quarters = new_reviews_.knows(request.host) ? 3 : 2;
  const std::size_t share = std::max<std::size_t>(1, options_.max_waiting * quarters / 4);
  const bool is_full = waiting_.size() >= options_.max_waiting ||
                       under_way >= options_.max_waiting ||
                       (request.is_unauthenticated && unauthenticated >= share);
  return is_full ? std::optional{unavailable(request, 503, kTooManyWaiting)} : std::nullopt;
}

std::optional<Response> Gate::review_token(RequestId id, PendingRequest request,
                                           const std::string& token, SteadyTime now) {
  const std::string key = digest(token);
  if (const UserInfo* user = good_tokens_.find(key, now)) {
    request.user = *user;
    return review_access(id, std::move(request), now);
  }
  if (bad_tokens_.find(key, now) != nullptr) {
    return unauthorized(request);
  }
  const bool is_known = good_tokens_.remembers(key);
  request.is_unauthenticated = !is_known;
  const auto under_way = token_reviews_.find(key);
  const bool joins = under_way != token_reviews_.end();
  if (auto rejection = reject_if_full(request, joins ? 0 : token_reviews_.size())) {
    return rejection;
  }
  if (joins) {
    under_way->second.waiters.push_back(id);
  } else if (is_known ? repeated_reviews_.take(now) : new_reviews_.take(request.host, now) <= now) {
    ++counters_.token_reviews;
    token_reviews_.emplace(key, Review<TokenReview>{api_.review_token(token, now), {id}});
  } else {
    return unavailable(request, 429, kTooManyReviews);
  }
  waiting_.insert_or_assign(id, std::move(request));
  return std::nullopt;
}

// Tries subresources in order until one is allowed, as the kubelet does.
std::optional<Response> Gate::review_access(RequestId id, PendingRequest request, SteadyTime now) {
  for (; request.subresource < request.attributes.subresources.size(); ++request.subresource) {
    const kube::AccessCheck query{request.user, request.attributes.verb,
                                  request.attributes.subresources[request.subresource],
                                  options_.node_name};
    const std::string key = digest(query_text(query));
    if (allowed_.find(key, now) != nullptr) {
      return allow(request);
    }
    if (denied_.find(key, now) != nullptr) {
      continue;
    }
    const auto under_way = access_reviews_.find(key);
    const bool joins = under_way != access_reviews_.end();
    if (auto rejection = reject_if_full(request, joins ? 0 : access_reviews_.size())) {
      return rejection;
    }
    if (joins) {
      under_way->second.waiters.push_back(id);
    } else if (allowed_.remembers(key) ? repeated_reviews_.take(now)
                                       : new_reviews_.take(request.host, now) <= now) {
      ++counters_.access_reviews;
      access_reviews_.emplace(key, Review<AccessReview>{api_.review_access(query, now), {id}});
    } else {
      return unavailable(request, 429, kTooManyReviews);
    }
    waiting_.insert_or_assign(id, std::move(request));
    return std::nullopt;
  }
  return forbidden(request);
}

std::optional<Gate::PendingRequest> Gate::take_waiting(RequestId id) {
  auto node = waiting_.extract(id);
  return node.empty() ? std::nullopt : std::optional{std::move(node.mapped())};
}

void Gate::settle(const Finished<TokenReview>& finished, SteadyTime now, Answers& answers) {
  const auto& [key, waiters, result] = finished;
  const bool is_good = result && result->authenticated;
  UserInfo user;
  if (is_good) {
    user = result->user;
    add_authenticated_group(user);
    good_tokens_.put(key, user, now + options_.token_ttl);
  } else if (result) {
    good_tokens_.erase(key);
    // With an error the rejection may be temporary (an authenticator timed out).
    const bool is_final = result->error.empty();
    bad_tokens_.put(
        key, true,
        now + (is_final ? options_.token_ttl : std::min(options_.token_ttl, options_.denied_ttl)));
  }
  for (const RequestId id : waiters) {
    auto request = take_waiting(id);
    if (!request) {
      continue;
    }
    request->is_unauthenticated = request->is_unauthenticated && !is_good;
    std::optional<Response> answer;
    if (is_good) {
      request->user = user;
      answer = review_access(id, *std::move(request), now);
    } else {
      answer = result ? unauthorized(*request) : review_failed(*request, result.error());
    }
    if (answer) {
      answers.emplace_back(id, *std::move(answer));
    }
  }
}

void Gate::settle(const Finished<AccessReview>& finished, SteadyTime now, Answers& answers) {
  const auto& [key, waiters, result] = finished;
  const bool is_allowed = result && result->allowed;
  bool is_new = result && !(is_allowed ? allowed_ : denied_).remembers(key);
  if (is_allowed) {
    denied_.erase(key);
    allowed_.put(key, true, now + options_.allowed_ttl);
  } else if (result) {
    allowed_.erase(key);
    denied_.put(key, true, now + options_.denied_ttl);
  }
  for (const RequestId id : waiters) {
    auto request = take_waiting(id);
    if (!request) {
      continue;
    }
    if (std::exchange(is_new, false)) {
      log_decision(*request, is_allowed, now);
    }
    std::optional<Response> answer;
    if (!result) {
      answer = review_failed(*request, result.error());
    } else if (is_allowed) {
      answer = allow(*request);
    } else {
      ++request->subresource;
      answer = review_access(id, *std::move(request), now);
    }
    if (answer) {
      answers.emplace_back(id, *std::move(answer));
    }
  }
}

Gate::Answers Gate::take_answers(Now now, SteadyTime& next) {
  Answers answers;
  for (const auto& finished : take_finished(token_reviews_, now.steady)) {
    settle(finished, now.steady, answers);
  }
  // A denied review may start the next one, which may finish at once.
  for (auto finished = take_finished(access_reviews_, now.steady); !finished.empty();
       finished = take_finished(access_reviews_, now.steady)) {
    for (const auto& one : finished) {
      settle(one, now.steady, answers);
    }
  }
  next = std::min({next, earliest_deadline(token_reviews_), earliest_deadline(access_reviews_)});
  return answers;
}

}  // namespace slurmlet::podapi
