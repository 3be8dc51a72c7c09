#include "kube/review_json.h"

#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "kube/rest_call.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

using nlohmann::json;

http::Request review_request(std::string path, std::string body, Duration timeout) {
  http::Request request;
  request.method = "POST";
  request.path = std::move(path);
  request.body = std::move(body);
  request.content_type = kJson;
  request.timeout = timeout;
  return request;
}

UserInfo user_from_json(const json& object) {
  UserInfo user;
  user.name = string_at(object, "username");
  user.uid = string_at(object, "uid");
  user.groups = strings_of(member(object, "groups"));
  if (const json& extra = member(object, "extra"); extra.is_object()) {
    for (const auto& [key, values] : extra.items()) {
      user.extra.emplace(key, strings_of(values));
    }
  }
  return user;
}

// An answer without a status is no yes.
Result<TokenReview> token_review_from_json(const json& object) {
  const json& status = member(object, "status");
  TokenReview review;
  review.authenticated = bool_at(status, "authenticated");
  review.error = one_line(string_at(status, "error"));
  review.user = user_from_json(member(status, "user"));
  if (review.authenticated && review.user.name.empty()) {
    return Error{Code::kInternal, "the answer accepts the token but names no user"};
  }
  return review;
}

Result<AccessReview> access_review_from_json(const json& object) {
  const json& status = member(object, "status");
  // A server that says both contradicts itself; client-go takes it for an error.
  return AccessReview{bool_at(status, "allowed") && !bool_at(status, "denied"),
                      one_line(string_at(status, "reason"))};
}

}  // namespace slurmlet::kube
