#pragma once

// The answers of the review APIs
// (https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/). Pure functions.
// Internal to the component.

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "kube/review_api.h"

namespace slurmlet::kube {

// authentication.k8s.io/v1 UserInfo.
UserInfo user_from_json(const nlohmann::json& object);

// An answer without a status is no yes. kInternal when it contradicts itself.
Result<TokenReview> token_review_from_json(const nlohmann::json& object);

// Of a SubjectAccessReview or SelfSubjectAccessReview; never an Error.
Result<AccessReview> access_review_from_json(const nlohmann::json& object);

}  // namespace slurmlet::kube
