// FactsSync asks a slurmd that can be asked (/readyz, since 25.11) whether it serves.

#include "fakes/fake_http_client.h"
#include "sync/facts_sync.h"
#include "sync/facts_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class FactsProbeTest : public FactsSyncFixture {
 protected:
  FactsProbeTest() {
    conf_.slurmd_port = 6818;
    probe_client_ = [this](int port) {
      ports_.push_back(port);
      auto client = std::make_unique<fakes::FakeHttpClient>();
      client_ = client.get();
      return client;
    };
  }
  void start_with(const std::string& version) {
    slurmd_starts();
    make();
    step();
    end_version("slurm " + version);
  }
  std::size_t asked() const { return client_ == nullptr ? 0 : client_->stream_requests.size(); }
  void slurmd_says(int status) {
    client_->stream().status = status;
    client_->stream().end();
    step();
  }

  std::vector<int> ports_;
  fakes::FakeHttpClient* client_ = nullptr;
};

TEST_F(FactsProbeTest, OnceItsVersionIsKnownAndThenOnceAReport) {
  start_with("25.11.0");
  ASSERT_EQ(asked(), 1U);
  EXPECT_EQ(ports_, std::vector<int>{6818});
  EXPECT_FALSE(facts().slurmd.serves);
  EXPECT_TRUE(facts_->learns_about_slurmd()) << "`slurmlet check` waits for the answer";
  slurmd_says(204);
  EXPECT_FALSE(facts_->learns_about_slurmd());
  EXPECT_EQ(facts().slurmd.serves, true);
  wait_quietly(minutes{4});
  EXPECT_EQ(asked(), 1U);
  wait_quietly(minutes{1} + seconds{1});
  EXPECT_EQ(asked(), 2U);
  slurmd_says(500);
  EXPECT_EQ(facts().slurmd.serves, false);
}

TEST_F(FactsProbeTest, OnceASlowSlurmConfTellsWhere) {
  hold_slurm_conf();
  start_with("25.11.0");
  EXPECT_EQ(asked(), 0U);
  released_.set_value();
  (void)facts_->await_site(clock_.now(), minutes{1});
  step();
  end_version("slurm 25.11.0");  // in the places that slurm.conf tells
  EXPECT_EQ(asked(), 1U);
}

TEST_F(FactsProbeTest, WhatADeadSlurmdSaidIsForgotten) {
  start_with("25.11.0");
  slurmd_says(500);
  slurmd_dies();
  run_until([this] { return liveness() == node::SlurmdFacts::Liveness::kAbsent; }, seconds{31});
  EXPECT_FALSE(facts().slurmd.serves);
}

TEST_F(FactsProbeTest, AnOlderSlurmdIsNotConnectedTo) {
  start_with("24.11.5");
  wait_quietly(minutes{20});
  EXPECT_TRUE(ports_.empty());
}

TEST_F(FactsProbeTest, NorIsOneThatSlurmConfTellsNotToServeHttp) {
  conf_.slurmd_port = 0;
  start_with("25.11.0");
  wait_quietly(minutes{20});
  EXPECT_TRUE(ports_.empty());
}

}  // namespace
}  // namespace slurmlet::sync
