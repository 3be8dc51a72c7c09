#pragma once

// Keeps credentials that were captured along with an answer (`curl -v`, a shell's history) out of
// what is printed. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace slurmlet::cli {

// The text with JSON Web Tokens, and what follows the names that carry credentials (Authorization,
// X-SLURM-USER-TOKEN, SLURM_JWT) up to the end of the line, replaced by "[removed]".
std::string without_secrets(std::string_view text);

// The same for every string in `document`.
void remove_secrets(nlohmann::ordered_json& document);

}  // namespace slurmlet::cli
