#include "slurm/sources/rest_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rfc3339.h"

namespace slurmlet::slurm {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHead =
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";  // {"alg":"HS256","typ":"JWT"}

struct ClaimsCase {
  const char* name;
  std::string token;
  bool is_jwt;
  std::string expires;  // "" = not told
  std::string user;
};
class TokenClaimsOf : public testing::TestWithParam<ClaimsCase> {};
INSTANTIATE_TEST_SUITE_P(
    Tokens, TokenClaimsOf,
    testing::Values(
        // {"exp":1795183200,"iat":1795179600,"sun":"daemon"}
        ClaimsCase{"scontrol",
                   std::string{kHead} +
                       ".eyJleHAiOjE3OTUxODMyMDAsImlhdCI6MTc5NTE3OTYwMCwic3VuIjoiZGFlbW9uIn0.c2ln",
                   true, "2026-11-20T14:00:00Z", "daemon"},
        // {"exp":1795183200.9}
        ClaimsCase{"fraction", std::string{kHead} + ".eyJleHAiOjE3OTUxODMyMDAuOX0.c2ln", true,
                   "2026-11-20T14:00:00Z", ""},
        // {"exp":"soon","sun":7}
        ClaimsCase{"other types", std::string{kHead} + ".eyJleHAiOiJzb29uIiwic3VuIjo3fQ.c2ln", true,
                   "", ""},
        // {"exp":1e300}
        ClaimsCase{"beyond all times", std::string{kHead} + ".eyJleHAiOjFlMzAwfQ.c2ln", true, "",
                   ""},
        // {"sun":"müller_ÿ?>"}: base64url digits "-" and "_"
        ClaimsCase{"url digits", std::string{kHead} + ".eyJzdW4iOiJtw7xsbGVyX8O_Pz4ifQ.c2ln", true,
                   "", "m\xc3\xbcller_\xc3\xbf?>"},
        ClaimsCase{"list", std::string{kHead} + ".W10.c2ln", false, "", ""},
        ClaimsCase{"not base64", std::string{kHead} + ".e!.c2ln", false, "", ""},
        ClaimsCase{"two parts", std::string{kHead} + ".e30", false, "", ""},
        ClaimsCase{"opaque", "0123456789abcdef", false, "", ""},
        ClaimsCase{"empty", "", false, "", ""}),
    [](const auto& row) {
      std::string name = row.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST_P(TokenClaimsOf, AreReadWithoutTheKey) {
  const auto claims = token_claims(GetParam().token);
  ASSERT_EQ(claims.has_value(), GetParam().is_jwt);
  if (claims) {
    EXPECT_EQ(claims->expires ? rfc3339(*claims->expires) : "", GetParam().expires);
    EXPECT_EQ(claims->user, GetParam().user);
  }
}

TEST(BareToken, IsWhatScontrolPrintsWithoutItsName) {
  EXPECT_EQ(bare_token("SLURM_JWT=a.b.c\n"), "a.b.c");
  EXPECT_EQ(bare_token(" a.b.c\n"), "a.b.c");
  EXPECT_EQ(bare_token(""), "");
}

RestToken scontrol_token() {
  return {std::string{kHead} + ".eyJleHAiOjE3OTUxODMyMDB9.c2ln", "/etc/jwt", {}};
}

TEST(TokenProblem, TellsOfAnExpiredTokenBeforeAsking) {
  const WallTime expiry = *parse_rfc3339("2026-11-20T14:00:00Z");
  EXPECT_FALSE(token_problem(scontrol_token(), expiry - std::chrono::seconds{1}));
  const auto problem = token_problem(scontrol_token(), expiry);
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->cause, node::SlurmFailure::kTokenRefused);
  EXPECT_EQ(problem->detail, "the token in /etc/jwt expired at 2026-11-20T14:00:00Z");
}

TEST(TokenProblem, TellsWhyThereIsNone) {
  RestToken token;
  EXPECT_FALSE(token_problem(token, {}));  // none is configured
  token.problem = Error{Code::kNotFound, "token file /etc/jwt: no such file or directory"};
  const auto problem = token_problem(token, {});
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->cause, node::SlurmFailure::kTokenRefused);
  EXPECT_THAT(problem->detail, HasSubstr("token file /etc/jwt: no such file or directory"));
}

TEST(TokenProblem, OfAFileThatDoesNotAnswerIsItsFileSystems) {
  RestToken token;
  token.problem = Error{Code::kTimeout, "token file: /shared/jwt does not answer"};
  const auto problem = token_problem(token, {});
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->cause, node::SlurmFailure::kFileSystemHangs);
  EXPECT_EQ(problem->detail, "token file: /shared/jwt does not answer");
}

TEST(TokenProblem, RefusesWhatWouldBreakTheHeaderWithoutQuotingIt) {
  for (const std::string text : {"secret secret", "secret\nX-A: b", "secret\x7f",
                                 "s\xc3\xa9"
                                 "cret"}) {
    const auto problem = token_problem({text, "/etc/jwt", {}}, {});
    ASSERT_TRUE(problem) << text;
    EXPECT_EQ(problem->cause, node::SlurmFailure::kTokenRefused);
    EXPECT_THAT(problem->detail, HasSubstr("/etc/jwt"));
    EXPECT_THAT(problem->detail, Not(HasSubstr("cret")));
  }
}

TEST(TokenProblem, LetsAnOpaqueTokenBeJudgedBySlurm) {
  EXPECT_FALSE(token_problem({"abc.def.ghi", "/etc/jwt", {}}, {}));
  EXPECT_FALSE(token_problem({"0123", "/etc/jwt", {}}, {}));
}

}  // namespace
}  // namespace slurmlet::slurm
