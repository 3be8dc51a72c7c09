#include "slurm/sources/rest_token.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/rfc3339.h"
#include "base/text.h"
#include "tls/client_identity.h"

namespace slurmlet::slurm {
namespace {

using Json = nlohmann::json;

// "NumericDate": seconds, a fraction allowed.
std::optional<WallTime> time_of(const Json& claims, const char* name) {
  constexpr double kLatest = 253402300799;  // the end of the year 9999
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) {
    return std::nullopt;
  }
  const double since_epoch = found->get<double>();
  if (!(since_epoch >= 0 && since_epoch <= kLatest)) {
    return std::nullopt;
  }
  constexpr double kLast = 9e9;  // beyond it WallTime (64 bits of ns) ends, in the year 2262
  return WallTime{std::chrono::seconds{static_cast<std::int64_t>(std::min(since_epoch, kLast))}};
}

bool can_stand_in_a_header(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

std::optional<TokenClaims> token_claims(std::string_view token) {
  const auto parts = split(token, '.');
  if (parts.size() != 3) {
    return std::nullopt;
  }
  const std::string_view padded = parts[1];
  const auto payload = tls::base64url_decode(padded.substr(0, padded.find_last_not_of('=') + 1));
  if (!payload) {
    return std::nullopt;
  }
  const Json claims = Json::parse(*payload, nullptr, false);
  if (!claims.is_object()) {
    return std::nullopt;
  }
  TokenClaims out;
  out.expires = time_of(claims, "exp");
  if (const auto user = claims.find("sun"); user != claims.end() && user->is_string()) {
    out.user = user->get<std::string>();
  }
  return out;
}

std::string_view bare_token(std::string_view text) {
  constexpr std::string_view kName = "SLURM_JWT=";
  text = trim(text);
  return text.starts_with(kName) ? text.substr(kName.size()) : text;
}

std::optional<QueryFailure> token_problem(const RestToken& token, WallTime now) {
  const auto rejected = [](const std::string& detail) {
    return QueryFailure{node::SlurmFailure::kTokenRefused, detail};
  };
  if (token.problem && token.problem->code == Code::kTimeout) {
    return QueryFailure{node::SlurmFailure::kFileSystemHangs, token.problem->message};
  }
  if (token.problem) {
    return rejected(token.problem->message);
  }
  if (!can_stand_in_a_header(token.text)) {
    return rejected(token.where + " contains more than a token");
  }
  const auto claims = token_claims(token.text);
  if (claims && claims->expires && *claims->expires <= now) {
    return rejected("the token in " + token.where + " expired at " + rfc3339(*claims->expires));
  }
  return std::nullopt;
}

}  // namespace slurmlet::slurm
