#include "sync/lease_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rfc3339.h"
#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LeaseSyncTest : public ::testing::Test {
 protected:
  LeaseSyncTest() { link_.node_uid.set("uid-1"); }

  SteadyTime step() { return sync_.step(clock_.now()); }
  // Renews once more, when it is due.
  void renew() {
    clock_.advance(seconds{10});
    step();
  }
  kube::Lease lease() const { return api_.find("n1").value_or(kube::Lease{}); }
  static kube::Lease existing(const std::string& owner, const std::string& renew_time) {
    kube::Lease lease;
    lease.name = "n1";
    lease.holder_identity = "n1";
    lease.owner_node_name = "n1";
    lease.owner_node_uid = owner;
    lease.renew_time = renew_time;
    lease.acquire_time = "2026-11-01T00:00:00.000000Z";
    return lease;
  }

  fakes::FakeClock clock_;
  fakes::FakeLeaseApi api_;
  LeaseLink link_;
  LeaseSync sync_{api_, {"n1", "n1", seconds{40}}, [] { return 0.0; }, link_};
};

TEST_F(LeaseSyncTest, WithoutANodeThereIsNoCall) {
  LeaseLink nothing;
  LeaseSync never{api_, {"n1", "n1", seconds{40}}, [] { return 0.0; }, nothing};
  EXPECT_EQ(never.step(clock_.now()), kNever);
  link_.node_uid.set("");
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
  EXPECT_EQ(link_.status.get(), nullptr);
}

TEST_F(LeaseSyncTest, CreatesAMissingLeaseOwnedByTheNode) {
  EXPECT_EQ(step(), clock_.now().steady + seconds{10});
  EXPECT_THAT(api_.calls(), ElementsAre("get n1", "create n1"));
  EXPECT_EQ(lease().holder_identity, "n1");
  EXPECT_EQ(lease().duration_seconds, 40);
  EXPECT_EQ(lease().owner_node_name, "n1");
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
  EXPECT_EQ(lease().renew_time, "2026-11-20T14:00:00.000000Z");
  EXPECT_EQ(lease().acquire_time, lease().renew_time);
}

TEST_F(LeaseSyncTest, TakesAnExistingLeaseOver) {
  api_.put(existing("uid-0", "2026-11-20T13:00:00.000000Z"));
  step();
  EXPECT_THAT(api_.calls(), ElementsAre("get n1", "update n1"));
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
  EXPECT_EQ(lease().renew_time, "2026-11-20T14:00:00.000000Z");
  EXPECT_EQ(lease().acquire_time, "2026-11-01T00:00:00.000000Z");
}

TEST_F(LeaseSyncTest, SteadyRenewalsAreUpdatesOnly) {
  step();
  api_.clear_calls();
  for (int i = 0; i < 50; ++i) {
    clock_.advance(seconds{5});
    EXPECT_EQ(step(), clock_.now().steady + seconds{5});  // not due yet
    clock_.advance(seconds{5});
    EXPECT_EQ(step(), clock_.now().steady + seconds{10});
  }
  EXPECT_EQ(api_.calls().size(), 50U);
  EXPECT_EQ(api_.count("update n1"), 50);
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
}

// Those who started together, or whom one outage held up, do not stay in step.
TEST_F(LeaseSyncTest, TheFirstRenewalIsSpreadOverTheIntervalOthersByFourPercent) {
  LeaseSync late{api_, {"n1", "n1", seconds{40}}, [] { return 1.0; }, link_};
  EXPECT_LE(late.step(clock_.now()), clock_.now().steady + seconds{1});
  clock_.advance(seconds{1});
  EXPECT_EQ(late.step(clock_.now()), clock_.now().steady + milliseconds{10400});
}

TEST_F(LeaseSyncTest, AConflictIsReadAndRetriedAtOnce) {
  step();
  kube::Lease theirs = lease();
  theirs.holder_identity = "somebody";
  api_.put(theirs);
  api_.clear_calls();
  renew();
  EXPECT_THAT(api_.calls(), ElementsAre("update n1", "get n1", "update n1"));
  EXPECT_EQ(lease().holder_identity, "n1");
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
  EXPECT_EQ(link_.status.get()->last_error, "");
}

// Another writer's newer time must be passed, or our renewal would not count.
TEST_F(LeaseSyncTest, ARenewTimeInTheFutureIsPassed) {
  api_.put(existing("uid-1", "2026-11-20T15:00:00.000000Z"));
  step();
  EXPECT_EQ(lease().renew_time, "2026-11-20T15:00:00.000001Z");
}

