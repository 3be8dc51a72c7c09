#include "slurm/sources/scontrol_source.h"

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
#include "record_fixture.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;
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

CommandOutput printed(const std::string& out) {
  CommandOutput output;
  output.out = out;
  return output;
}

class ScontrolSourceTest : public testing::Test {
 protected:
  QueryResult ask_and_end(const CommandOutput& output, const std::string& node = "n1") {
    EXPECT_FALSE(source_.query(node, clock_.now()));
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
  ClientSettings settings_;
  ScontrolSource source_{settings_, std::make_unique<FakeRunner>(program_)};
};

TEST_F(ScontrolSourceTest, AsksForAllNodesOfItsOwnClusterAndTakesItsOwn) {
  const auto result =
      ask_and_end(printed(scontrol_record("n10", "DOWN") + scontrol_record("n1", "MIXED") +
                          scontrol_record("n2", "IDLE")));
  ASSERT_TRUE(result.record) << result.failure->detail;
  EXPECT_EQ(result.record->name, "n1");
  EXPECT_EQ(result.record->state.raw(), "MIXED");
  EXPECT_THAT(last().argv, testing::IsSupersetOf({"--local", "-a", "show", "node"}));
  EXPECT_THAT(last().extra_environment, Contains(HasSubstr("SLURM_TIME_FORMAT=%s")));
}

// Somebody may write into a Comment what looks like another node's record.
TEST_F(ScontrolSourceTest, ALineThatAPersonWroteIsNoRecord) {
  EXPECT_FALSE(source_.query("n1", clock_.now()));
  const std::string nonce =
      last().extra_environment.back().substr(std::string{"SLURM_TIME_FORMAT=%s"}.size());
  const auto real = [&](std::string text) {
    const std::string time = "BootTime=1763700000";
    return text.replace(text.find(time), time.size(), time + nonce);
  };
  std::string forged = scontrol_record("n1", "DOWN");
  program_.end = printed(real(scontrol_record("n0", "IDLE", " Comment=x")) + forged +
                         real(scontrol_record("n1", "IDLE")));
  const auto result = source_.poll(clock_.now());
  ASSERT_TRUE(result && result->record);
  EXPECT_EQ(result->record->state.raw(), "IDLE");
}

TEST_F(ScontrolSourceTest, WhatIsNoListIsNamed) {
  const struct {
    CommandOutput output;
    SlurmFailure cause;
  } rows[] = {
      {printed(scontrol_record("n2")), SlurmFailure::kNotInSlurm},
      {printed("No nodes in the system\n"), SlurmFailure::kNotInSlurm},
      {printed("Welcome to head1\n"), SlurmFailure::kInvalidResponse},
      {printed(scontrol_record("n1").substr(0, 200)), SlurmFailure::kInvalidResponse},
      {printed(scontrol_record("n1") + scontrol_record("n1", "DOWN")),
       SlurmFailure::kInvalidResponse},
      {[] {
         CommandOutput output;
         output.exit_code = 1;
         output.err = fixture("22.05.8/privatedata-nodes-nobody.show-node.err");
         return output;
       }(),
       SlurmFailure::kPermissionDenied},
  };
  for (const auto& row : rows) {
    const auto result = ask_and_end(row.output);
    ASSERT_TRUE(result.failure) << row.output.out;
    EXPECT_EQ(result.failure->cause, row.cause) << row.output.out;
  }
}

TEST_F(ScontrolSourceTest, UsesTheConfigurationOfTheSlurmdThatRuns) {
  source_.set_place({"/srv/b.conf", "", ""});
  ask_and_end({});
  EXPECT_THAT(last().extra_environment, Contains("SLURM_CONF=/srv/b.conf"));
}

TEST_F(ScontrolSourceTest, AConfiguredFileWinsOverThatOfTheSlurmd) {
  settings_.conf = "/etc/a.conf";
  ScontrolSource source{settings_, std::make_unique<FakeRunner>(program_)};
  source.set_place({"/srv/b.conf", "head", ""});
  ASSERT_FALSE(source.query("n1", clock_.now()));
  EXPECT_THAT(last().extra_environment, Contains("SLURM_CONF=/etc/a.conf"));
  EXPECT_THAT(last().extra_environment, Not(Contains(HasSubstr("SLURM_CONF_SERVER"))));
}

TEST_F(ScontrolSourceTest, AConfiglessClusterWithoutACacheIsFetchedFrom) {
  source_.set_place({"", "head:6817", ""});
  ask_and_end({});
  EXPECT_THAT(last().extra_environment, Contains("SLURM_CONF_SERVER=head:6817"));
}

TEST_F(ScontrolSourceTest, AMungedThatIsGoneIsNamedThoughScontrolOnlyHung) {
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
TEST_F(ScontrolSourceTest, OneThatSleepsIsEndedUnlessTheRateMayBeLimited) {
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
  EXPECT_THAT(refused.failure->detail, HasSubstr("scontrol was waiting to connect again"));

  EXPECT_THAT(last().argv, Contains("-v"));
  asleep.err = fixture("25.11/ratelimited-nobody-verbose.err");
  EXPECT_EQ(ask_and_end(asleep).failure->cause, SlurmFailure::kRateLimited)
      << "slurm.conf here is not that of slurmctld";

  ask_and_end({});
  EXPECT_FALSE(last().ends_asleep);
}

TEST_F(ScontrolSourceTest, AfterASilentTimeoutScontrolIsMadeToSayThatTheRateIsLimited) {
  const std::string socket = tree_.path("munge.socket");
  const UniqueFd munged = listen_at(socket);
  source_.set_place({"", "", socket});
  ask_and_end(timeout());
  EXPECT_THAT(last().argv, Not(Contains("-v")));
  const auto limited = ask_and_end(timeout(fixture("25.11/ratelimited-nobody-verbose.err")));
  EXPECT_THAT(last().argv, Contains("-v"));
  EXPECT_EQ(limited.failure->cause, SlurmFailure::kRateLimited);
  EXPECT_TRUE(
      ask_and_end(printed("last_update_time=1763757000, records=1\n" + scontrol_record("n1")))
          .record)
      << "what -v prints before is no answer";
  ask_and_end({});
  EXPECT_THAT(last().argv, Not(Contains("-v")));
}

}  // namespace
}  // namespace slurmlet::slurm
