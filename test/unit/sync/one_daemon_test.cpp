// One node, one daemon: two machines with one node name before one API server.

#include "base/log.h"
#include "sync/lease_sync.h"
#include "sync/node_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The two loops of one daemon, with a clock of its own.
class Daemon {
 public:
  Daemon(fakes::FakeNodeApi& nodes, fakes::FakeLeaseApi& leases, const std::string& uuid)
      : lease_(
            leases, {"n1", "n1/" + uuid, seconds{40}}, [] { return 0.5; }, link_),
        events_(event_api_, "n1", [] { return 0.0; }),
        node_(
            nodes, leases, watch_, events_, options(uuid), [] { return 0.5; }, link_) {
    node::DesiredNode desired = good_node();
    desired.node_info.system_uuid = uuid;  // with the Metal3 uuid of good_node(), cloned
    node_.set_desired(desired, clock_.now());
  }

  // What is due, and then time passes.
  void run(Duration time) {
    for (const SteadyTime end = clock_.now().steady + time; clock_.now().steady < end;) {
      step();
      clock_.advance(seconds{1});
    }
  }
  void step() {
    if (node_.step(clock_.now()) <= clock_.now().steady) {
      node_.step(clock_.now());
    }
    lease_.step(clock_.now());
  }
  bool runs_node() const { return node_.registered(); }
  std::string refusal() const { return node_.block_reason(); }
  fakes::FakeClock& clock() { return clock_; }

 private:
  static NodeSyncOptions options(const std::string& uuid) {
    NodeSyncOptions options;
    options.holder_identity = "n1/" + uuid;
    return options;
  }
  fakes::FakeClock clock_;
  LeaseLink link_;
  LeaseSync lease_;
  fakes::FakeWatch<node::ObservedNode> watch_;
  fakes::FakeEventApi event_api_;
  EventSink events_;
  NodeSync node_;
};

class OneDaemonTest : public ::testing::Test {
 protected:
  // Both run, a second at a time.
  void run(Duration time) {
    for (int i = 0; i < time / seconds{1}; ++i) {
      first_.run(seconds{1});
      second_.run(seconds{1});
      EXPECT_FALSE(first_.runs_node() && second_.runs_node());
    }
  }
  std::string holder() const { return leases_.find("n1").value_or(kube::Lease{}).holder_identity; }

  fakes::FakeNodeApi nodes_;
  fakes::FakeLeaseApi leases_;
  Daemon first_{nodes_, leases_, "a"};
  Daemon second_{nodes_, leases_, "b"};
};

TEST_F(OneDaemonTest, TheSecondIsRefusedBeforeItsFirstWriteAndSaysByWhom) {
  first_.run(seconds{30});
  nodes_.clear_calls();
  run(minutes{10});
  EXPECT_TRUE(first_.runs_node());
  EXPECT_THAT(second_.refusal(),
              AllOf(HasSubstr("n1/a"), HasSubstr("2026-11-20T14:"), HasSubstr("--nodename")));
  EXPECT_EQ(holder(), "n1/a");
  EXPECT_EQ(nodes_.writes(), 2) << "the reports of the first";
  EXPECT_LE(nodes_.count("get n1"), 13) << "the looks of the second";
}

// The first may have been cut off from the network, not dead.
TEST_F(OneDaemonTest, TheSecondTakesOverWhenTheFirstIsSilentWhichLetsGoWhenItComesBack) {
  first_.run(seconds{30});
  run(minutes{3});
  ASSERT_NE(second_.refusal(), "");
  first_.clock().advance(minutes{3});
  second_.run(minutes{3});
  EXPECT_TRUE(second_.runs_node());
  EXPECT_EQ(second_.refusal(), "");
  EXPECT_EQ(holder(), "n1/b");
  first_.run(seconds{20});
  EXPECT_FALSE(first_.runs_node());
  EXPECT_THAT(first_.refusal(), HasSubstr("n1/b"));  // it was seen to write: no need to wait
  run(minutes{5});
  EXPECT_TRUE(second_.runs_node());
  EXPECT_THAT(first_.refusal(), HasSubstr("n1/b"));
  EXPECT_EQ(holder(), "n1/b");
}

TEST_F(OneDaemonTest, ClocksThatDifferDoNotMatter) {
  for (const auto skew : {-hours{30}, hours{0}, hours{3}, hours{24 * 400}}) {
    nodes_.remove("n1");
    leases_.remove("n1");
    Daemon first{nodes_, leases_, "a"};
    Daemon second{nodes_, leases_, "b"};
    second.clock().step_wall(skew);
    first.run(seconds{30});
    for (int i = 0; i < 300; ++i) {
      first.run(seconds{1});
      second.run(seconds{1});
    }
    EXPECT_TRUE(first.runs_node());
    EXPECT_THAT(second.refusal(), HasSubstr("n1/a")) << skew.count();
    EXPECT_EQ(holder(), "n1/a");
  }
}

TEST_F(OneDaemonTest, OfTwoThatStartTogetherOneHasTheNode) {
  first_.step();
  second_.step();  // adopts the Node that cannot be told from its own
  run(minutes{5});
  EXPECT_TRUE(first_.runs_node());
  EXPECT_FALSE(second_.runs_node());
  EXPECT_EQ(holder(), "n1/a");
}

TEST_F(OneDaemonTest, ARestartAndAReinstalledHostPassAtOnce) {
  first_.run(seconds{30});
  Daemon restarted{nodes_, leases_, "A"};
  restarted.step();
  EXPECT_TRUE(restarted.runs_node());
}

TEST_F(OneDaemonTest, AnExchangedMainboardPassesAfterALeaseDuration) {
  first_.run(seconds{30});
  second_.clock().advance(seconds{60});
  second_.step();
  EXPECT_FALSE(second_.runs_node());
  second_.run(seconds{51});
  EXPECT_TRUE(second_.runs_node());
  EXPECT_EQ(holder(), "n1/b");  // the Lease is taken over with the Node
}

TEST_F(OneDaemonTest, ALongWaitForAHolderIsAWarningOnce) {
  const struct {
    int lease_seconds;
    const char* line;
  } kRows[] = {{40, "waiting 50 s"}, {3600, "waiting 600 s"}};
  for (const auto& row : kRows) {
    kube::Lease lease;
    lease.name = "n1";
    lease.holder_identity = "n1/a";
    lease.renew_time = "2026-11-20T14:00:00.000000Z";
    lease.duration_seconds = row.lease_seconds;
    leases_.put(lease);
    Daemon daemon{nodes_, leases_, "b"};
    ::testing::internal::CaptureStderr();
    log::set_level(log::Level::kWarning);
    daemon.run(minutes{9});
    const std::string warnings = ::testing::internal::GetCapturedStderr();
    log::set_level(log::Level::kInfo);
    const auto at = warnings.find(row.line);
    EXPECT_EQ(at != std::string::npos, row.lease_seconds > 240) << warnings;
    EXPECT_EQ(warnings.find(row.line, at + 1), std::string::npos) << warnings;
    nodes_.remove("n1");
  }
}

TEST_F(OneDaemonTest, AKubeletsLeaseIsNoObstacle) {
  kube::Lease lease;
  lease.name = "n1";
  lease.holder_identity = "n1";
  lease.renew_time = "2026-11-20T14:00:00.000000Z";
  leases_.put(lease);
  first_.step();
  EXPECT_TRUE(first_.runs_node());
  EXPECT_EQ(holder(), "n1/a");
}

}  // namespace
}  // namespace slurmlet::sync