TEST_F(LeaseSyncTest, ALeaseWithNonsenseForATimeIsRenewed) {
  for (const char* time : {"", "garbage", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"}) {
    api_.put(existing("uid-1", time));
    LeaseSync sync{api_, {"n1", "n1", seconds{40}}, [] { return 0.0; }, link_};
    sync.step(clock_.now());
    EXPECT_EQ(lease().renew_time, "2026-11-20T14:00:00.000000Z") << time;
  }
}

TEST_F(LeaseSyncTest, ConflictsWithoutEndStopAfterFiveTries) {
  step();
  api_.clear_calls();
  api_.fail_always(Error{Code::kConflict, "409"});
  renew();
  EXPECT_LE(api_.count("update n1"), 5);
  EXPECT_GT(step(), clock_.now().steady);
}

// Without the namespace kube-node-lease there is nothing to be had by asking again at once.
TEST_F(LeaseSyncTest, ALeaseThatCannotBeMadeIsNotTriedAgainAtOnce) {
  step();
  for (const char* what : {"was there", "was missed before"}) {
    SCOPED_TRACE(what);
    api_.clear_calls();
    api_.fail_always(Error{Code::kNotFound, "404"});
    renew();
    EXPECT_LE(api_.calls().size(), 3U);
    EXPECT_GT(step(), clock_.now().steady);
  }
}

TEST_F(LeaseSyncTest, ADeletedLeaseIsMadeAgain) {
  step();
  api_.remove("n1");
  api_.clear_calls();
  renew();
  EXPECT_THAT(api_.calls(), ElementsAre("update n1"));  // Leases allow a PUT to create
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
}

TEST_F(LeaseSyncTest, AnotherNodeUidIsWrittenAtOnce) {
  step();
  clock_.advance(seconds{1});
  link_.node_uid.set("uid-2");
  step();
  EXPECT_EQ(lease().owner_node_uid, "uid-2");
}

TEST_F(LeaseSyncTest, WithoutANodeItRestsAndThenStartsAtOnce) {
  step();
  link_.node_uid.set("");
  clock_.advance(minutes{1});
  api_.clear_calls();
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
  link_.node_uid.set("uid-2");
  EXPECT_EQ(step(), clock_.now().steady + seconds{10});
  EXPECT_EQ(lease().owner_node_uid, "uid-2");
}

// The garbage collector removes the Lease of the deleted Node while we renew it for the new one.
TEST_F(LeaseSyncTest, TheGarbageCollectorMayBeFaster) {
  step();
  link_.node_uid.set("uid-2");
  api_.remove("n1");
  step();
  EXPECT_EQ(lease().owner_node_uid, "uid-2");
}

TEST_F(LeaseSyncTest, RenewTimeIncreasesThoughTheClockStepsBack) {
  step();
  std::string last = lease().renew_time;
  clock_.step_wall(-hours{2});
  for (int i = 0; i < 5; ++i) {
    renew();
    EXPECT_THAT(lease().renew_time, Gt(last));
    last = lease().renew_time;
  }
  clock_.step_wall(hours{2});
  renew();
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
}

TEST_F(LeaseSyncTest, FailuresBackOffAndRecover) {
  LeaseSync sync{api_, {"n1", "n1", seconds{40}}, [] { return 1.0; }, link_};
  SteadyTime next = sync.step(clock_.now());
  clock_.advance(next - clock_.now().steady);
  api_.fail_always(Error{Code::kUnavailable, "connection refused"});
  next = sync.step(clock_.now());
  for (const int ms : {4500, 9000, 12000, 12000}) {
    EXPECT_EQ(next, clock_.now().steady + milliseconds{ms});
    const auto calls = api_.calls().size();
    clock_.advance(milliseconds{ms - 1});
    EXPECT_EQ(sync.step(clock_.now()), next);  // too early: no call
    EXPECT_EQ(api_.calls().size(), calls);
    clock_.advance(milliseconds{1});
    next = sync.step(clock_.now());
  }
  api_.fail_always(std::nullopt);
  clock_.advance(next - clock_.now().steady);
  next = sync.step(clock_.now());
  EXPECT_EQ(next, clock_.now().steady + milliseconds{10400}) << "each came back at its own time";
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
  // and the next failure starts from the beginning
  api_.fail_always(Error{Code::kTimeout, "late"});
  clock_.advance(next - clock_.now().steady);
  next = sync.step(clock_.now());
  EXPECT_EQ(next, clock_.now().steady + milliseconds{4500});
  // those whom a hanging server answers together do not stay together
  api_.fail_always(std::nullopt);
  clock_.advance(next - clock_.now().steady);
  next = sync.step(clock_.now());
  EXPECT_EQ(next, clock_.now().steady + seconds{1});
  clock_.advance(seconds{1});
  EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + milliseconds{10400}) << "once";
}

