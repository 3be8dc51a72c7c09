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

// The cause of every captured message: captures_test.cpp.
TEST(SlurmClient, AMessageNamesItsCauseAndWhatHelps) {
  const std::string no_credential = "\nslurm_load_partitions: Protocol authentication error\n";
  const struct {
    std::string text;
    SlurmFailure cause;
    const char* words;
  } kRows[] = {
      {fixture("22.05.8/ctld-down.sinfo.err"), SlurmFailure::kControllerUnreachable,
       "(connect failure)"},
      {fixture("22.05.8/ctld-hung.sinfo.err"), SlurmFailure::kControllerUnreachable, "timed out"},
      {fixture("22.05.8/query-ctld-unresolvable.err"), SlurmFailure::kControllerUnreachable,
       "\"no-such-host.invalid\""},
      {fixture("22.05.8/munge-down.sinfo.err"), SlurmFailure::kMungeUnavailable,
       "Did you start munged?"},
      {fixture("22.05.8/munge-socket-closed.sinfo.err"), SlurmFailure::kMungeUnavailable,
       "slurmlet's user cannot access that socket"},
      {fixture("22.05.8/munge-other-key.sinfo.err"), SlurmFailure::kAuthenticationRefused,
       "munge key or clock"},
      {fixture("22.05.8/slurmuser-unknown.sinfo.err"), SlurmFailure::kBadConfiguration,
       "SlurmUser nosuchuser"},
      {fixture("22.05.8/conf-missing.sinfo.err"), SlurmFailure::kBadConfiguration,
       "/nonexistent/slurm.conf"},
      {fixture("22.05.8/conf-none-dns.scontrol.err"), SlurmFailure::kBadConfiguration,
       "no slurm.conf and no DNS SRV record"},
      {fixture("22.05.8/query-conf-bogus.err"), SlurmFailure::kBadConfiguration, "BogusKey"},
      {fixture("22.05.8/query-conf-broken.err"), SlurmFailure::kBadConfiguration,
       "/etc/hostname line 1"},
      // As munged and auth/munge word them where slurmctld answers at all.
      {"scontrol: error: Munge decode failed: Expired credential" + no_credential,
       SlurmFailure::kClockSkew, ""},
      {"scontrol: error: Munge decode failed: Rewound credential" + no_credential,
       SlurmFailure::kClockSkew, ""},
      {"scontrol: error: Munge decode failed: Invalid credential" + no_credential,
       SlurmFailure::kAuthenticationRefused, ""},
      {"slurm_load_node: Protocol authentication error" + no_credential,
       SlurmFailure::kAuthenticationRefused, ""},
      {"scontrol: fatal: cannot create auth context for auth/munge" + no_credential,
       SlurmFailure::kBadConfiguration, ""},
      // An address with no slurmctld behind it.
      {"slurm_load_partitions: Connection reset by peer\n", SlurmFailure::kControllerUnreachable,
       "Connection reset"},
      {"slurm_load_partitions: Broken pipe\n", SlurmFailure::kControllerUnreachable, "Broken pipe"},
      {"slurm_load_partitions: Transport endpoint is not connected\n",
       SlurmFailure::kControllerUnreachable, "not connected"},
      // 24.11.5 without sackd; slurmd serves this socket where there is no sackd.
      {"scontrol: error: failed to connect to any sack sockets\n"
       "scontrol: error: create_external: failed to create token\n"
       "scontrol: error: slurm_buffers_pack_msg: auth_g_create: REQUEST_PARTITION_INFO has "
       "authentication error" +
           no_credential,
       SlurmFailure::kSackUnavailable, "sack sockets"},
      {"Munge encode failed: a\rb\tc\x1B[0m\n", SlurmFailure::kMungeUnavailable, "a b c [0m"},
  };
  for (const auto& row : kRows) {
    const auto failure = classify_scontrol(ended(1, "", row.text));
    ASSERT_TRUE(failure) << row.text;
    EXPECT_EQ(failure->cause, row.cause) << row.text << ": " << to_string(failure->cause);
    EXPECT_THAT(failure->detail, HasSubstr(row.words));
  }
}

TEST(SlurmClient, AnAnswerIsNoFailure) {
  const auto out = fixture("dump/22.05.scontrol.out");
  EXPECT_FALSE(classify_scontrol(ended(0, out, "")));
  EXPECT_FALSE(classify_scontrol(ended(0, out, fixture("25.11/ratelimited-nobody-verbose.err"))))
      << "served in the end";
}

TEST(SlurmClient, EmptyOutputIsNoAnswer) {
  for (const std::string& err : {std::string{}, fixture("25.11/ratelimited-nobody-verbose.err")}) {
    const auto failure = classify_scontrol(ended(0, "\n", err));
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->cause, SlurmFailure::kInvalidResponse);
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
