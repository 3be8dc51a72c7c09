// NodeSync: how the Node comes into being, is adopted, refused, lost and made again.

#include <functional>

#include "sync/node_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

class NodeRegistrationTest : public NodeSyncFixture {};

TEST_F(NodeRegistrationTest, CreatesTheNodeWithEverything) {
  EXPECT_FALSE(sync_->registered());
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_EQ(api_.writes(), 1);
  EXPECT_EQ(leases_.writes(), 0);
  EXPECT_THAT(api_.created(), ElementsAre(good_node()));
  EXPECT_EQ(uid(), held().uid);
  EXPECT_THAT(event_reasons(), ElementsAre("Registered"));
  EXPECT_THAT(event_api_.events().front().message, AllOf(HasSubstr("\"alps\""), HasSubstr("u1")));
}

TEST_F(NodeRegistrationTest, TheOperatorsRecordIsToldFromTheFirstLookOn) {
  auto node = fakes::FakeNodeApi::observed(good_node(), clock_.now().wall);
  node.annotations[node::vocabulary::kRecord] = "{}";
  api_.put(node);
  EXPECT_EQ(sync_->record(), std::nullopt);
  sync_->step(clock_.now());
  EXPECT_FALSE(sync_->registered());
  EXPECT_EQ(sync_->record(), "{}");
  step();
  EXPECT_EQ(sync_->record(), "{}");
}

TEST_F(NodeRegistrationTest, AnothersRecordIsNotOurs) {
  put_foreign();
  api_.change("n1", [](auto& node) { node.annotations[node::vocabulary::kRecord] = "{}"; });
  step();
  EXPECT_EQ(sync_->record(), std::nullopt);
}

TEST_F(NodeRegistrationTest, ReadsTheWatchOnlyOnceThereIsANode) {
  api_.fail_always(Error{Code::kUnavailable, "away"});
  step();
  EXPECT_EQ(watch_.steps(), 0);
  api_.fail_always(std::nullopt);
  step_after(seconds{1});
  EXPECT_EQ(watch_.steps(), 1);
}

TEST_F(NodeRegistrationTest, AdoptsANodeOfOursWithoutAWrite) {
  put_ours();
  const auto before = held();
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_EQ(uid(), before.uid);
  EXPECT_EQ(held(), before);
  EXPECT_EQ(api_.writes() + leases_.writes(), 0);
  EXPECT_THAT(event_reasons(), IsEmpty());  // a restart is no news
}

TEST_F(NodeRegistrationTest, AnAdoptedNodeIsPatchedAtOnceAndMissingTaintsAreReported) {
  put_ours();
  api_.change("n1", [](node::ObservedNode& node) {
    node.labels["type"] = "old";
    node.labels["admin"] = "kept";
    node.capacity.erase("pods");
    node.taints.clear();
  });
  step();
  EXPECT_EQ(api_.writes(), 1);
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  EXPECT_EQ(held().labels.at("admin"), "kept");
  EXPECT_EQ(held().capacity.at("pods"), "0");
  EXPECT_THAT(event_reasons(), ElementsAre("MissingTaint", "MissingTaint"));
}

TEST_F(NodeRegistrationTest, TheLeaseMayBeginWithTheLookup) {
  put_ours();
  node::DesiredNode known;
  known.name = "n1";
  known.labels[kUuidLabel] = "u1";
  want(known);
  EXPECT_EQ(sync_->step(clock_.now()), clock_.now().steady);
  EXPECT_EQ(uid(), held().uid);
  EXPECT_TRUE(lease_was_woken());
  EXPECT_FALSE(sync_->registered());
  want(good_node());
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_EQ(api_.calls().size() + leases_.calls().size(), 2U) << "one look at each";
  EXPECT_FALSE(lease_was_woken()) << "once is enough";
}

TEST_F(NodeRegistrationTest, WhatBecomesKnownAfterTheLookupIsInTheNewNode) {
  EXPECT_EQ(sync_->step(clock_.now()), clock_.now().steady);
  EXPECT_THAT(api_.created(), IsEmpty());
  want(drained_node());
  sync_->step(clock_.now());
  EXPECT_THAT(api_.created(), ElementsAre(drained_node()));
}

TEST_F(NodeRegistrationTest, WhatIsNotOursAnyMoreIsUnpublished) {
  kube::Lease other;
  other.name = "n1";
  other.holder_identity = "n1/another-machine";
  other.renew_time = "2026-11-20T14:00:00.000000Z";
  const struct {
    const char* what;
    std::function<void()> happens;
    const char* uid;
  } kRows[] = {
      {"another machine's", [&] { put_foreign(); }, ""},
      {"held by another", [&] { put_ours(), leases_.put(other); }, ""},
      {"deleted", [] {}, ""},
      {"unknown",
       [&] {
         api_.fail_always(Error{Code::kTimeout, "silent"});
       },
       "uid-before"},
  };
  for (const auto& row : kRows) {
    api_.remove("n1");
    link_.set_uid("uid-before");
    make();
    row.happens();
    sync_->step(clock_.now());
    EXPECT_EQ(uid(), row.uid) << row.what;
    leases_.remove("n1");
  }
}