TEST_F(LeaseSyncTest, AFirstRenewalThatWasHeldUpPutsOutOfStepOnce) {
  LeaseSync sync{api_, {"n1", "n1", seconds{40}}, [] { return 1.0; }, link_};
  api_.fail_next(Error{Code::kTimeout, "late"});
  clock_.advance(sync.step(clock_.now()) - clock_.now().steady);
  EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + seconds{1});
  clock_.advance(seconds{1});
  EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + milliseconds{10400});
}

TEST_F(LeaseSyncTest, ALargeSiteGoesOnAsItCame) {
  link_.set_start({{}, milliseconds{12'500}});
  LeaseSync sync{api_, {"n1", "n1", seconds{40}}, [] { return 1.0; }, link_};
  EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + milliseconds{12'500});
  clock_.advance(milliseconds{12'500});
  EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + milliseconds{10400});
}

// So that one failed call makes no gap of more than 15 s, and all nodes together no storm.
TEST_F(LeaseSyncTest, ARetryComesWithinFifteenSecondsOfTheLastRenewal) {
  LeaseSync late{api_, {"n1", "n1", seconds{40}}, [] { return 1.0; }, link_};
  late.step(clock_.now());
  clock_.advance(seconds{1});
  const SteadyTime renewed = clock_.now().steady;
  clock_.advance(late.step(clock_.now()) - renewed);
  api_.fail_next(Error{Code::kUnavailable, "reset"});
  EXPECT_LE(late.step(clock_.now()), renewed + seconds{15});
}

// A restarted daemon, before NodeSync has looked for the Node.
class HeldLeaseTest : public LeaseSyncTest {
 protected:
  void hold(const std::string& holder, const std::string& renew_time) {
    kube::Lease lease = existing("uid-1", renew_time);
    lease.holder_identity = holder;
    api_.put(lease);
  }
  SteadyTime restarted_step() { return restarted_.step(clock_.now()); }

  LeaseLink unknown_;
  LeaseSync restarted_{api_, {"n1", "n1/a", seconds{40}}, [] { return 0.0; }, unknown_};
};

TEST_F(HeldLeaseTest, IsRenewedUnreadAndOnceTheSiteIsKnown) {
  hold("n1/a", "2026-11-20T13:59:51.000000Z");
  EXPECT_EQ(restarted_step(), kNever);
  unknown_.set_start({clock_.now().steady + seconds{3}, seconds{4}});
  EXPECT_EQ(restarted_step(), clock_.now().steady + seconds{3});
  EXPECT_THAT(api_.calls(), IsEmpty());
  clock_.advance(seconds{3});
  const SteadyTime next = restarted_step();
  EXPECT_THAT(api_.calls(), ElementsAre("renew n1"));
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
  EXPECT_EQ(unknown_.status.get()->renewed_steady, clock_.now().steady);
  EXPECT_GT(next, clock_.now().steady);
  EXPECT_LE(next, clock_.now().steady + seconds{10});
  // And again, still before the Node is known, then with it.
  clock_.advance(next - clock_.now().steady);
  restarted_step();
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
  api_.clear_calls();
  unknown_.set_uid("uid-1");
  EXPECT_GT(restarted_step(), clock_.now().steady);
  EXPECT_THAT(api_.calls(), IsEmpty()) << "it is not due";
  unknown_.set_uid("");
  EXPECT_EQ(restarted_step(), kNever) << "the Node is not ours";
}

TEST_F(HeldLeaseTest, NoneOfOthersIsTouchedAndNoneIsMade) {
  unknown_.set_start({clock_.now().steady, Duration{}});
  EXPECT_EQ(restarted_step(), kNever);
  EXPECT_EQ(api_.find("n1"), std::nullopt);
  for (const char* holder : {"n1/b", "n1"}) {
    LeaseSync other{api_, {"n1", "n1/a", seconds{40}}, [] { return 0.0; }, unknown_};
    hold(holder, "2026-11-20T13:59:51.000000Z");
    const auto before = lease();
    EXPECT_EQ(other.step(clock_.now()), kNever);
    EXPECT_EQ(lease(), before);
    EXPECT_EQ(other.step(clock_.now()), kNever);
  }
  EXPECT_EQ(api_.count("renew n1"), 3) << "tried once";
  unknown_.set_uid("uid-1");
  restarted_step();
  EXPECT_EQ(lease().holder_identity, "n1/a") << "the kubelet's is nobody's";
}

// "n1" may be another machine: only at a large site would its lookup come too late for the Lease.
TEST_F(HeldLeaseTest, OfAnUnnamedMachineItWaitsForTheLookupAtASmallSite) {
  hold("n1", "2026-11-20T13:59:51.000000Z");
  LeaseSync unnamed{api_, {"n1", "n1", seconds{40}}, [] { return 0.0; }, unknown_};
  unknown_.set_start({clock_.now().steady, Duration{}});
  EXPECT_EQ(unnamed.step(clock_.now()), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
  unknown_.set_start({clock_.now().steady, seconds{4}});
  unnamed.step(clock_.now());
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
}

TEST_F(HeldLeaseTest, AnApiServerThatIsAwayIsTriedAgain) {
  hold("n1/a", "2026-11-20T13:59:51.000000Z");
  unknown_.set_start({clock_.now().steady, Duration{}});
  api_.fail_next(Error{Code::kUnavailable, "connection refused"});
  const SteadyTime next = restarted_step();
  ASSERT_LE(next, clock_.now().steady + seconds{5});
  clock_.advance(next - clock_.now().steady);
  restarted_step();
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
}

// The clock was set back, or is wrong after a boot: only a later time counts as a heartbeat.
TEST_F(HeldLeaseTest, ATimeInTheFutureIsPassedAtOnce) {
  hold("n1/a", "2026-11-20T15:00:00.000000Z");
  unknown_.set_start({clock_.now().steady, Duration{}});
  EXPECT_EQ(restarted_step(), clock_.now().steady);
  restarted_step();
  EXPECT_EQ(lease().renew_time, "2026-11-20T15:00:00.000001Z");
}

TEST_F(LeaseSyncTest, APauseThatTheServerAsksForIsKeptForAsLongAsTheNodeCanAffordIt) {
  const struct {
    Duration asked;
    Duration pause;
  } kRows[] = {{seconds{0}, seconds{3}},
               {seconds{5}, seconds{5}},
               {seconds{10}, seconds{10}},
               {hours{1}, seconds{10}}};
  for (const auto& row : kRows) {
    LeaseSync sync{api_, {"n1", "n1", seconds{40}}, [] { return 0.0; }, link_};
    api_.fail_next(Error{Code::kUnavailable, "429", row.asked});
    EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + row.pause);
  }
}

// A renewal that timed out may have been done: the conflict that follows is resolved.
TEST_F(LeaseSyncTest, AfterATimeoutThatWasNoneItGoesOn) {
  step();
  api_.fail_next(Error{Code::kTimeout, "late"});
  renew();
  api_.put(lease());  // done after all
  clock_.advance(seconds{5});
  step();
  EXPECT_EQ(lease().renew_time, rfc3339_micro(clock_.now().wall));
  EXPECT_EQ(link_.status.get()->last_error, "");
}

TEST_F(LeaseSyncTest, PublishesItsStatus) {
  step();
  const Now renewed = clock_.now();
  EXPECT_EQ(link_.status.get()->renewed_at, renewed.wall);
  EXPECT_EQ(link_.status.get()->renewed_steady, renewed.steady);
  EXPECT_EQ(link_.status.get()->last_error, "");
  api_.fail_next(Error{Code::kDenied, "403 Forbidden"});
  renew();
  EXPECT_EQ(link_.status.get()->renewed_at, renewed.wall);
  EXPECT_THAT(link_.status.get()->last_error, HasSubstr("403 Forbidden"));
  clock_.advance(seconds{7});
  step();
  EXPECT_EQ(link_.status.get()->renewed_at, clock_.now().wall);
  EXPECT_EQ(link_.status.get()->last_error, "");
}

// Another machine with our name: see node/lease_holder.h for who counts as one.
class ForeignLeaseTest : public LeaseSyncTest {
 protected:
  void hold(const std::string& identity, const std::string& renew_time) {
    kube::Lease lease = existing("uid-1", renew_time);
    lease.holder_identity = identity;
    lease.duration_seconds = 40;
    api_.put(lease);
  }
  SteadyTime ours() { return ours_.step(clock_.now()); }
  SteadyTime ours_after(Duration time) {
    clock_.advance(time);
    return ours();
  }
  LeaseSync ours_{api_, {"n1", "n1/a", seconds{40}}, [] { return 0.0; }, link_};
};

TEST_F(ForeignLeaseTest, OneThatIsRenewedIsNeverOverwritten) {
  hold("n1/b", rfc3339_micro(clock_.now().wall));
  for (int minute = 0; minute < 10; ++minute) {
    const auto held = lease();
    const SteadyTime next = ours();
    EXPECT_EQ(next, clock_.now().steady + seconds{50});
    EXPECT_EQ(lease(), held);
    clock_.advance(next - clock_.now().steady);
    hold("n1/b", rfc3339_micro(clock_.now().wall));
  }
  EXPECT_EQ(api_.calls().size(), 10U);
  EXPECT_THAT(link_.status.get()->last_error, HasSubstr("held by n1/b"));
  EXPECT_EQ(link_.status.get()->foreign_at, clock_.now().steady - seconds{50});
}

TEST_F(ForeignLeaseTest, OneThatIsSilentIsTakenOver) {
  hold("n1/b", rfc3339_micro(clock_.now().wall));
  ours();
  ours_after(seconds{50});
  EXPECT_EQ(lease().holder_identity, "n1/a");
  EXPECT_EQ(link_.status.get()->last_error, "");
  EXPECT_EQ(link_.status.get()->foreign_at, std::nullopt);
}

TEST_F(ForeignLeaseTest, OneOfLongAgoIsLookedAtFirstAndOneOfTheKubeletIsNot) {
  hold("n1/b", "2026-11-20T13:00:00.000000Z");  // or our clock is an hour ahead
  EXPECT_EQ(ours(), clock_.now().steady + seconds{50});
  EXPECT_EQ(lease().holder_identity, "n1/b");
  ours_after(seconds{50});
  EXPECT_EQ(lease().holder_identity, "n1/a");
  hold("n1", rfc3339_micro(clock_.now().wall));
  ours_after(seconds{10});
  EXPECT_EQ(lease().holder_identity, "n1/a");
}

TEST_F(ForeignLeaseTest, OneThatTheNodesLoopFoundDeadIsTakenOverAtOnceUnlessItMoved) {
  hold("n1/b", rfc3339_micro(clock_.now().wall));
  link_.dead_holder.set(kube::holder_of(lease()));
  ours();
  EXPECT_EQ(lease().holder_identity, "n1/a");

  hold("n1/b", rfc3339_micro(clock_.now().wall));
  link_.dead_holder.set(kube::holder_of(lease()));
  hold("n1/b", rfc3339_micro(clock_.now().wall + seconds{1}));
  ours_after(seconds{10});
  EXPECT_EQ(lease().holder_identity, "n1/b");
}

// Its clock may say anything: it has written since we did.
TEST_F(ForeignLeaseTest, OneThatTookOursIsLeftAlone) {
  for (const char* time : {"2026-11-20T14:00:05.000000Z", "2026-11-20T10:00:00.000000Z"}) {
    api_.remove("n1");
    LeaseSync sync{api_, {"n1", "n1/a", seconds{40}}, [] { return 0.0; }, link_};
    sync.step(clock_.now());
    ASSERT_EQ(lease().holder_identity, "n1/a");
    hold("n1/b", time);
    clock_.advance(seconds{10});
    EXPECT_EQ(sync.step(clock_.now()), clock_.now().steady + seconds{50});
    EXPECT_EQ(lease().holder_identity, "n1/b") << time;
    ASSERT_TRUE(link_.status.get()->foreign_holder);
    EXPECT_TRUE(link_.status.get()->foreign_holder->alive);
  }
}

// Both read the Lease before the other writes it.
TEST_F(ForeignLeaseTest, OfTwoThatStartTogetherOneHasIt) {
  LeaseLink their_link;
  their_link.node_uid.set("uid-1");
  LeaseSync theirs{api_, {"n1", "n1/b", seconds{40}}, [] { return 0.0; }, their_link};
  api_.fail_next(Error{Code::kNotFound, "404"});
  theirs.step(clock_.now());
  api_.fail_next(Error{Code::kNotFound, "404"});
  ours();  // 409 on create
  EXPECT_EQ(lease().holder_identity, "n1/b");
  for (int i = 0; i < 60; ++i) {
    clock_.advance(seconds{10});
    theirs.step(clock_.now());
    ours();
    ASSERT_EQ(lease().holder_identity, "n1/b");
  }
}

}  // namespace
}  // namespace slurmlet::sync
