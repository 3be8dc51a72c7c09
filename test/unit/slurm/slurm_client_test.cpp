#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fixture.h"
#include "node/slurm_failure.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {
namespace slurm_client_test {

using node::SlurmFailure;
using testing::HasSubstr;

std::optional<QueryFailure> classify_scontrol(const CommandOutput& output) {
  return classify(output, "scontrol");
}

CommandOutput ended(int exit_code, std::string out, std::string err) {
  CommandOutput output;
  output.exit_code = exit_code;
  output.out = std::move(out);
  output.err = std::move(err);
  return output;
}

struct Case {
  std::string file;
  int exit_code;
  SlurmFailure cause;
  std::string detail;
};

TEST(SlurmClient, RecognisesEveryCapturedForm) {
  const std::string unreachable = "Unable to contact slurm controller (connect failure)";
  const std::string not_taken =
      "it closed the connection without an answer: this node's munge key or clock does not match "
      "the cluster's (see slurmctld's log), or a load balancer has no slurmctld behind it";
  const std::vector<Case> cases{
      {"22.05.8/ctld-down.sinfo.err", 1, SlurmFailure::kControllerUnreachable, unreachable},
      {"23.02/ctld-down.sinfo.err", 1, SlurmFailure::kControllerUnreachable, unreachable},
      {"24.05/ctld-down.sinfo.err", 1, SlurmFailure::kControllerUnreachable, unreachable},
      {"24.11/ctld-down.sinfo.err", 1, SlurmFailure::kControllerUnreachable, unreachable},
      {"25.11/ctld-down.sinfo.err", 1, SlurmFailure::kControllerUnreachable, unreachable},
      {"22.05.8/query-ctld-down.err", 1, SlurmFailure::kControllerUnreachable, unreachable},
      {"22.05.8/ctld-hung.sinfo.err", 1, SlurmFailure::kControllerUnreachable,
       "Socket timed out on send/recv operation"},
      {"22.05.8/query-ctld-unresolvable.err", 1, SlurmFailure::kControllerUnreachable,
       "Unable to resolve \"no-such-host.invalid\""},
      {"22.05.8/munge-down.sinfo.err", 1, SlurmFailure::kMungeUnavailable,
       "Munge encode failed: Failed to access \"/srv/slurm/c1/mrun/munge.sock\": No such file or "
       "directory (Did you start munged?)"},
      {"22.05.8/munge-socket-missing.sinfo.err", 1, SlurmFailure::kMungeUnavailable,
       "Munge encode failed: Failed to access \"/srv/slurm/c1/munge/munge.socket.2\": No such file "
       "or directory (Did you start munged?)"},
      {"22.05.8/munge-socket-stale.sinfo.err", 1, SlurmFailure::kMungeUnavailable,
       "Munge encode failed: Failed to connect to \"/srv/slurm/c1/munge/munge.socket.2\": "
       "Connection refused"},
      {"22.05.8/munge-socket-closed.sinfo.err", 1, SlurmFailure::kMungeUnavailable,
       "Munge encode failed: Failed to access \"/srv/slurm/c1/munge/munge.socket.2\": Permission "
       "denied (Did you start munged?); slurmlet's user cannot access that socket (its directory "
       "must have mode 0755)"},
      {"22.05.8/munge-other-key.sinfo.err", 1, SlurmFailure::kAuthenticationRefused, not_taken},
      {"22.05.8/munge-clock-fast.sinfo.err", 1, SlurmFailure::kAuthenticationRefused, not_taken},
      {"22.05.8/munge-clock-slow.sinfo.err", 1, SlurmFailure::kAuthenticationRefused, not_taken},
      {"22.05.8/slurmuser-unknown.sinfo.err", 1, SlurmFailure::kBadConfiguration,
       "Invalid user for SlurmUser nosuchuser, ignored"},
      {"22.05.8/privatedata-nodes-nobody.sinfo.err", 1, SlurmFailure::kPermissionDenied,
       "Access/permission denied"},
      {"22.05.8/conf-missing.sinfo.err", 1, SlurmFailure::kBadConfiguration,
       "cannot stat file /nonexistent/slurm.conf: No such file or directory"},
      {"22.05.8/conf-none-dns.scontrol.err", 1, SlurmFailure::kBadConfiguration,
       "there is no slurm.conf and no DNS SRV record for slurmctld"},
      {"22.05.8/query-conf-bogus.err", 1, SlurmFailure::kBadConfiguration,
       "Parsing error at unrecognized key: BogusKey"},
      {"22.05.8/query-conf-broken.err", 1, SlurmFailure::kBadConfiguration,
       "Parse error in file /etc/hostname line 1: \"vm\""},
  };
  for (const auto& c : cases) {
    const auto failure = classify_scontrol(ended(c.exit_code, "", fixture(c.file)));
    ASSERT_TRUE(failure) << c.file;
    EXPECT_EQ(failure->cause, c.cause) << c.file << ": " << to_string(failure->cause);
    EXPECT_EQ(failure->detail, c.detail) << c.file;
  }
}

// As munged and auth/munge word them; a client sees these where slurmctld answers at all.
TEST(SlurmClient, ACredentialThatIsNotTakenIsToldFromAWrongClock) {
  const std::vector<std::pair<std::string, SlurmFailure>> cases{
      {"scontrol: error: Munge decode failed: Expired credential", SlurmFailure::kClockSkew},
      {"scontrol: error: Munge decode failed: Rewound credential", SlurmFailure::kClockSkew},
      {"scontrol: error: Munge decode failed: Invalid credential",
       SlurmFailure::kAuthenticationRefused},
      {"slurm_load_node: Protocol authentication error", SlurmFailure::kAuthenticationRefused},
      {"scontrol: fatal: cannot create auth context for auth/munge",
       SlurmFailure::kBadConfiguration},
  };
  for (const auto& [line, cause] : cases) {
    const auto failure = classify_scontrol(ended(1, "",
                                                 line + "\nslurm_load_partitions: Protocol "
                                                        "authentication error\n"));
    ASSERT_TRUE(failure) << line;
    EXPECT_EQ(failure->cause, cause) << line << ": " << to_string(failure->cause);
  }
}

TEST(SlurmClient, AnAddressWithoutASlurmctldBehindItIsUnreachable) {
  for (const std::string line :
       {"Connection reset by peer", "Broken pipe", "Transport endpoint is not connected"}) {
    const auto failure = classify_scontrol(ended(1, "", "slurm_load_partitions: " + line + "\n"));
    ASSERT_TRUE(failure) << line;
    EXPECT_EQ(failure->cause, SlurmFailure::kControllerUnreachable) << line;
    EXPECT_EQ(failure->detail, line);
  }
}

// 24.11.5 without sackd; slurmd serves this socket where there is no sackd.
TEST(SlurmClient, WithoutASackSocketNobodyMakesCredentials) {
  const auto failure = classify_scontrol(
      ended(1, "",
            "scontrol: error: failed to connect to any sack sockets\n"
            "scontrol: error: create_external: failed to create token\n"
            "scontrol: error: slurm_buffers_pack_msg: auth_g_create: REQUEST_PARTITION_INFO has "
            "authentication error\nslurm_load_partitions: Protocol authentication error\n"));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->cause, SlurmFailure::kSackUnavailable);
  EXPECT_EQ(failure->detail, "failed to connect to any sack sockets");
}