TEST_F(NodeRegistrationTest, AForeignNodeIsLeftAlone) {
  put_foreign();
  const auto before = held();
  step();
  EXPECT_FALSE(sync_->registered());
  EXPECT_THAT(sync_->block_reason(), HasSubstr("another-machine"));
  run(hours{1});
  EXPECT_FALSE(sync_->flush(clock_.now()));
  EXPECT_EQ(held(), before);
  EXPECT_EQ(api_.writes() + leases_.writes(), 0);
  EXPECT_TRUE(uid() == "" || uid() == "(never set)");
}

TEST_F(NodeRegistrationTest, RegistersOnceTheForeignNodeIsDeleted) {
  for (const bool is_seen : {true, false}) {
    api_.remove("n1");
    make();
    put_foreign();
    step();
    tell(Seen::kReplaced);
    step_after(seconds{1});
    EXPECT_NE(sync_->block_reason(), "");
    if (is_seen) {
      somebody_deletes_it();
    } else {
      api_.remove("n1");
      watch_.feed(Seen::kReplaced, {});
    }
    step_after(seconds{1});
    EXPECT_EQ(sync_->block_reason(), "");
    EXPECT_TRUE(sync_->registered());
    EXPECT_EQ(held().labels.at(kUuidLabel), "u1");
  }
}

TEST_F(NodeRegistrationTest, ADeletedNodeIsMadeAgain) {
  put_ours();
  api_.change("n1", [](node::ObservedNode& node) { node.provider_id = "metal3://a/b/c"; });
  step();
  somebody_changes([](node::ObservedNode& node) { node.labels.erase(kUuidLabel); });
  step_after(seconds{1});
  ASSERT_THAT(held().labels, Not(Contains(Key(kUuidLabel))));
  const std::string first = uid();
  EXPECT_THAT(provider_ids_, ElementsAre("metal3://a/b/c"));
  somebody_deletes_it();
  const SteadyTime next = step_after(seconds{1});
  EXPECT_LE(next, clock_.now().steady + seconds{1});
  EXPECT_EQ(uid(), "");  // the lease must not be kept for a Node that is gone
  EXPECT_FALSE(sync_->registered());
  step_after(seconds{1});
  EXPECT_TRUE(sync_->registered());
  EXPECT_NE(uid(), first);
  EXPECT_EQ(uid(), held().uid);
  EXPECT_EQ(held().provider_id, "metal3://a/b/c");
  EXPECT_EQ(held().labels.at(kUuidLabel), "u1");
  EXPECT_THAT(event_reasons(), Contains("Reregistered"));
}

TEST_F(NodeRegistrationTest, TheProviderIdOfAnEarlierRunIsUsed) {
  options_.remembered_provider_id = "metal3://a/b/c";
  make();
  step();
  EXPECT_EQ(held().provider_id, "metal3://a/b/c");
  EXPECT_THAT(provider_ids_, IsEmpty());  // nothing new to remember
}

TEST_F(NodeRegistrationTest, NobodyDeletesFasterThanWeGiveUpHurrying) {
  step();
  int deleted = 0;
  const SteadyTime end = clock_.now().steady + minutes{30};
  while (clock_.now().steady < end) {
    if (api_.find("n1")) {
      somebody_deletes_it();
      ++deleted;
    }
    const SteadyTime next = step();
    clock_.advance(sync_->registered() ? milliseconds{1} : next - clock_.now().steady);
  }
  EXPECT_GT(deleted, 8);
  EXPECT_LT(deleted, 30);
}

TEST_F(NodeRegistrationTest, AfterTenQuietMinutesADeletionIsAnsweredAtOnceAgain) {
  step();
  for (int i = 0; i < 8; ++i) {
    somebody_deletes_it();
    step();
    run(minutes{3});
  }
  ASSERT_TRUE(sync_->registered());
  run(minutes{11});
  somebody_deletes_it();
  EXPECT_LE(step(), clock_.now().steady + seconds{1});
}

TEST_F(NodeRegistrationTest, RecreateNeverMeansNever) {
  options_.recreate = false;
  make();
  step();
  somebody_deletes_it();
  step_after(seconds{1});
  EXPECT_THAT(sync_->block_reason(), HasSubstr("node.recreate"));
  EXPECT_EQ(uid(), "");
  watch_.feed(Seen::kReplaced, {});
  run(hours{2});
  EXPECT_FALSE(sync_->registered());
  EXPECT_FALSE(api_.find("n1"));
  EXPECT_EQ(api_.count("create n1"), 1);
}

// The watch is the usual messenger, but a write may learn it first.
TEST_F(NodeRegistrationTest, ANodeFoundGoneWhileWritingIsMadeAgainSoon) {
  watch_.set_position("1");
  step();
  api_.remove("n1");
  sync_->set_desired(drained_node(), clock_.now());
  const SteadyTime next = step_after(seconds{1});
  EXPECT_EQ(uid(), "");
  EXPECT_GT(next, clock_.now().steady);  // the watch may know how it ended
  EXPECT_LE(next, clock_.now().steady + seconds{2});
  step_after(seconds{2});
  EXPECT_TRUE(sync_->registered());
  EXPECT_EQ(api_.created().back(), drained_node());
}

