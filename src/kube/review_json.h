#pragma once

// Requests to the review APIs, and their answers
// (https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/). Pure functions.
// Internal to the component.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/review_api.h"

namespace slurmlet::kube {

// The POST that creates a review.
http::Request review_request(std::string path, std::string body, Duration timeout);

// authentication.k8s.io/v1 UserInfo.
UserInfo user_from_json(const nlohmann::json& object);

// An answer without a status is no yes. kInternal when it contradicts itself.
Result<TokenReview> token_review_from_json(const nlohmann::json& object);

// Of a SubjectAccessReview or SelfSubjectAccessReview; never an Error.
Result<AccessReview> access_review_from_json(const nlohmann::json& object);

}  // namespace slurmlet::kube