TEST(SlurmClient, AnAnswerIsNoFailure) {
  const auto out = fixture("dump/22.05.scontrol.out");
  EXPECT_FALSE(classify_scontrol(ended(0, out, "")));
  EXPECT_FALSE(classify_scontrol(ended(0, out, fixture("25.11/ratelimited-nobody-verbose.err"))))
      << "served in the end";
}

TEST(SlurmClient, EmptyOutputIsNotInSlurm) {
  for (const std::string& err : {std::string{}, fixture("25.11/ratelimited-nobody-verbose.err")}) {
    const auto failure = classify_scontrol(ended(0, "\n", err));
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->cause, SlurmFailure::kNotInSlurm);
  }
}

TEST(SlurmClient, OurDeadlineIsATimeoutUnlessSlurmSaidWhy) {
  CommandOutput output;
  output.timed_out = true;
  output.signal = 9;
  EXPECT_EQ(classify_scontrol(output)->cause, SlurmFailure::kTimeout);

  // Without slurm.conf a command retries for a minute, with a rate limit for ever.
  output.err =
      "scontrol: error: s_p_parse_file: cannot stat file /etc/slurm/slurm.conf: No such file or "
      "directory, retrying in 1sec up to 60sec\n";
  EXPECT_EQ(classify_scontrol(output)->cause, SlurmFailure::kBadConfiguration);
  EXPECT_EQ(classify_scontrol(output)->detail,
            "cannot stat file /etc/slurm/slurm.conf: No such file or directory");
  output.err = "scontrol: RPC rate limited 7 time(s). Sleeping then trying again.\n";
  const auto seven = classify_scontrol(output);
  output.err = "scontrol: RPC rate limited 8 time(s). Sleeping then trying again.\n";
  EXPECT_EQ(seven->cause, SlurmFailure::kRateLimited);
  EXPECT_EQ(seven, classify_scontrol(output)) << "the detail must not change with the counter";
}

