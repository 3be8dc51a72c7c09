#pragma once

// Secrets with tokens of the operator's service account, which init makes and uninstall deletes.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/object_api.h"

namespace slurmlet::op {

std::string secrets_path();

// To be created: kube-controller-manager puts a token into it. `place`: init_command.h,
// kTokenPlace.
nlohmann::json token_secret(const std::string& place);

// Paths of those of init; `place`: "" = of all. Reads no token.
Result<std::vector<std::string>> token_secrets(kube::RestObjectApi& api, const std::string& place);

}  // namespace slurmlet::op
