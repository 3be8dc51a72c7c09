// NodeSync on a registered Node: reports, changes, others' hands, errors.

#include "sync/node_sync.h"

#include <vector>

#include "sync/node_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

// Registered, and the calls for that forgotten.
class NodeSyncTest : public NodeSyncFixture {
 protected:
  NodeSyncTest() {
    step();
    tell(Seen::kReplaced);
    step();
    api_.clear_calls();
  }
  // The label type, and we see it.
  void somebody_sets_type(const char* value) {
    api_.change("n1", [value](node::ObservedNode& node) { node.labels["type"] = value; });
    tell(Seen::kModified);
  }
  // Once, which is seen only in the answer to our own.
  void a_write_meets_anothers() {
    api_.admit = [this](node::ObservedNode& node) {
      node.labels["type"] = "theirs";
      api_.admit = [](node::ObservedNode&) {};
    };
    sync_->set_desired(drained_node(), clock_.now());
    step_after(seconds{1});
  }
  std::string condition(const std::string& type) const {
    for (const auto& held_condition : held().conditions) {
      if (held_condition.condition.type == type) {
        return held_condition.condition.status;
      }
    }
    return "";
  }
};

TEST_F(NodeSyncTest, ASteadyNodeCallsNothingBetweenReports) {
  for (int second = 0; second < 299; ++second) {
    step_after(seconds{1});
  }
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(NodeSyncTest, OnePatchAReportInterval) {
  const int steps = run(hours{1});
  EXPECT_EQ(api_.count("patch_status n1"), 12);
  EXPECT_EQ(api_.calls().size(), 12U);
  EXPECT_LE(steps, 14);  // and it sleeps in between
}

TEST_F(NodeSyncTest, AReportHoldsHeartbeatsOnly) {
  step_after(minutes{5});
  ASSERT_EQ(api_.patches().size(), 1U);
  const node::NodePatch patch = api_.patches().front();
  EXPECT_FALSE(patch.has_changes);
  EXPECT_EQ(patch.uid, uid());
  ASSERT_EQ(patch.conditions.size(), 4U);
  EXPECT_EQ(patch.conditions.front().last_heartbeat_time, "2026-11-20T14:05:00Z");
  EXPECT_EQ(patch.conditions.front().last_transition_time, "2026-11-20T14:00:00Z");
}

TEST_F(NodeSyncTest, SinceWhenNoWriteSucceedsIsKnown) {
  api_.fail_always(Error{Code::kInvalid, "422 Unprocessable Entity"});
  sync_->set_desired(drained_node(), clock_.now());
  const SteadyTime began = clock_.now().steady;
  run(minutes{5});
  ASSERT_TRUE(sync_->write_error());
  EXPECT_GE(sync_->write_error_since(), began);
  EXPECT_LE(sync_->write_error_since(), began + seconds{30});
  api_.fail_always(std::nullopt);
  run(minutes{5});
  EXPECT_FALSE(sync_->write_error());
  const SteadyTime again = clock_.now().steady;
  api_.fail_always(Error{Code::kUnavailable, "connection refused"});
  run(minutes{10});
  EXPECT_GE(sync_->write_error_since(), again);
}

TEST_F(NodeSyncTest, AChangeIsOnePatchAtOnce) {
  clock_.advance(seconds{30});
  sync_->set_desired(drained_node(), clock_.now());
  step();
  EXPECT_THAT(api_.calls(), ElementsAre("patch_status n1"));
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  EXPECT_THAT(event_reasons(), ElementsAre("Registered", "SlurmDrained"));
  // the server's echo of our own write changes nothing
  tell(Seen::kModified);
  step_after(seconds{1});
  EXPECT_EQ(api_.calls().size(), 1U);
}

// A job on thousands of nodes, or a restart of slurmd on all, changes them at one moment.
TEST_F(NodeSyncTest, AtALargeSiteChangesWaitForTheOthersAndTheLastIsWritten) {
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  run(minutes{2});
  ASSERT_TRUE(sync_->registered());
  const auto writes = api_.calls().size();
  node::DesiredNode busy = good_node();
  busy.annotations["slurmlet.io/slurm-jobs"] = "1";
  sync_->set_desired(busy, clock_.now());
  const SteadyTime due = step();
  EXPECT_GT(due, clock_.now().steady);
  EXPECT_LE(due, clock_.now().steady + seconds{10});
  busy.annotations["slurmlet.io/slurm-jobs"] = "2";
  sync_->set_desired(busy, clock_.now());
  step();
  EXPECT_EQ(api_.calls().size(), writes);
  step_after(due - clock_.now().steady);
  EXPECT_EQ(api_.calls().size(), writes + 1);
  EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-jobs"), "2");
  // What has changed back by then was never written.
  sync_->set_desired(drained_node(), clock_.now());
  step();
  sync_->set_desired(busy, clock_.now());
  step_after(seconds{10});
  EXPECT_EQ(api_.calls().size(), writes + 1);
}

TEST_F(NodeSyncTest, AtALargeSiteEventsHaveATimeOfTheirOwn) {
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  run(minutes{2});
  ASSERT_THAT(event_reasons(), ElementsAre("Registered"));
  sync_->set_desired(drained_node(), clock_.now());
  step_after(milliseconds{1});
  EXPECT_EQ(event_reasons().size(), 1U);
  step_after(seconds{20});
  EXPECT_THAT(event_reasons(), ElementsAre("Registered", "SlurmDrained"));
}

TEST_F(NodeSyncTest, AFailedWriteThatWaitsWithOthersDoesNotSpin) {
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  run(minutes{2});
  node::DesiredNode busy = good_node();
  busy.annotations["slurmlet.io/slurm-jobs"] = "1";
  sync_->set_desired(busy, clock_.now());
  api_.fail_calls("patch", Error{Code::kUnavailable, "no route"});
  clock_.run(minutes{1}, [this] {
    const SteadyTime next = step();
    EXPECT_GT(next, clock_.now().steady);
    return next;
  });
}

TEST_F(NodeSyncTest, TheStartOfALargeSiteIsSpreadAndTheLeaseComesFirst) {
  for (const char* name : {"n1", "n2", "n777", "n9999"}) {
    make();
    api_.clear_calls();
    const SteadyTime begun = clock_.now().steady;
    sync_->set_site(SitePlace{name, 10'000}, clock_.now());
    EXPECT_TRUE(lease_was_woken());
    const LeaseStart lease = *link_.start.get();
    EXPECT_GE(lease.at, begun);
    EXPECT_LT(lease.at, begun + lease.spread);
    EXPECT_EQ(lease.spread, seconds{4});
    const SteadyTime start = step();
    EXPECT_GE(start, lease.at);
    EXPECT_LT(start, begun + site_delay(Delay::kStart, 10'000));
    clock_.advance(start - clock_.now().steady - milliseconds{1});
    step();
    EXPECT_THAT(api_.calls(), IsEmpty());
    step_after(milliseconds{1});
    EXPECT_TRUE(sync_->registered());
    EXPECT_EQ(uid(), held().uid);
  }
}

// slurm.conf may come late, or change.
TEST_F(NodeSyncTest, ASiteThatBecomesKnownLaterCountsFromTheBeginning) {
  const SitePlace place{"n1", 10'000, 9'000};
  make();
  const SteadyTime begun = clock_.now().steady;
  sync_->set_site(place, clock_.now());
  const SteadyTime start = step();
  clock_.advance(seconds{2});
  sync_->set_site(SitePlace{"n1", 9'999}, clock_.now());
  sync_->set_site(place, clock_.now());
  EXPECT_EQ(step(), start);
  ASSERT_GT(start, begun + seconds{2});
  run(minutes{2});
  ASSERT_TRUE(sync_->registered());

  make();
  sync_->set_site(SitePlace{}, clock_.now());
  step();
  ASSERT_TRUE(sync_->registered());
  sync_->set_site(place, clock_.now());
  node::DesiredNode busy = good_node();
  busy.annotations["slurmlet.io/slurm-jobs"] = "1";
  sync_->set_desired(busy, clock_.now());
  const SteadyTime due = step();
  EXPECT_GT(due, clock_.now().steady) << "its change waits with the others'";
  EXPECT_LE(due, clock_.now().steady + site_delay(Delay::kNews, 10'000));
}

// Of CLOUD and FUTURE nodes few start at one moment.
TEST_F(NodeSyncTest, OnlyNodesThatStartWithTheSiteSpreadTheStart) {
  make();
  sync_->set_site(SitePlace{"n1", 10'000, 12}, clock_.now());
  step();
  EXPECT_TRUE(sync_->registered());
}

TEST_F(NodeSyncTest, ASmallSiteStartsAtOnce) {
  sync_->set_site(SitePlace{"n1", kSmallSite}, clock_.now());
  step();
  EXPECT_TRUE(sync_->registered());
}

TEST_F(NodeSyncTest, TheSameDesiredAgainIsNoWrite) {
  for (int i = 0; i < 20; ++i) {
    sync_->set_desired(good_node(), clock_.now());
    step_after(seconds{10});
  }
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(NodeSyncTest, AChangeMovesTheNextReport) {
  clock_.advance(minutes{4});
  sync_->set_desired(drained_node(), clock_.now());
  EXPECT_GE(step(), clock_.now().steady + minutes{2});
}

TEST_F(NodeSyncTest, WhatOthersDoToOurPartIsUndone) {
  api_.change("n1", [](node::ObservedNode& node) {
    node.labels["type"] = "hacked";
    node.labels["admin"] = "kept";
    node.conditions.back().condition.status = "Unknown";
  });
  tell(Seen::kModified);
  step_after(seconds{1});
  EXPECT_THAT(api_.calls(), ElementsAre("patch_status n1"));
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  EXPECT_EQ(held().labels.at("admin"), "kept");
  EXPECT_EQ(condition("Ready"), "True");
}

// Two writers who disagree: the other one changes our label back as soon as we have set it.
TEST_F(NodeSyncTest, AWriterWhoDisagreesIsAnsweredEverMoreSlowly) {
  std::vector<SteadyTime> reverts;
  for (const SteadyTime end = clock_.now().steady + minutes{30}; clock_.now().steady < end;) {
    if (held().labels.at("type") != "theirs") {
      somebody_sets_type("theirs");
      reverts.push_back(clock_.now().steady);
    }
    const SteadyTime next = step();
    ASSERT_GE(next, clock_.now().steady) << "no wake-up in the past";
    const bool waits = held().labels.at("type") == "theirs";
    clock_.advance(waits ? std::max<Duration>(next - clock_.now().steady, milliseconds{1})
                         : milliseconds{1});
  }
  EXPECT_GT(reverts.size(), 10U);
  EXPECT_LT(reverts.size(), 80U) << "at network speed it would be thousands";
  EXPECT_GE(reverts.back() - reverts.at(reverts.size() - 2), seconds{30});
  somebody_sets_type("theirs");
  step();
  EXPECT_EQ(sync_->drift(clock_.now().steady),
            "another client keeps reverting the label type of Node n1 (kubectl get node n1 -o yaml "
            "--show-managed-fields shows which one)");
  // A change of our own is no answer to anybody, and is written at once.
  sync_->set_desired(drained_node(), clock_.now());
  step();
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  // It goes on, at this node where jobs come and go.
  somebody_sets_type("theirs");
  step_after(milliseconds{1});
  ASSERT_EQ(held().labels.at("type"), "theirs");
  EXPECT_NE(sync_->drift(clock_.now().steady), "");
  run(minutes{3});
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  EXPECT_EQ(sync_->drift(clock_.now().steady), "") << "the other one has stopped";
}

// However it goes about it: by turns, and with conditions as well.
TEST_F(NodeSyncTest, NobodyMakesItWriteMoreThanTheBackOffAllows) {
  int i = 0;
  for (const SteadyTime end = clock_.now().steady + hours{1}; clock_.now().steady < end; ++i) {
    api_.change("n1", [i](node::ObservedNode& node) {
      node.labels["type"] = "theirs";
      node.conditions.at(static_cast<std::size_t>(i) % 4).condition.status = "Unknown";
    });
    tell(Seen::kModified);
    step_after(seconds{1});
  }
  EXPECT_LE(api_.count("patch_status n1"), 2 * 60 + 20) << "of half a minute at least, and reports";
}

TEST_F(NodeSyncTest, WhatTheServerAltersIsAProblemUntilItIsRight) {
  const auto set_type = [](const char* type) {
    return [type](node::ObservedNode& node) { node.labels["type"] = type; };
  };
  api_.admit = set_type("theirs");
  sync_->set_desired(drained_node(), clock_.now());
  run(seconds{10});
  EXPECT_THAT(sync_->drift(clock_.now().steady),
              HasSubstr("the API server changes the label type"));
  EXPECT_LE(api_.count("patch_status n1"), 5);
  api_.admit = [](node::ObservedNode&) {};
  api_.change("n1", set_type("virtual-kubelet"));
  tell(Seen::kModified);
  run(minutes{1});
  EXPECT_EQ(sync_->drift(clock_.now().steady), "");
}

// Within a minute, also what the node controller made of the conditions.
TEST_F(NodeSyncTest, BesideWhatIsNotKeptTheRestIsPutRight) {
  api_.admit = [](node::ObservedNode& node) { node.capacity["cpu"] = "1"; };
  sync_->set_desired(drained_node(), clock_.now());
  run(minutes{10});
  ASSERT_NE(sync_->drift(clock_.now().steady), "");
  api_.change("n1", [](node::ObservedNode& node) {
    node.labels["type"] = "theirs";
    node.conditions.back().condition.status = "Unknown";
  });
  tell(Seen::kModified);
  run(minutes{1});
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_NE(sync_->drift(clock_.now().steady), "");
}

// Then nothing is left to repeat.
TEST_F(NodeSyncTest, WhatOthersPutRightAfterAnAlteredWriteDoesNotSpin) {
  a_write_meets_anothers();
  somebody_sets_type("virtual-kubelet");
  const SteadyTime next = step_after(seconds{2});
  EXPECT_GT(next, clock_.now().steady);
}

TEST_F(NodeSyncTest, ASlowContestLeavesTheNodeRight) {
  for (int i = 0; i < 20; ++i) {
    somebody_sets_type("theirs");
    run(seconds{90});
    EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  }
}

TEST_F(NodeSyncTest, OneChangeByHandIsPutRightWithinSecondsAndNoProblem) {
  for (int i = 0; i < 4; ++i) {
    somebody_sets_type("theirs");
    run(seconds{3});
    EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
    EXPECT_EQ(sync_->drift(clock_.now().steady), "");
    run(minutes{11});
  }
}

TEST_F(NodeSyncTest, AWriteThatMeetsAnotherIsRepeatedAndNoProblem) {
  a_write_meets_anothers();
  ASSERT_EQ(held().labels.at("type"), "theirs");
  EXPECT_EQ(sync_->drift(clock_.now().steady), "");
  run(seconds{5});
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
  EXPECT_EQ(sync_->drift(clock_.now().steady), "");
}

TEST_F(NodeSyncTest, WhatWasWrongWithADeletedNodeIsNotThatOfTheNext) {
  api_.admit = [](node::ObservedNode& node) { node.labels["type"] = "theirs"; };
  sync_->set_desired(drained_node(), clock_.now());
  run(seconds{10});
  ASSERT_NE(sync_->drift(clock_.now().steady), "");
  api_.admit = [](node::ObservedNode&) {};
  const std::string before = uid();
  somebody_deletes_it();
  run(seconds{5});
  ASSERT_NE(uid(), before);
  EXPECT_EQ(sync_->drift(clock_.now().steady), "");
}

// An expired credential is that of all writes, and as good again once it is replaced.
TEST_F(NodeSyncTest, ACredentialThatIsNotAcceptedIsNoRejectedProviderId) {
  auto wanted = good_node();
  wanted.provider_id = "metal3://a/b/c";
  Error error{Code::kDenied, "401 Unauthorized"};
  error.request = RequestFailure{RequestFailure::Stage::kAnswer, 401, "401 Unauthorized"};
  api_.fail_calls("set_provider_id", error);
  sync_->set_desired(wanted, clock_.now());
  step_after(seconds{1});
  EXPECT_EQ(sync_->drift(clock_.now().steady), "");
  EXPECT_TRUE(sync_->write_error());
  error.request->http_status = 403;
  api_.fail_calls("set_provider_id", error);
  run(minutes{1});
  EXPECT_NE(sync_->drift(clock_.now().steady), "");
  api_.fail_calls("", std::nullopt);
  sync_->credential_replaced(clock_.now());
  run(seconds{11});
  EXPECT_EQ(held().provider_id, "metal3://a/b/c");
}

// What is wanted is held back again after another wish failed, or waited with others: neither of
// those keeps the loop awake.
TEST_F(NodeSyncTest, WhatIsHeldBackDoesNotSpin) {
  const auto revert = [this] {
    somebody_sets_type("theirs");
    step();
  };
  for (int i = 0; i < 8; ++i) {
    revert();
    run(milliseconds{1});
  }
  revert();
  ASSERT_EQ(held().labels.at("type"), "theirs") << "held back";
  api_.fail_calls("patch", Error{Code::kUnavailable, "no route"});
  sync_->set_desired(drained_node(), clock_.now());
  step();
  sync_->set_desired(good_node(), clock_.now());
  run(seconds{5});
  api_.fail_calls("", std::nullopt);
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  node::DesiredNode busy = good_node();
  busy.annotations["slurmlet.io/slurm-jobs"] = "1";
  sync_->set_desired(busy, clock_.now());
  step();
  sync_->set_desired(good_node(), clock_.now());
  run(seconds{10});
}

TEST_F(NodeSyncTest, WhatOthersDoToTheirPartIsNotOurs) {
  api_.change("n1", [](node::ObservedNode& node) {
    node.labels["admin"] = "new";
    node.unschedulable = true;
    node.taints.clear();
  });
  tell(Seen::kModified);
  step_after(seconds{1});
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(NodeSyncTest, TheOperatorsRecordIsToldAsTheWatchShowsItAndLeftAlone) {
  EXPECT_EQ(sync_->record(), "");
  auto node = held();
  node.annotations[node::vocabulary::kRecord] = "{}";
  api_.put(node);
  tell(Seen::kModified);
  step();
  EXPECT_EQ(sync_->record(), "{}");
  EXPECT_THAT(api_.calls(), IsEmpty());
  somebody_deletes_it();
  step();
  EXPECT_EQ(sync_->record(), std::nullopt) << "there is no Node";
}

TEST_F(NodeSyncTest, AnEventOlderThanOurOwnWriteIsIgnored) {
  const auto before = held();
  sync_->set_desired(drained_node(), clock_.now());
  step_after(seconds{1});
  watch_.feed(Seen::kModified, {before});
  step_after(seconds{1});
  EXPECT_THAT(api_.calls(), ElementsAre("patch_status n1"));  // not written again
}

TEST_F(NodeSyncTest, VersionsThatAreNoNumbersAllCount) {
  auto seen = held();
  seen.resource_version = "opaque";
  seen.labels["type"] = "hacked";
  watch_.feed(Seen::kModified, {seen});
  step_after(seconds{1});
  EXPECT_THAT(api_.calls(), ElementsAre("patch_status n1"));
}

TEST_F(NodeSyncTest, AnEmptyProviderIdIsSet) {
  auto wanted = good_node();
  wanted.provider_id = "metal3://a/b/c";
  sync_->set_desired(wanted, clock_.now());
  step_after(seconds{1});
  EXPECT_THAT(api_.calls(), ElementsAre("set_provider_id n1"));
  EXPECT_EQ(held().provider_id, "metal3://a/b/c");
  EXPECT_THAT(provider_ids_, ElementsAre("metal3://a/b/c"));
  step_after(seconds{1});
  EXPECT_EQ(api_.calls().size(), 1U);
}

TEST_F(NodeSyncTest, AProviderIdThatOthersSetIsRemembered) {
  api_.change("n1", [](node::ObservedNode& node) { node.provider_id = "metal3://x/y/z"; });
  tell(Seen::kModified);
  step_after(seconds{1});
  EXPECT_THAT(provider_ids_, ElementsAre("metal3://x/y/z"));
  EXPECT_THAT(api_.calls(), IsEmpty());
}

// Reports go on while the API server refuses the providerID, which is tried ever more rarely.
TEST_F(NodeSyncTest, ARefusedProviderIdDoesNotStopTheStatusAndIsNoLoop) {
  for (const Code code : {Code::kDenied, Code::kInvalid}) {
    make();
    step();
    api_.clear_calls();
    auto wanted = drained_node();
    wanted.provider_id = "metal3://a/b/c";
    api_.fail_calls("set_provider_id", Error{code, "refused"});
    sync_->set_desired(wanted, clock_.now());
    ::testing::internal::CaptureStderr();
    step_after(seconds{1});
    EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
    EXPECT_FALSE(sync_->write_error());
    EXPECT_EQ(sync_->drift(clock_.now().steady), "spec.providerID is rejected: refused");
    run(hours{2});
    EXPECT_EQ(held().provider_id, "");
    EXPECT_GE(api_.count("set_provider_id n1"), 3);
    EXPECT_LE(api_.count("set_provider_id n1"), 4 * 60 + 10) << "of half a minute at least";
    const std::string log = ::testing::internal::GetCapturedStderr();
    const auto said = log.find("rejects spec.providerID");
    EXPECT_NE(said, std::string::npos) << log;
    EXPECT_EQ(log.find("rejects spec.providerID", said + 1), std::string::npos) << log;
    api_.fail_calls("", std::nullopt);
    run(minutes{1});
    EXPECT_EQ(held().provider_id, "metal3://a/b/c");
    EXPECT_EQ(sync_->drift(clock_.now().steady), "");
    api_.change("n1", [](node::ObservedNode& node) { node.provider_id = ""; });
  }
}

TEST_F(NodeSyncTest, AProviderIdThatMustWaitDoesNotDelayTheStatus) {
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    make();
    step();
    auto wanted = good_node();
    wanted.provider_id = "metal3://a/b/c";
    api_.fail_calls("set_provider_id", Error{code, "come back later", seconds{60}});
    sync_->set_desired(wanted, clock_.now());
    step_after(seconds{1});
    auto drained = drained_node();
    drained.provider_id = wanted.provider_id;
    sync_->set_desired(drained, clock_.now());
    api_.clear_calls();
    step_after(seconds{1});
    EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
    EXPECT_THAT(api_.calls(), ElementsAre("patch_status n1")) << "not before the pause asked for";
    EXPECT_FALSE(sync_->write_error());
    run(minutes{10});
    EXPECT_GE(api_.count("set_provider_id n1"), 5) << "no report is waited for";
    EXPECT_LE(api_.count("set_provider_id n1"), 10);
    api_.fail_calls("", std::nullopt);
    run(seconds{75});
    EXPECT_EQ(held().provider_id, "metal3://a/b/c");
    api_.change("n1", [](node::ObservedNode& node) { node.provider_id = ""; });
  }
}

// Cluster API's label sync with the prefix metal3.io removes what its Machine does not have.
TEST_F(NodeSyncTest, AUuidLabelThatSomebodyRemovesIsNotFoughtFor) {
  api_.change("n1", [](node::ObservedNode& node) { node.labels.erase(kUuidLabel); });
  tell(Seen::kModified);
  run(minutes{20});
  EXPECT_THAT(held().labels, Not(Contains(Key(kUuidLabel))));
  for (const auto& patch : api_.patches()) {
    EXPECT_THAT(patch.labels, IsEmpty());
  }
}

TEST_F(NodeSyncTest, AUuidLabelThatComesBackIsOursAgain) {
  api_.change("n1", [](node::ObservedNode& node) { node.labels.erase(kUuidLabel); });
  tell(Seen::kModified);
  step_after(seconds{1});
  api_.change("n1", [](node::ObservedNode& node) { node.labels[kUuidLabel] = "wrong"; });
  tell(Seen::kModified);
  step_after(seconds{1});
  EXPECT_EQ(held().labels.at(kUuidLabel), "u1");
}

// What is wanted depends on whether the label is there: a client that removes it and sets it by
// turns, and changes another label, is in a contest all the same.
TEST_F(NodeSyncTest, AUuidLabelThatComesAndGoesIsNoWayAroundTheBackOff) {
  for (const SteadyTime end = clock_.now().steady + minutes{5}; clock_.now().steady < end;) {
    api_.change("n1", [](node::ObservedNode& node) {
      if (!node.labels.erase(kUuidLabel)) {
        node.labels[kUuidLabel] = "wrong";
      }
      node.labels["type"] = "theirs";
    });
    tell(Seen::kModified);
    step_after(milliseconds{100});
  }
  EXPECT_LT(api_.count("patch_status n1"), 20);
  EXPECT_NE(sync_->drift(clock_.now().steady), "");
}

TEST_F(NodeSyncTest, ADoubledConditionIsOneAgain) {
  api_.change("n1", [](node::ObservedNode& node) {
    node.conditions.push_back({{"Ready", "False", "Forged", ""}, ""});
  });
  tell(Seen::kModified);
  run(seconds{10});
  EXPECT_EQ(api_.count("patch_status n1"), 1);
  EXPECT_EQ(std::ranges::count_if(held().conditions,
                                  [](const auto& one) { return one.condition.type == "Ready"; }),
            1);
}

TEST_F(NodeSyncTest, FailuresBackOffAndRecover) {
  api_.fail_always(Error{Code::kUnavailable, "connection refused"});
  sync_->set_desired(drained_node(), clock_.now());
  const SteadyTime first = step();
  EXPECT_GT(first, clock_.now().steady);
  EXPECT_LE(first, clock_.now().steady + seconds{1});
  run(minutes{2});
  EXPECT_GT(api_.calls().size(), 6U);
  EXPECT_LT(api_.calls().size(), 20U);
  api_.fail_always(std::nullopt);
  run(minutes{1});
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  api_.clear_calls();
  run(minutes{10});
  EXPECT_EQ(api_.calls().size(), 2U);  // steady again
}

TEST_F(NodeSyncTest, WhatWasDeniedIsWrittenSoonWithAnotherCredential) {
  api_.fail_always(Error{Code::kDenied, "401 Unauthorized"});
  sync_->set_desired(drained_node(), clock_.now());
  run(minutes{5});
  api_.fail_always(std::nullopt);
  step();
  ASSERT_NE(condition("SlurmNodeStateDrain"), "True");
  sync_->credential_replaced(clock_.now());
  run(seconds{10});
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  EXPECT_EQ(watch_.credentials(), 1);
}

// A server that is down, or asks for a pause, is no better with another credential.
TEST_F(NodeSyncTest, OtherFailuresWaitWithAnotherCredentialAsWell) {
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  sync_->set_desired(drained_node(), clock_.now());
  step();
  sync_->credential_replaced(clock_.now());
  api_.clear_calls();
  run(seconds{39});
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(NodeSyncTest, APauseThatTheServerAsksForIsKept) {
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  sync_->set_desired(drained_node(), clock_.now());
  step();
  api_.clear_calls();
  run(seconds{39});
  EXPECT_THAT(api_.calls(), IsEmpty());
  run(seconds{12});
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
}

TEST_F(NodeSyncTest, AFailingReportIsRetried) {
  api_.fail_next(Error{Code::kTimeout, "late"});
  step_after(minutes{5});
  EXPECT_THAT(api_.patches(), IsEmpty());
  run(seconds{1});
  EXPECT_EQ(api_.patches().size(), 1U);
}

TEST_F(NodeSyncTest, RefusalsAreNoHotLoop) {
  for (const Code code : {Code::kDenied, Code::kInvalid, Code::kConflict}) {
    api_.fail_always(Error{code, "refused"});
    sync_->set_desired(drained_node(), clock_.now());
    api_.clear_calls();
    const int steps = run(minutes{2});
    EXPECT_LT(steps, 100) << static_cast<int>(code);
    EXPECT_LT(api_.calls().size(), 150U) << static_cast<int>(code);
    EXPECT_GT(api_.calls().size(), 5U) << static_cast<int>(code);
    api_.fail_always(std::nullopt);
    run(minutes{1});
    sync_->set_desired(good_node(), clock_.now());
    run(seconds{10});
  }
}

TEST_F(NodeSyncTest, AfterARefusalTheNodeIsReadAgain) {
  api_.change("n1", [](node::ObservedNode& node) { node.labels["type"] = "hacked"; });
  api_.fail_next(Error{Code::kConflict, "409"});
  sync_->set_desired(drained_node(), clock_.now());
  step();
  EXPECT_THAT(api_.calls(), ElementsAre("patch_status n1", "get n1"));
  run(seconds{1});
  EXPECT_EQ(held().labels.at("type"), "virtual-kubelet");
}

TEST_F(NodeSyncTest, FlushWritesAtOnceWhateverTheTimersSay) {
  api_.fail_next(Error{Code::kUnavailable, "away"});
  sync_->set_desired(drained_node(), clock_.now());
  EXPECT_GT(step(), clock_.now().steady);  // waiting for the next try
  auto last = drained_node();
  last.conditions.back() = {"Ready", "False", "NodeShuttingDown", "node is shutting down"};
  sync_->set_desired(last, clock_.now());
  EXPECT_TRUE(sync_->flush(clock_.now()));
  EXPECT_EQ(condition("Ready"), "False");
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
}

TEST_F(NodeSyncTest, FlushWithoutAChangeWritesNothing) {
  EXPECT_TRUE(sync_->flush(clock_.now()));
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(NodeSyncTest, FlushDoesNotWaitForTheSpreadOfAStart) {
  make();
  link_.set_uid(held().uid);
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  step();
  ASSERT_FALSE(sync_->registered());
  sync_->set_desired(drained_node(), clock_.now());
  EXPECT_TRUE(sync_->flush(clock_.now()));
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
}

TEST_F(NodeSyncTest, FlushWithoutANodeIsAnError) {
  api_.remove("n1");
  make();
  EXPECT_FALSE(sync_->flush(clock_.now()));
  EXPECT_EQ(api_.count("create n1"), 0) << "none is made for a machine that goes";
  make();
  api_.fail_always(Error{Code::kUnavailable, "away"});
  EXPECT_EQ(sync_->flush(clock_.now()).error().code, Code::kUnavailable);
}

TEST_F(NodeSyncTest, FlushTellsOfAFailure) {
  sync_->set_desired(drained_node(), clock_.now());
  api_.fail_next(Error{Code::kUnavailable, "away"});
  const Status flushed = sync_->flush(clock_.now());
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, Code::kUnavailable);
}

TEST_F(NodeSyncTest, WakesForTheWatch) {
  watch_.set_wake(clock_.now().steady + seconds{30});
  EXPECT_EQ(step(), clock_.now().steady + seconds{30});
}

TEST_F(NodeSyncTest, EventsAreAboutTheNodeAsKubectlLooksForThem) {
  sync_->set_desired(drained_node(), clock_.now());
  ASSERT_THAT(event_reasons(), ElementsAre("Registered", "SlurmDrained"));
  const kube::Event event = event_api_.events().back();
  EXPECT_EQ(event.type, "Warning");
  EXPECT_EQ(event.about.kind, "Node");
  EXPECT_EQ(event.about.name, "n1");
  EXPECT_EQ(event.about.uid, "n1");
  EXPECT_EQ(event.message, "drained; no jobs are running");
}

// A server that holds 1024Ki of memory as 1Mi.
class ReformingApi final : public kube::NodeApi {
 public:
  explicit ReformingApi(fakes::FakeNodeApi& api) : api_(api) {}
  Result<node::ObservedNode> get(const std::string& name) override { return api_.get(name); }
  Result<node::ObservedNode> create(const node::DesiredNode& desired, WallTime now) override {
    return reformed(api_.create(desired, now));
  }
  Result<node::ObservedNode> patch_status(const std::string& name,
                                          const node::NodePatch& patch) override {
    return reformed(api_.patch_status(name, patch));
  }
  Result<node::ObservedNode> set_provider_id(const std::string& name, const std::string& uid,
                                             const std::string& provider_id) override {
    return api_.set_provider_id(name, uid, provider_id);
  }

 private:
  Result<node::ObservedNode> reformed(Result<node::ObservedNode> answer) {
    if (!answer) {
      return answer;
    }
    const auto reform = [](std::map<std::string, std::string>& resources) {
      if (const auto memory = resources.find("memory");
          memory != resources.end() && memory->second == "1024Ki") {
        memory->second = "1Mi";
      }
    };
    api_.change(answer->name, [&reform](node::ObservedNode& node) {
      reform(node.capacity);
      reform(node.allocatable);
    });
    return *api_.find(answer->name);
  }
  fakes::FakeNodeApi& api_;
};

class AlteredValueTest : public NodeSyncFixture {
 protected:
  AlteredValueTest() {
    sync_ = std::make_unique<NodeSync>(
        reforming_, leases_, watch_, events_, options_, [] { return 0.5; }, link_);
    want(good_node());
    step();
    tell(Seen::kReplaced);
  }
  void want(node::DesiredNode node) {
    node.capacity["memory"] = node.allocatable["memory"] = "1024Ki";
    sync_->set_desired(std::move(node), clock_.now());
  }

  ReformingApi reforming_{api_};
};

TEST_F(AlteredValueTest, IsWrittenAtGrowingIntervalsWhateverTheWatchEchoes) {
  run(minutes{10});
  ASSERT_EQ(held().capacity.at("memory"), "1Mi");
  EXPECT_EQ(api_.count("create n1"), 1);
  api_.clear_calls();
  for (int tick = 0; tick < 6 * 60; ++tick) {
    want(good_node());
    tell(Seen::kModified);
    step_after(seconds{10});
  }
  EXPECT_GE(api_.calls().size(), 50U);
  EXPECT_LE(api_.calls().size(), 2 * 60U + 15);
}

TEST_F(AlteredValueTest, DoesNotDelayARealChange) {
  run(minutes{10});
  want(drained_node());
  step();
  EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-state"), "IDLE+DRAIN");
  run(minutes{3});
  want(good_node());
  step();
  EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-state"), "IDLE");
}

}  // namespace
}  // namespace slurmlet::sync