TEST(SlurmClient, OtherEnds) {
  CommandOutput output;
  output.too_long = true;
  EXPECT_EQ(classify_scontrol(output)->cause, SlurmFailure::kInvalidResponse);

  output = {};
  output.signal = 11;
  EXPECT_EQ(classify_scontrol(output)->detail, "scontrol was killed by signal 11");

  EXPECT_EQ(classify_scontrol(ended(127, "", ""))->cause, SlurmFailure::kCommandMissing);
  EXPECT_EQ(classify_scontrol(ended(3, "", ""))->detail, "scontrol exited with 3");
  EXPECT_EQ(
      classify_scontrol(ended(1, "", "[2026-11-20T23:08:38.621] error: plugin_load: odd thing\n"))
          ->detail,
      "scontrol exited with 1: odd thing");
}

TEST(SlurmClient, DetailsAreOneShortLineOfValidText) {
  const auto failure = classify_scontrol(
      ended(1, "", "noise\nMunge encode failed: \xFF" + std::string(5000, 'x') + "\nend"));
  ASSERT_TRUE(failure);
  EXPECT_LE(failure->detail.size(), 300U);
  EXPECT_EQ(failure->detail.find('\n'), std::string::npos);
  EXPECT_THAT(failure->detail, HasSubstr("\xEF\xBF\xBD"));
}

TEST(SlurmClient, ADetailHoldsNoControlCharacters) {
  const auto failure = classify_scontrol(ended(1, "", "Munge encode failed: a\rb\tc\x1B[0m\n"));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->detail, "Munge encode failed: a b c [0m");
}

TEST(SlurmClient, AProgramThatCannotStartIsMissing) {
  EXPECT_EQ(classify_start({Code::kNotFound, "run scontrol: No such file"}).cause,
            SlurmFailure::kCommandMissing);
  EXPECT_EQ(classify_start({Code::kDenied, "run scontrol: Permission denied"}).cause,
            SlurmFailure::kCommandMissing);
  EXPECT_EQ(classify_start({Code::kInternal, "fork"}).cause, SlurmFailure::kInvalidResponse);
}

TEST(SlurmClient, EveryCauseHasItsWords) {
  std::set<std::string> words;
  for (int cause = 0; cause < static_cast<int>(SlurmFailure::kCount); ++cause) {
    words.insert(to_string(static_cast<SlurmFailure>(cause)));
  }
  EXPECT_EQ(words.size(), static_cast<std::size_t>(SlurmFailure::kCount));
}

}  // namespace slurm_client_test
}  // namespace slurmlet::slurm
