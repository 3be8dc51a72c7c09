#pragma once

// The token (JWT) for slurmrestd, as auth/jwt of Slurm makes it: `scontrol token`, or a file.
// What it says of itself is read without verifying it; only slurmctld can. Never logged
// and never part of a message. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

inline constexpr const char* kTokenVariable = "SLURM_JWT";  // of the environment

struct RestToken {
  std::string text;              // "" = none
  std::string where;             // its file
  std::optional<Error> problem;  // one is configured, but there is none
};

// What is inside (RFC 7519): "exp", and "sun", Slurm's name for the user.
struct TokenClaims {
  std::optional<WallTime> expires;
  std::string user;  // "" if it does not say
};
// Nothing when the text is not a JWT.
std::optional<TokenClaims> token_claims(std::string_view token);

// The token alone: `scontrol token` prints "SLURM_JWT=…", which people put into the file as it is.
std::string_view bare_token(std::string_view text);

// Why a query with it is useless: kTokenRefused, or kFileSystemHangs where its file does.
// Nothing if it may be good.
std::optional<QueryFailure> token_problem(const RestToken& token, WallTime now);

}  // namespace slurmlet::slurm
