#include "sync/lease_sync.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rfc3339.h"
#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
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
  std::string renewed_now() const { return rfc3339_micro(clock_.now().wall); }
  // The server has a Lease of that holder.
  void hold(const std::string& holder, const std::string& renew_time,
            const std::string& owner = "uid-1") {
    kube::Lease lease;
    lease.name = lease.owner_node_name = "n1";
    lease.holder_identity = holder;
    lease.owner_node_uid = owner;
    lease.renew_time = renew_time;
    lease.acquire_time = "2026-11-01T00:00:00.000000Z";
    lease.duration_seconds = 40;
    api_.put(lease);
  }
  LeaseSync lease_of(const std::string& identity, LeaseLink& link, double random = 0.0) {
    return {api_,
            {"n1", identity, seconds{40}, [this] { return clock_.now().steady; }},
            [random] { return random; },
            link};
  }
  void wait_until(SteadyTime time) { clock_.advance(time - clock_.now().steady); }
  // The latest that a renewal follows one that succeeded.
  SteadyTime next_renewal() const { return clock_.now().steady + milliseconds{10'500}; }

  fakes::FakeClock clock_;
  fakes::FakeLeaseApi api_;
  LeaseLink link_;
  LeaseSync sync_ = lease_of("n1", link_);
};

TEST_F(LeaseSyncTest, WithoutANodeThereIsNoCallAndWithOneAtOnce) {
  LeaseLink nothing;
  EXPECT_EQ(lease_of("n1", nothing).step(clock_.now()), kNever);
  EXPECT_EQ(nothing.status.get(), nullptr);
  step();
  api_.clear_calls();
  link_.node_uid.set("");
  clock_.advance(minutes{1});
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
  for (const char* uid : {"uid-2", "uid-3"}) {
    link_.node_uid.set(uid);
    EXPECT_LE(step(), next_renewal());
    EXPECT_EQ(lease().owner_node_uid, uid);
  }
}

TEST_F(LeaseSyncTest, CreatesAMissingLeaseOwnedByTheNode) {
  EXPECT_LE(step(), next_renewal());
  EXPECT_EQ(api_.calls().size(), 1U);
  EXPECT_EQ(lease().holder_identity, "n1");
  EXPECT_EQ(lease().duration_seconds, 40);
  EXPECT_EQ(lease().owner_node_name, "n1");
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
  EXPECT_EQ(lease().renew_time, renewed_now());
  EXPECT_EQ(lease().acquire_time, lease().renew_time);
}

TEST_F(LeaseSyncTest, TakesAnExistingLeaseOver) {
  hold("n1", "2026-11-20T13:00:00.000000Z", "uid-0");
  step();
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
  EXPECT_EQ(lease().renew_time, renewed_now());
  EXPECT_EQ(lease().acquire_time, "2026-11-01T00:00:00.000000Z");
}

TEST_F(LeaseSyncTest, SteadyRenewalsAreOneCallEachTenSeconds) {
  step();
  api_.clear_calls();
  for (int i = 0; i < 50; ++i) {
    clock_.advance(seconds{5});
    EXPECT_EQ(step(), clock_.now().steady + seconds{5});  // not due yet
    clock_.advance(seconds{5});
    EXPECT_EQ(step(), clock_.now().steady + seconds{10});
  }
  EXPECT_EQ(api_.calls().size(), 50U);
  EXPECT_EQ(api_.writes(), 50);
  EXPECT_EQ(lease().renew_time, renewed_now());
}

TEST_F(LeaseSyncTest, TheFirstRenewalIsSpreadOverTheIntervalOthersALittle) {
  LeaseSync late = lease_of("n1", link_, 1.0);
  EXPECT_LE(late.step(clock_.now()), clock_.now().steady + seconds{1});
  clock_.advance(seconds{1});
  const SteadyTime next = late.step(clock_.now());
  EXPECT_GT(next, clock_.now().steady + seconds{10});
  EXPECT_LE(next, next_renewal());
}

TEST_F(LeaseSyncTest, AConflictIsResolvedAtOnce) {
  step();
  hold("somebody", renewed_now());
  renew();
  EXPECT_EQ(lease().holder_identity, "n1");
  EXPECT_EQ(lease().renew_time, renewed_now());
  EXPECT_EQ(link_.status.get()->last_error, "");
}

TEST_F(LeaseSyncTest, ARenewTimeInTheFutureIsPassed) {
  hold("n1", "2026-11-20T15:00:00.000000Z");
  step();
  EXPECT_GT(lease().renew_time, "2026-11-20T15:00:00.000000Z");
  EXPECT_LT(lease().renew_time, "2026-11-20T15:00:01.000000Z");
}

TEST_F(LeaseSyncTest, ALeaseWithNonsenseForATimeIsRenewed) {
  for (const char* time : {"", "garbage", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z"}) {
    hold("n1", time);
    lease_of("n1", link_).step(clock_.now());
    EXPECT_EQ(lease().renew_time, renewed_now()) << time;
  }
}

// Without the namespace kube-node-lease there is nothing to be had by asking again at once.
TEST_F(LeaseSyncTest, WhatFailsAgainAndAgainIsNotTriedWithoutAPause) {
  step();
  for (const Code code : {Code::kConflict, Code::kNotFound, Code::kNotFound}) {
    SCOPED_TRACE(static_cast<int>(code));
    api_.clear_calls();
    api_.fail_always(Error{code, "no"});
    renew();
    EXPECT_LE(api_.calls().size(), 10U);
    EXPECT_GT(step(), clock_.now().steady);
  }
}

// By the garbage collector, perhaps, which may be faster than the news of another Node.
TEST_F(LeaseSyncTest, ADeletedLeaseIsMadeAgain) {
  step();
  for (const char* uid : {"uid-1", "uid-2"}) {
    api_.remove("n1");
    link_.node_uid.set(uid);
    renew();
    EXPECT_EQ(lease().owner_node_uid, uid);
  }
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
  EXPECT_EQ(lease().renew_time, renewed_now());
}

// One failed call makes no gap of more than 15 s.
TEST_F(LeaseSyncTest, FailuresBackOffAndRecover) {
  LeaseSync sync = lease_of("n1", link_, 1.0);
  wait_until(sync.step(clock_.now()));
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    SteadyTime renewed = clock_.now().steady;
    wait_until(sync.step(clock_.now()));
    api_.fail_always(Error{code, "connection refused"});
    // A late Lease of a server that does not answer waits, so that what it has to do ends.
    const Duration longest = code == Code::kTimeout ? seconds{40} : seconds{15};
    Duration last{};
    for (int i = 0; i < 4; ++i) {
      const SteadyTime next = sync.step(clock_.now());
      EXPECT_LE(next, i == 0 ? renewed + seconds{15} : clock_.now().steady + longest);
      EXPECT_GE(next - clock_.now().steady, last) << "ever longer";
      last = next - clock_.now().steady;
      const auto calls = api_.calls().size();
      clock_.advance(last - milliseconds{1});
      EXPECT_EQ(sync.step(clock_.now()), next) << "too early";
      EXPECT_EQ(api_.calls().size(), calls);
      clock_.advance(milliseconds{1});
    }
    api_.fail_always(std::nullopt);
    const SteadyTime next = sync.step(clock_.now());
    EXPECT_EQ(lease().renew_time, renewed_now());
    EXPECT_GT(next, clock_.now().steady + seconds{10}) << "each came back at its own time";
    wait_until(next);
    renewed = clock_.now().steady;
  }
}

// Each reading of the clock is a second later: an overloaded server gets fewer renewals, and what
// it answered together does not return together.
TEST_F(LeaseSyncTest, ASlowRenewalIsFollowedByALongerPause) {
  SteadyTime time{};
  const auto slow = [&](double random) {
    return LeaseSync{api_,
                     {"n1", "n1", seconds{40}, [&] { return time += seconds{1}; }},
                     [random] { return random; },
                     link_};
  };
  for (const auto& [random, pause] :
       {std::pair{0.0, seconds{11}}, {0.5, seconds{15}}, {1.0, seconds{19}}}) {
    LeaseSync sync = slow(random);
    wait_until(sync.step(clock_.now()));
    EXPECT_EQ(sync.step(clock_.now()) - clock_.now().steady, pause);
  }
}

// The write may have been made all the same, and then its resourceVersion is another.
TEST_F(LeaseSyncTest, AfterALateAnswerOneCallRenews) {
  LeaseSync sync = lease_of("n1", link_, 1.0);
  wait_until(sync.step(clock_.now()));
  api_.fail_next(Error{Code::kTimeout, "late"});
  wait_until(sync.step(clock_.now()));
  kube::Lease made = lease();
  made.renew_time = renewed_now();
  api_.put(made);
  const auto calls = api_.calls().size();
  (void)sync.step(clock_.now());
  EXPECT_EQ(lease().renew_time, renewed_now());
  EXPECT_EQ(api_.calls().size(), calls + 1);
  EXPECT_EQ(link_.status.get()->last_error, "");
}

TEST_F(LeaseSyncTest, ALargeSiteGoesOnAsItCame) {
  link_.set_start({{}, milliseconds{12'500}});
  LeaseSync sync = lease_of("n1", link_, 1.0);
  const SteadyTime next = sync.step(clock_.now());
  EXPECT_GT(next, next_renewal()) << "the spread of its start";
  EXPECT_LE(next, clock_.now().steady + milliseconds{12'500});
  wait_until(next);
  EXPECT_LE(sync.step(clock_.now()), next_renewal());
}

// A restarted daemon, before NodeSync has looked for the Node.
class HeldLeaseTest : public LeaseSyncTest {
 protected:
  SteadyTime restarted_step() { return restarted_.step(clock_.now()); }
  // It becomes known how many nodes start, and when this one's Lease is due.
  void site_is_known(Duration wait, Duration spread) {
    unknown_.set_start({clock_.now().steady + wait, spread});
  }

  LeaseLink unknown_;
  LeaseSync restarted_ = lease_of("n1/a", unknown_);
};

constexpr const char* kOfTheLastProcess = "2026-11-20T13:59:51.000000Z";

TEST_F(HeldLeaseTest, IsRenewedUnreadAndOnceTheSiteIsKnown) {
  hold("n1/a", kOfTheLastProcess);
  EXPECT_EQ(restarted_step(), kNever);
  site_is_known(seconds{3}, seconds{4});
  EXPECT_EQ(restarted_step(), clock_.now().steady + seconds{3});
  EXPECT_THAT(api_.calls(), IsEmpty());
  clock_.advance(seconds{3});
  const SteadyTime next = restarted_step();
  EXPECT_EQ(api_.calls().size(), 1U) << "unread";
  EXPECT_EQ(lease().renew_time, renewed_now());
  EXPECT_EQ(unknown_.status.get()->renewed_steady, clock_.now().steady);
  EXPECT_GT(next, clock_.now().steady);
  EXPECT_LE(next, next_renewal());
  // And again, still before the Node is known, then with it.
  wait_until(next);
  restarted_step();
  EXPECT_EQ(lease().renew_time, renewed_now());
  EXPECT_EQ(lease().owner_node_uid, "uid-1");
  api_.clear_calls();
  unknown_.set_uid("uid-1");
  EXPECT_GT(restarted_step(), clock_.now().steady);
  EXPECT_THAT(api_.calls(), IsEmpty()) << "it is not due";
  unknown_.set_uid("");
  EXPECT_EQ(restarted_step(), kNever) << "the Node is not ours";
}

TEST_F(HeldLeaseTest, NoneOfOthersIsTouchedAndNoneIsMade) {
  site_is_known({}, {});
  EXPECT_EQ(restarted_step(), kNever);
  EXPECT_EQ(api_.find("n1"), std::nullopt);
  for (const char* holder : {"n1/b", "n1"}) {
    LeaseSync other = lease_of("n1/a", unknown_);
    hold(holder, kOfTheLastProcess);
    const auto before = lease();
    EXPECT_EQ(other.step(clock_.now()), kNever);
    EXPECT_EQ(lease(), before);
    EXPECT_EQ(other.step(clock_.now()), kNever);
  }
  EXPECT_EQ(api_.writes(), 3) << "tried once";
  unknown_.set_uid("uid-1");
  restarted_step();
  EXPECT_EQ(lease().holder_identity, "n1/a") << "the kubelet's is nobody's";
}

TEST_F(HeldLeaseTest, OfAnUnnamedMachineItWaitsForTheLookupAtASmallSite) {
  hold("n1", kOfTheLastProcess);
  LeaseSync unnamed = lease_of("n1", unknown_);
  site_is_known({}, {});
  EXPECT_EQ(unnamed.step(clock_.now()), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
  site_is_known({}, seconds{4});
  unnamed.step(clock_.now());
  EXPECT_EQ(lease().renew_time, renewed_now());
}

TEST_F(HeldLeaseTest, AnApiServerThatIsAwayIsTriedAgain) {
  hold("n1/a", kOfTheLastProcess);
  site_is_known({}, {});
  api_.fail_next(Error{Code::kUnavailable, "connection refused"});
  const SteadyTime next = restarted_step();
  ASSERT_LE(next, clock_.now().steady + seconds{5});
  wait_until(next);
  restarted_step();
  EXPECT_EQ(lease().renew_time, renewed_now());
}

TEST_F(HeldLeaseTest, ATimeInTheFutureIsPassedAtOnce) {
  hold("n1/a", "2026-11-20T15:00:00.000000Z");
  site_is_known({}, {});
  EXPECT_EQ(restarted_step(), clock_.now().steady);
  restarted_step();
  EXPECT_GT(lease().renew_time, "2026-11-20T15:00:00.000000Z");
}

TEST_F(LeaseSyncTest, APauseThatTheServerAsksForIsKeptForAsLongAsTheNodeCanAffordIt) {
  for (const Duration asked : {Duration{}, Duration{seconds{5}}, Duration{hours{1}}}) {
    api_.fail_next(Error{Code::kUnavailable, "429", asked});
    const SteadyTime next = lease_of("n1", link_).step(clock_.now());
    EXPECT_GE(next, clock_.now().steady + std::clamp<Duration>(asked, seconds{1}, seconds{10}));
    EXPECT_LE(next, clock_.now().steady + seconds{15});
  }
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
  renew();
  EXPECT_EQ(link_.status.get()->renewed_at, clock_.now().wall);
  EXPECT_EQ(link_.status.get()->last_error, "");
}

// Another machine with our name: see node/lease_holder.h for who counts as one.
class ForeignLeaseTest : public LeaseSyncTest {
 protected:
  SteadyTime ours() { return ours_.step(clock_.now()); }
  SteadyTime ours_after(Duration time) {
    clock_.advance(time);
    return ours();
  }
  LeaseSync ours_ = lease_of("n1/a", link_);
};

TEST_F(ForeignLeaseTest, OneThatIsRenewedIsNeverOverwritten) {
  hold("n1/b", renewed_now());
  for (int minute = 0; minute < 10; ++minute) {
    const auto held = lease();
    const SteadyTime next = ours();
    EXPECT_GE(next, clock_.now().steady + seconds{40}) << "as long as its Lease may last";
    EXPECT_LE(next, clock_.now().steady + minutes{1});
    EXPECT_EQ(lease(), held);
    EXPECT_THAT(link_.status.get()->last_error, HasSubstr("n1/b"));
    EXPECT_EQ(link_.status.get()->foreign_at, clock_.now().steady);
    wait_until(next);
    hold("n1/b", renewed_now());
  }
  EXPECT_LE(api_.writes(), 1) << "read, once its holder is known";
}

// One of long ago, too: our clock may be an hour ahead.
TEST_F(ForeignLeaseTest, OneThatIsSilentIsTakenOverAndOneOfTheKubeletAtOnce) {
  for (const auto& time : {renewed_now(), std::string{"2026-11-20T13:00:00.000000Z"}}) {
    hold("n1/b", time);
    LeaseSync sync = lease_of("n1/a", link_);
    const SteadyTime next = sync.step(clock_.now());
    EXPECT_EQ(lease().holder_identity, "n1/b");
    wait_until(next);
    sync.step(clock_.now());
    EXPECT_EQ(lease().holder_identity, "n1/a");
    EXPECT_EQ(link_.status.get()->last_error, "");
    EXPECT_EQ(link_.status.get()->foreign_at, std::nullopt);
  }
  hold("n1", renewed_now());
  ours_after(seconds{10});
  EXPECT_EQ(lease().holder_identity, "n1/a");
}

TEST_F(ForeignLeaseTest, OneThatTheNodesLoopFoundDeadIsTakenOverAtOnceUnlessItMoved) {
  for (const bool moved : {false, true}) {
    hold("n1/b", renewed_now());
    link_.dead_holder.set(kube::holder_of(lease()));
    if (moved) {
      hold("n1/b", rfc3339_micro(clock_.now().wall + seconds{1}));
    }
    ours();
    EXPECT_EQ(lease().holder_identity, moved ? "n1/b" : "n1/a");
    clock_.advance(seconds{10});
  }
}

TEST_F(ForeignLeaseTest, OneThatTookOursIsLeftAlone) {
  for (const char* time : {"2026-11-20T14:00:05.000000Z", "2026-11-20T10:00:00.000000Z"}) {
    api_.remove("n1");
    LeaseSync sync = lease_of("n1/a", link_);
    sync.step(clock_.now());
    ASSERT_EQ(lease().holder_identity, "n1/a");
    hold("n1/b", time);
    clock_.advance(seconds{10});
    EXPECT_GT(sync.step(clock_.now()), next_renewal());
    EXPECT_EQ(lease().holder_identity, "n1/b") << time;
    ASSERT_TRUE(link_.status.get()->foreign_holder);
    EXPECT_TRUE(link_.status.get()->foreign_holder->alive);
  }
}

TEST_F(ForeignLeaseTest, OfTwoThatStartTogetherOneHasIt) {
  LeaseLink their_link;
  their_link.node_uid.set("uid-1");
  LeaseSync theirs = lease_of("n1/b", their_link);
  theirs.step(clock_.now());
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