TEST_F(NodeRegistrationTest, ANodeFoundReplacedWhileWritingIsJudgedAnew) {
  step();
  const std::string first = uid();
  api_.remove("n1");
  put_ours();
  sync_->set_desired(drained_node(), clock_.now());
  const SteadyTime next = step_after(seconds{1});  // 422: the uid is immutable
  EXPECT_LE(next, clock_.now().steady);
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_NE(uid(), first);
  EXPECT_EQ(uid(), held().uid);
  EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-state"), "IDLE+DRAIN");
}

TEST_F(NodeRegistrationTest, AForeignNodeThatTookOurPlaceIsRefused) {
  step();
  api_.remove("n1");
  put_foreign();
  tell(Seen::kReplaced);
  step_after(seconds{1});
  EXPECT_NE(sync_->block_reason(), "");
  EXPECT_EQ(uid(), "");
  EXPECT_THAT(api_.patches(), IsEmpty());
}

// A slow watch may still tell of the Node before the one that we have just made.
TEST_F(NodeRegistrationTest, OldNewsOfAnEarlierNodeIsIgnored) {
  step();
  const auto earlier = held();
  api_.remove("n1");
  sync_->set_desired(drained_node(), clock_.now());
  step_after(seconds{1});
  step_after(seconds{2});
  const std::string live = uid();
  ASSERT_EQ(live, held().uid);
  ASSERT_NE(live, earlier.uid);
  watch_.feed(Seen::kModified, {earlier});
  watch_.feed(Seen::kDeleted, {earlier});
  step_after(seconds{1});
  EXPECT_TRUE(sync_->registered());
  EXPECT_EQ(uid(), live);
  EXPECT_EQ(api_.count("create n1"), 2);
}

TEST_F(NodeRegistrationTest, FailuresBackOffAndRecover) {
  for (const Code code : {Code::kUnavailable, Code::kDenied}) {
    SCOPED_TRACE(static_cast<int>(code));
    api_.remove("n1");
    make();
    api_.clear_calls();
    api_.fail_always(Error{code, "no"});
    EXPECT_GT(step(), clock_.now().steady);
    run(minutes{2});
    EXPECT_GT(api_.calls().size(), 4U);
    EXPECT_LT(api_.calls().size(), 60U);
    EXPECT_FALSE(sync_->registered());
    api_.fail_always(std::nullopt);
    run(code == Code::kDenied ? seconds{60} : seconds{15});  // there is no Lease before
    EXPECT_TRUE(sync_->registered());
  }
}

TEST_F(NodeRegistrationTest, APauseThatTheServerAsksForIsKept) {
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  run(seconds{39});
  EXPECT_EQ(api_.calls().size(), 1U);
  run(seconds{12});
  EXPECT_TRUE(sync_->registered());
}

// Somebody else makes the Node between our look and our write.
TEST_F(NodeRegistrationTest, WhoWasFasterIsLookedAtBeforeAnythingIsWritten) {
  api_.fail_next(Error{Code::kNotFound, "404"});
  put_foreign();
  const auto before = held();
  const SteadyTime next = step();
  EXPECT_GT(next, clock_.now().steady);
  EXPECT_FALSE(sync_->registered());
  EXPECT_EQ(held(), before);
  run(seconds{1});
  EXPECT_THAT(sync_->block_reason(), HasSubstr("another-machine"));
  EXPECT_EQ(held(), before);
}

TEST_F(NodeRegistrationTest, WithoutALookAtTheLeaseNothingIsWritten) {
  leases_.fail_always(Error{Code::kDenied, "403 Forbidden"});
  run(minutes{1});
  EXPECT_FALSE(sync_->registered());
  EXPECT_FALSE(api_.find("n1"));
  leases_.fail_always(std::nullopt);
  run(minutes{1});
  EXPECT_TRUE(sync_->registered());
}

// A Node that answers "not found" and "exists" in turn.
TEST_F(NodeRegistrationTest, AContradictoryServerIsNoHotLoop) {
  for (int i = 0; i < 1000; ++i) {
    api_.fail_next(Error{Code::kNotFound, "404"});
    api_.fail_next(Error{Code::kConflict, "409"});
  }
  run(minutes{1});
  EXPECT_LT(api_.calls().size(), 100U);
}

TEST_F(NodeRegistrationTest, WaitingToRegisterAgainIsNoHotLoop) {
  step();
  somebody_deletes_it();
  api_.fail_always(Error{Code::kUnavailable, "away"});
  step();
  int steps = 0;
  for (const SteadyTime end = clock_.now().steady + minutes{2};
       clock_.now().steady < end && steps < 10000; ++steps) {
    watch_.set_wake(clock_.now().steady + seconds{2});
    clock_.advance(std::max<Duration>(step() - clock_.now().steady, Duration{}));
  }
  EXPECT_LT(steps, 200);
}

}  // namespace
}  // namespace slurmlet::sync
