#include "slurm/sources/sinfo_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/unique_fd.h"
#include "fake_runner.h"
#include "fakes/fake_clock.h"
#include "fakes/temp_tree.h"
#include "fixture.h"
#include "slurm/local/munge_socket.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

UniqueFd listen_at(const std::string& path) {
  UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 1), 0);
  return fd;
}

class SinfoSourceTest : public testing::Test {
 protected:
  QueryResult ask_and_end(const CommandOutput& output) {
    EXPECT_FALSE(source_.ask("n1", Query::kOneNode, clock_.now()));
    EXPECT_TRUE(source_.busy());
    program_.end = output;
    return source_.poll(clock_.now()).value_or(QueryResult{});
  }
  static CommandOutput timeout(const std::string& err = "") {
    CommandOutput output;
    output.timed_out = true;
    output.signal = 9;
    output.err = err;
    return output;
  }
  const CommandSpec& last() const { return program_.started.back(); }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  FakeProgram program_;
  SinfoSettings settings_;
  SinfoSource source_{settings_, std::make_unique<FakeRunner>(program_)};
};

TEST_F(SinfoSourceTest, UsesTheConfigurationOfTheSlurmdThatRuns) {
  source_.set_place({"/srv/b.conf", "", ""});
  ask_and_end({});
  EXPECT_THAT(last().extra_environment, Contains("SLURM_CONF=/srv/b.conf"));
  EXPECT_EQ(source_.counters().commands, 1U);
}

TEST_F(SinfoSourceTest, AConfiguredFileWinsOverThatOfTheSlurmd) {
  settings_.conf = "/etc/a.conf";
  SinfoSource source{settings_, std::make_unique<FakeRunner>(program_)};
  source.set_place({"/srv/b.conf", "head", ""});
  ASSERT_FALSE(source.ask("n1", Query::kOneNode, clock_.now()));
  EXPECT_THAT(last().extra_environment, Contains("SLURM_CONF=/etc/a.conf"));
  EXPECT_THAT(last().extra_environment, Not(Contains(HasSubstr("SLURM_CONF_SERVER"))));
}

TEST_F(SinfoSourceTest, AConfiglessClusterWithoutACacheIsFetchedFrom) {
  source_.set_place({"", "head:6817", ""});
  ask_and_end({});
  EXPECT_THAT(last().extra_environment, Contains("SLURM_CONF_SERVER=head:6817"));
}

TEST_F(SinfoSourceTest, AMungedThatIsGoneIsNamedThoughSinfoOnlyHung) {
  const std::string socket = tree_.path("munge.socket");
  { const UniqueFd closed = listen_at(socket); }
  source_.set_place({"", "", socket});
  const auto stale = ask_and_end(timeout());
  ASSERT_TRUE(stale.failure);
  EXPECT_EQ(stale.failure->cause, SlurmFailure::kMungeUnavailable);
  EXPECT_EQ(stale.failure->detail, "munged is not running: nothing is listening on " + socket);

  ::unlink(socket.c_str());
  EXPECT_THAT(ask_and_end(timeout()).failure->detail, HasSubstr("there is no " + socket));

  const UniqueFd munged = listen_at(socket);
  EXPECT_EQ(ask_and_end(timeout()).failure->cause, SlurmFailure::kTimeout);
}

// While it cannot connect, and while the rate is limited.
TEST_F(SinfoSourceTest, OneThatSleepsIsEndedUnlessTheRateMayBeLimited) {
  ask_and_end({});
  EXPECT_FALSE(last().ends_asleep) << "no slurm.conf was read";

  const std::string socket = tree_.path("munge.socket");
  source_.set_place({.munge_socket = socket, .may_limit_rate = false});
  CommandOutput asleep = timeout();
  asleep.asleep = true;
  const auto no_munge = ask_and_end(asleep);
  EXPECT_TRUE(last().ends_asleep);
  EXPECT_EQ(no_munge.failure->cause, SlurmFailure::kMungeUnavailable) << "which it waits for too";

  const UniqueFd munged = listen_at(socket);
  const auto refused = ask_and_end(asleep);
  EXPECT_EQ(refused.failure->cause, SlurmFailure::kControllerUnreachable);
  EXPECT_EQ(refused.failure->detail,
            "sinfo was waiting to connect again, having reached no slurmctld or one in standby");

  EXPECT_THAT(last().argv, Contains("-v"));
  asleep.err = fixture("25.11/ratelimited-nobody-verbose.err");
  EXPECT_EQ(ask_and_end(asleep).failure->cause, SlurmFailure::kRateLimited)
      << "slurm.conf here is not that of slurmctld";

  ask_and_end({});
  EXPECT_FALSE(last().ends_asleep);
  EXPECT_THAT(last().argv, Contains(HasSubstr("User:"))) << "none hung looking it up";
}

