#include "slurm/local/slurmd_probe.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "fixture.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::seconds;

TEST(SlurmdProbeVersion, OnlySlurmdsThatHaveReadyzAreAsked) {
  const std::vector<std::pair<const char*, bool>> cases{
      {"25.11.0", true},  {"25.11.8-0pre1", true}, {"26.05.1", true},
      {"25.05.9", false}, {"24.11.5", false},      {"22.05.8", false},
      {"", false},        {"25", false},           {"next.11", false}};
  for (const auto& [version, has] : cases) {
    EXPECT_EQ(has_readyz(version), has) << version;
  }
}

class SlurmdProbeTest : public testing::Test {
 protected:
  SlurmdProbeTest()
      : probe_([this](int port) {
          ports_.push_back(port);
          auto client = std::make_unique<fakes::FakeHttpClient>();
          client_ = client.get();
          return client;
        }) {}

  void ask() { probe_.ask(6818, "25.11.0", now()); }
  SteadyTime step() { return probe_.step(now()); }
  SteadyTime now() const { return clock_.now().steady; }
  void answer(int status) {
    client_->stream().status = status;
    client_->stream().end();
    step();
  }

  fakes::FakeClock clock_;
  std::vector<int> ports_;
  fakes::FakeHttpClient* client_ = nullptr;
  SlurmdProbe probe_;
};

TEST_F(SlurmdProbeTest, SaysWhatSlurmdSays) {
  ask();
  ASSERT_EQ(client_->stream_requests.size(), 1U);
  EXPECT_EQ(client_->stream_requests[0].path, "/readyz");
  EXPECT_EQ(step(), now() + SlurmdProbe::kTimeout);
  EXPECT_FALSE(probe_.ready());
  // As captured of 25.11: the status line of http-slurmd-readyz.out.
  const std::string head = fixture("25.11/http-slurmd-readyz.out");
  answer(parse_int<int>(split(head, ' ')[1]).value());
  EXPECT_EQ(probe_.ready(), true);
  EXPECT_EQ(step(), kNever);

  ask();
  EXPECT_EQ(probe_.ready(), true) << "until there is another answer";
  answer(500);
  EXPECT_EQ(probe_.ready(), false);
  EXPECT_EQ(ports_.size(), 1U) << "the connection is kept";
}

TEST_F(SlurmdProbeTest, WhatIsNoYesOrNoIsNoAnswer) {
  for (const int status : {200, 404, 401, 302}) {
    ask();
    answer(status);
    EXPECT_FALSE(probe_.ready()) << status;
  }
  ask();
  client_->stream().break_off({Code::kUnavailable, "connection refused"});
  step();
  EXPECT_FALSE(probe_.ready());
}

TEST_F(SlurmdProbeTest, SilenceEndsAtTheDeadlineAndIsNoAnswer) {
  ask();
  answer(204);
  ask();
  clock_.advance(SlurmdProbe::kTimeout);
  EXPECT_EQ(step(), kNever);
  EXPECT_FALSE(probe_.ready());
  EXPECT_TRUE(client_->stream().closed);
}

TEST_F(SlurmdProbeTest, OneQuestionAtATime) {
  ask();
  ask();
  EXPECT_EQ(client_->stream_requests.size(), 1U);
}

TEST_F(SlurmdProbeTest, AnOlderSlurmdIsLeftInPeaceAndForgetsTheOneBefore) {
  ask();
  answer(204);
  probe_.ask(6818, "24.11.5", now());
  EXPECT_EQ(client_->stream_requests.size(), 1U);
  EXPECT_FALSE(probe_.ready());
  probe_.ask(0, "25.11.0", now());
  EXPECT_EQ(client_->stream_requests.size(), 1U);
}

TEST_F(SlurmdProbeTest, AnotherPortIsAnotherConnection) {
  ask();
  answer(204);
  probe_.ask(7000, "25.11.0", now());
  EXPECT_EQ(ports_, (std::vector<int>{6818, 7000}));
}

}  // namespace
}  // namespace slurmlet::slurm