TEST_F(SinfoSourceTest, AfterASilentTimeoutSinfoIsMadeToSayThatTheRateIsLimited) {
  const std::string socket = tree_.path("munge.socket");
  const UniqueFd munged = listen_at(socket);
  source_.set_place({"", "", socket});
  ask_and_end(timeout());
  EXPECT_THAT(last().argv, Not(Contains("-v")));
  const auto limited = ask_and_end(timeout(fixture("25.11/ratelimited-nobody-verbose.err")));
  EXPECT_THAT(last().argv, Contains("-v"));
  EXPECT_EQ(limited.failure->cause, SlurmFailure::kRateLimited);

  CommandOutput good;
  good.out = query_answer("22.05.8/query-idle.out");
  good.out.replace(0, good.out.find('|'), "n1");
  const std::string options = fixture("22.05.8/sinfo-verbose.head");
  good.out.insert(0, options);
  EXPECT_TRUE(ask_and_end(good).record) << "what -v prints before is no answer";
  ask_and_end({});
  EXPECT_THAT(last().argv, Not(Contains("-v")));
}

// sssd hangs: sinfo that looks up who gave the reason does not end.
TEST_F(SinfoSourceTest, AHangingLookupOfTheUserCostsItsNameOnly) {
  const auto answer = [&](const std::string& user, const std::string& reason) {
    CommandOutput output;
    output.out =
        "n1|p|idle+drain|0/8/0/8|100|0|N/A|N/A|(null)|gpu:0|25.11.0|(null)|(null)|N/A||"
        "1795223704|" +
        user + "|(null)\x1f" + reason + "|\n";
    return output;
  };
  const auto asks_user = [&] { return last().argv[8].find("User:|") != std::string::npos; };
  EXPECT_EQ(ask_and_end(answer("alice", "disk")).record->reason_user, "alice");
  ASSERT_TRUE(asks_user());
  EXPECT_EQ(ask_and_end(timeout()).failure->cause, SlurmFailure::kTimeout);
  EXPECT_EQ(ask_and_end(answer("N/A", "disk")).record->reason_user, "alice") << "as it was";
  EXPECT_FALSE(asks_user());
  EXPECT_EQ(ask_and_end(answer("N/A", "fan")).record->reason_user, "") << "not known";
  EXPECT_FALSE(asks_user()) << "within an hour";
  EXPECT_THAT(last().argv, Not(Contains("-v")));
  clock_.advance(std::chrono::hours{1});
  EXPECT_EQ(ask_and_end(answer("bob", "fan")).record->reason_user, "bob");
  EXPECT_TRUE(asks_user());
}

TEST(SinfoVerbose, TheOptionsBeforeTheAnswerAreCutOff) {
  const std::string head = fixture("22.05.8/sinfo-verbose.head");
  EXPECT_EQ(without_options(head + "n1|idle|\n"), "n1|idle|\n");
  EXPECT_EQ(without_options("n1|idle|\n"), "n1|idle|\n");
  EXPECT_EQ(without_options("-----------------------------\ncut"),
            "-----------------------------\ncut");
}

// With two names sinfo asks for all nodes, which makes slurmctld recompute what is allocated.
TEST_F(SinfoSourceTest, AFullQueryNamesTheNodeTwice) {
  CommandOutput output;
  output.out = query_answer("22.05.8/query-idle.out");
  const std::string node = output.out.substr(0, output.out.find('|'));
  for (const auto query : {Query::kOneNode, Query::kFull, Query::kOneNode}) {
    ASSERT_FALSE(source_.ask(node, query, clock_.now()));
    const bool full = query == Query::kFull;
    EXPECT_THAT(last().argv, Contains(full ? node + "," + node : node));
    EXPECT_THAT(last().argv, Not(Contains(full ? node : node + "," + node)));
    program_.end = output;
    const auto result = source_.poll(clock_.now());
    ASSERT_TRUE(result && result->record);
    EXPECT_EQ(result->record->kind,
              full ? node::AnswerKind::kFullDump : node::AnswerKind::kOneNode);
  }
  EXPECT_EQ(source_.counters().full_queries, 1U);
}

}  // namespace
}  // namespace slurmlet::slurm
