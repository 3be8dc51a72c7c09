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
using ::testing::AllOf;
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
  void somebody_sets_type(const char* value) {
    somebody_changes([value](node::ObservedNode& node) { node.labels["type"] = value; });
  }
  std::string drift() const { return sync_->drift(clock_.now().steady); }
  std::string type_label() const { return held().labels.at("type"); }
};

node::DesiredNode with_jobs(const char* jobs) {
  node::DesiredNode node = good_node();
  node.annotations["slurmlet.io/slurm-jobs"] = jobs;
  return node;
}

node::DesiredNode with_provider_id(node::DesiredNode node) {
  node.provider_id = "metal3://a/b/c";
  return node;
}

TEST_F(NodeSyncTest, ASteadyNodeCallsNothingBetweenReports) {
  for (int second = 0; second < 299; ++second) {
    want(good_node());
    step_after(seconds{1});
  }
  EXPECT_THAT(api_.calls(), IsEmpty());
  const int steps = run(hours{1});
  EXPECT_EQ(api_.calls().size(), 12U);
  EXPECT_EQ(api_.writes(), 12);
  EXPECT_LE(steps, 14);  // and it sleeps in between
}

TEST_F(NodeSyncTest, AReportHoldsHeartbeatsOnly) {
  step_after(minutes{5});
  ASSERT_EQ(api_.patches().size(), 1U);
  const node::NodePatch patch = api_.patches().front();
  EXPECT_FALSE(patch.has_changes);
  EXPECT_EQ(patch.uid, uid());
  ASSERT_EQ(patch.conditions.size(), good_node().conditions.size());
  EXPECT_EQ(patch.conditions.front().last_heartbeat_time, rfc3339(clock_.now().wall));
  EXPECT_LT(patch.conditions.front().last_transition_time,
            patch.conditions.front().last_heartbeat_time);
}

TEST_F(NodeSyncTest, SinceWhenNoWriteSucceedsIsKnown) {
  api_.fail_always(Error{Code::kInvalid, "422 Unprocessable Entity"});
  want(drained_node());
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

TEST_F(NodeSyncTest, AChangeIsOnePatchAtOnceAndAnEvent) {
  clock_.advance(minutes{4});
  want(drained_node());
  EXPECT_GE(step(), clock_.now().steady + minutes{2}) << "the next report has moved";
  EXPECT_EQ(api_.writes(), 1);
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  ASSERT_THAT(event_reasons(), ElementsAre("Registered", "SlurmDrained"));
  const kube::Event event = event_api_.events().back();
  EXPECT_EQ(event.type, "Warning");
  EXPECT_EQ(event.about.kind, "Node");
  EXPECT_EQ(event.about.name, "n1");
  EXPECT_EQ(event.about.uid, held().uid);
  EXPECT_EQ(event.message, drained_node().conditions[1].message);
  tell(Seen::kModified);  // the server's echo
  step_after(seconds{1});
  EXPECT_EQ(api_.calls().size(), 1U);
}

class LargeSiteTest : public NodeSyncTest {
 protected:
  LargeSiteTest() {
    sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
    run(minutes{2});
    api_.clear_calls();
  }
};

TEST_F(LargeSiteTest, ChangesWaitForTheOthersAndTheLastIsWritten) {
  want(with_jobs("1"));
  const SteadyTime due = step();
  EXPECT_GT(due, clock_.now().steady);
  EXPECT_LE(due, clock_.now().steady + seconds{10});
  want(with_jobs("2"));
  step();
  EXPECT_EQ(api_.writes(), 0);
  step_after(due - clock_.now().steady);
  EXPECT_EQ(api_.writes(), 1);
  EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-jobs"), "2");
  // What has changed back by then was never written.
  want(drained_node());
  step();
  want(with_jobs("2"));
  step_after(seconds{10});
  EXPECT_EQ(api_.writes(), 1);
}

TEST_F(LargeSiteTest, EventsHaveATimeOfTheirOwn) {
  ASSERT_THAT(event_reasons(), ElementsAre("Registered"));
  want(drained_node());
  step_after(milliseconds{1});
  EXPECT_EQ(event_reasons().size(), 1U);
  step_after(seconds{20});
  EXPECT_THAT(event_reasons(), ElementsAre("Registered", "SlurmDrained"));
}

TEST_F(LargeSiteTest, AFailedWriteThatWaitsWithOthersDoesNotSpin) {
  want(with_jobs("1"));
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
    const SteadyTime start = step();
    EXPECT_GE(start, lease.at);
    EXPECT_LT(start, begun + site_delay(Delay::kStart, 10'000));
    step_after(start - clock_.now().steady - milliseconds{1});
    EXPECT_THAT(api_.calls(), IsEmpty());
    step_after(milliseconds{1});
    EXPECT_TRUE(sync_->registered());
    EXPECT_EQ(uid(), held().uid);
  }
}

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

  make();
  sync_->set_site(SitePlace{}, clock_.now());
  step();
  ASSERT_TRUE(sync_->registered());
  sync_->set_site(place, clock_.now());
  want(with_jobs("1"));
  const SteadyTime due = step();
  EXPECT_GT(due, clock_.now().steady) << "its change waits with the others'";
  EXPECT_LE(due, clock_.now().steady + site_delay(Delay::kNews, 10'000));
}

TEST_F(NodeSyncTest, WhereFewNodesStartAtOneMomentTheStartIsNotSpread) {
  for (const auto& place : {SitePlace{"n1", 10'000, 12}, SitePlace{"n1", kSmallSite}}) {
    make();
    sync_->set_site(place, clock_.now());
    step();
    EXPECT_TRUE(sync_->registered());
  }
}

TEST_F(NodeSyncTest, WhatOthersDoToOurPartIsUndone) {
  somebody_changes([](node::ObservedNode& node) {
    node.labels["type"] = "hacked";
    node.labels["admin"] = "kept";
    node.conditions.back().condition.status = "Unknown";
    node.conditions.push_back({{"Ready", "False", "Forged", ""}, ""});
  });
  run(seconds{10});
  EXPECT_EQ(api_.writes(), 1);
  EXPECT_EQ(type_label(), "virtual-kubelet");
  EXPECT_EQ(held().labels.at("admin"), "kept");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_EQ(held().conditions.size(), good_node().conditions.size()) << "each type once";
}

TEST_F(NodeSyncTest, AWriterWhoDisagreesIsAnsweredEverMoreSlowly) {
  std::vector<SteadyTime> reverts;
  for (const SteadyTime end = clock_.now().steady + minutes{30}; clock_.now().steady < end;) {
    if (type_label() != "theirs") {
      somebody_sets_type("theirs");
      reverts.push_back(clock_.now().steady);
    }
    const SteadyTime next = step();
    ASSERT_GE(next, clock_.now().steady) << "no wake-up in the past";
    const bool waits = type_label() == "theirs";
    clock_.advance(waits ? std::max<Duration>(next - clock_.now().steady, milliseconds{1})
                         : milliseconds{1});
  }
  EXPECT_GT(reverts.size(), 10U);
  EXPECT_LT(reverts.size(), 80U) << "at network speed it would be thousands";
  EXPECT_GE(reverts.back() - reverts.at(reverts.size() - 2), seconds{30});
  somebody_sets_type("theirs");
  step();
  EXPECT_THAT(drift(), AllOf(HasSubstr("label type"), HasSubstr("--show-managed-fields")));
  // A change of our own is no answer to anybody, and is written at once.
  want(drained_node());
  step();
  EXPECT_EQ(type_label(), "virtual-kubelet");
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  // It goes on, at this node where jobs come and go.
  somebody_sets_type("theirs");
  step_after(milliseconds{1});
  ASSERT_EQ(type_label(), "theirs");
  EXPECT_NE(drift(), "");
  run(minutes{3});
  EXPECT_EQ(type_label(), "virtual-kubelet");
  EXPECT_EQ(drift(), "") << "the other one has stopped";
}

TEST_F(NodeSyncTest, NobodyMakesItWriteMoreThanTheBackOffAllows) {
  int i = 0;
  for (const SteadyTime end = clock_.now().steady + hours{1}; clock_.now().steady < end; ++i) {
    somebody_changes([i](node::ObservedNode& node) {
      node.labels["type"] = "theirs";
      node.conditions.at(static_cast<std::size_t>(i) % 4).condition.status = "Unknown";
    });
    step_after(seconds{1});
  }
  EXPECT_LE(api_.writes(), 2 * 60 + 20) << "of half a minute at least, and reports";
}

// Beside it the rest is put right, also what the node controller made of the conditions.
TEST_F(NodeSyncTest, WhatTheServerAltersIsAProblemUntilItIsRight) {
  api_.admit = [](node::ObservedNode& node) { node.capacity["cpu"] = "1"; };
  want(drained_node());
  run(seconds{10});
  EXPECT_THAT(drift(), AllOf(HasSubstr("API server"), HasSubstr("cpu")));
  EXPECT_LE(api_.writes(), 5);
  run(minutes{10});
  somebody_changes([](node::ObservedNode& node) {
    node.labels["type"] = "theirs";
    node.conditions.back().condition.status = "Unknown";
  });
  run(minutes{1});
  EXPECT_EQ(type_label(), "virtual-kubelet");
  EXPECT_EQ(condition("Ready"), "True");
  EXPECT_NE(drift(), "");
  api_.admit = [](node::ObservedNode&) {};
  somebody_changes([](node::ObservedNode& node) { node.capacity["cpu"] = "128"; });
  run(minutes{1});
  EXPECT_EQ(drift(), "");
}

TEST_F(NodeSyncTest, ASlowContestLeavesTheNodeRightAndAChangeByHandIsNoProblem) {
  for (int i = 0; i < 20; ++i) {
    somebody_sets_type("theirs");
    run(seconds{90});
    EXPECT_EQ(type_label(), "virtual-kubelet");
  }
  run(minutes{11});
  for (int i = 0; i < 4; ++i) {
    somebody_sets_type("theirs");
    run(seconds{3});
    EXPECT_EQ(type_label(), "virtual-kubelet");
    EXPECT_EQ(drift(), "");
    run(minutes{11});
  }
}

TEST_F(NodeSyncTest, AWriteThatMeetsAnotherIsRepeatedAndNoProblem) {
  for (const bool others_put_it_right : {false, true}) {
    api_.admit = [this](node::ObservedNode& node) {
      node.labels["type"] = "theirs";
      api_.admit = [](node::ObservedNode&) {};
    };
    want(others_put_it_right ? good_node() : drained_node());
    step_after(seconds{1});
    ASSERT_EQ(type_label(), "theirs");
    EXPECT_EQ(drift(), "");
    if (others_put_it_right) {
      somebody_sets_type("virtual-kubelet");
      EXPECT_GT(step_after(seconds{2}), clock_.now().steady) << "nothing is left to repeat";
    }
    run(seconds{5});
    EXPECT_EQ(type_label(), "virtual-kubelet");
    EXPECT_EQ(drift(), "");
    run(minutes{11});
  }
}

TEST_F(NodeSyncTest, WhatWasWrongWithADeletedNodeIsNotThatOfTheNext) {
  api_.admit = [](node::ObservedNode& node) { node.labels["type"] = "theirs"; };
  want(drained_node());
  run(seconds{10});
  ASSERT_NE(drift(), "");
  api_.admit = [](node::ObservedNode&) {};
  const std::string before = uid();
  somebody_deletes_it();
  run(seconds{5});
  ASSERT_NE(uid(), before);
  EXPECT_EQ(drift(), "");
}

TEST_F(NodeSyncTest, ACredentialThatIsNotAcceptedIsNoRejectedProviderId) {
  Error error{Code::kDenied, "401 Unauthorized"};
  error.request = RequestFailure{RequestFailure::Stage::kAnswer, 401, "401 Unauthorized"};
  api_.fail_calls("set_provider_id", error);
  want(with_provider_id(good_node()));
  step_after(seconds{1});
  EXPECT_EQ(drift(), "");
  EXPECT_TRUE(sync_->write_error());
  error.request->http_status = 403;
  api_.fail_calls("set_provider_id", error);
  run(minutes{1});
  EXPECT_NE(drift(), "");
  api_.fail_calls("", std::nullopt);
  sync_->credential_replaced(clock_.now());
  run(seconds{11});
  EXPECT_EQ(held().provider_id, "metal3://a/b/c");
}

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
  ASSERT_EQ(type_label(), "theirs") << "held back";
  api_.fail_calls("patch", Error{Code::kUnavailable, "no route"});
  want(drained_node());
  step();
  want(good_node());
  run(seconds{5});
  api_.fail_calls("", std::nullopt);
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  want(with_jobs("1"));
  step();
  want(good_node());
  run(seconds{10});
}

TEST_F(NodeSyncTest, WhatOthersDoToTheirPartIsNotOursAndTheOperatorsRecordIsTold) {
  EXPECT_EQ(sync_->record(), "");
  somebody_changes([](node::ObservedNode& node) {
    node.labels["admin"] = "new";
    node.unschedulable = true;
    node.taints.clear();
    node.annotations[node::vocabulary::kRecord] = "{}";
  });
  step_after(seconds{1});
  EXPECT_EQ(sync_->record(), "{}");
  EXPECT_EQ(api_.writes(), 0);
  somebody_deletes_it();
  step();
  EXPECT_EQ(sync_->record(), std::nullopt) << "there is no Node";
}

TEST_F(NodeSyncTest, AnEventOlderThanOurOwnWriteIsIgnoredButNotOneWithoutANumber) {
  auto seen = held();
  want(drained_node());
  step_after(seconds{1});
  watch_.feed(Seen::kModified, {seen});
  step_after(seconds{1});
  EXPECT_EQ(api_.writes(), 1);
  seen.resource_version = "opaque";
  watch_.feed(Seen::kModified, {seen});
  step_after(seconds{1});
  EXPECT_EQ(api_.writes(), 2);
}

TEST_F(NodeSyncTest, AnEmptyProviderIdIsSetOnceAndOneThatOthersSetRemembered) {
  want(with_provider_id(good_node()));
  step_after(seconds{1});
  EXPECT_EQ(held().provider_id, "metal3://a/b/c");
  EXPECT_THAT(provider_ids_, ElementsAre("metal3://a/b/c"));
  step_after(seconds{1});
  EXPECT_EQ(api_.writes(), 1);
  want(good_node());
  somebody_changes([](node::ObservedNode& node) { node.provider_id = "metal3://x/y/z"; });
  step_after(seconds{1});
  EXPECT_EQ(provider_ids_.back(), "metal3://x/y/z");
  EXPECT_EQ(api_.writes(), 1);
}

TEST_F(NodeSyncTest, ARefusedProviderIdDoesNotStopTheStatusAndIsNoLoop) {
  for (const Code code : {Code::kDenied, Code::kInvalid}) {
    make();
    step();
    api_.clear_calls();
    api_.fail_calls("set_provider_id", Error{code, "refused"});
    want(with_provider_id(drained_node()));
    ::testing::internal::CaptureStderr();
    step_after(seconds{1});
    EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
    EXPECT_FALSE(sync_->write_error());
    EXPECT_THAT(drift(), AllOf(HasSubstr("spec.providerID"), HasSubstr("refused")));
    run(hours{2});
    EXPECT_EQ(held().provider_id, "");
    EXPECT_GE(api_.count("set_provider_id n1"), 3);
    EXPECT_LE(api_.count("set_provider_id n1"), 4 * 60 + 10) << "of half a minute at least";
    const std::string log = ::testing::internal::GetCapturedStderr();
    const auto said = log.find("spec.providerID");
    EXPECT_NE(said, std::string::npos) << log;
    EXPECT_EQ(log.find('\n', said) + 1, log.size()) << "said once: " << log;
    api_.fail_calls("", std::nullopt);
    run(minutes{1});
    EXPECT_EQ(held().provider_id, "metal3://a/b/c");
    EXPECT_EQ(drift(), "");
    api_.change("n1", [](node::ObservedNode& node) { node.provider_id = ""; });
  }
}

TEST_F(NodeSyncTest, AProviderIdThatMustWaitDoesNotDelayTheStatus) {
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    make();
    step();
    api_.fail_calls("set_provider_id", Error{code, "come back later", seconds{60}});
    want(with_provider_id(good_node()));
    step_after(seconds{1});
    want(with_provider_id(drained_node()));
    api_.clear_calls();
    step_after(seconds{1});
    EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
    EXPECT_EQ(api_.count("set_provider_id n1"), 0) << "not before the pause asked for";
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

TEST_F(NodeSyncTest, AUuidLabelThatSomebodyRemovesIsNotFoughtForUntilItComesBack) {
  somebody_changes([](node::ObservedNode& node) { node.labels.erase(kUuidLabel); });
  run(minutes{20});
  EXPECT_THAT(held().labels, Not(Contains(Key(kUuidLabel))));
  for (const auto& patch : api_.patches()) {
    EXPECT_THAT(patch.labels, IsEmpty());
  }
  somebody_changes([](node::ObservedNode& node) { node.labels[kUuidLabel] = "wrong"; });
  step_after(seconds{1});
  EXPECT_EQ(held().labels.at(kUuidLabel), "u1");
}

TEST_F(NodeSyncTest, AUuidLabelThatComesAndGoesIsNoWayAroundTheBackOff) {
  for (const SteadyTime end = clock_.now().steady + minutes{5}; clock_.now().steady < end;) {
    somebody_changes([](node::ObservedNode& node) {
      if (!node.labels.erase(kUuidLabel)) {
        node.labels[kUuidLabel] = "wrong";
      }
      node.labels["type"] = "theirs";
    });
    step_after(milliseconds{100});
  }
  EXPECT_LT(api_.writes(), 20);
  EXPECT_NE(drift(), "");
}

TEST_F(NodeSyncTest, FailuresBackOffAndRecover) {
  for (const Code code : {Code::kUnavailable, Code::kDenied, Code::kInvalid, Code::kConflict}) {
    SCOPED_TRACE(static_cast<int>(code));
    api_.fail_always(Error{code, "refused"});
    want(drained_node());
    api_.clear_calls();
    const SteadyTime first = step();
    EXPECT_GT(first, clock_.now().steady);
    EXPECT_LE(first, clock_.now().steady + seconds{2});
    EXPECT_LT(run(minutes{2}), 60) << "no hot loop";
    EXPECT_GT(api_.calls().size(), 5U);
    EXPECT_LT(api_.calls().size(), 60U);
    api_.fail_always(std::nullopt);
    run(minutes{1});
    EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
    want(good_node());
    run(seconds{10});
    api_.clear_calls();
    run(minutes{10});
    EXPECT_EQ(api_.calls().size(), 2U) << "steady again";
  }
}

TEST_F(NodeSyncTest, WhatWasDeniedIsWrittenSoonWithAnotherCredential) {
  api_.fail_always(Error{Code::kDenied, "401 Unauthorized"});
  want(drained_node());
  run(minutes{5});
  api_.fail_always(std::nullopt);
  step();
  ASSERT_NE(condition("SlurmNodeStateDrain"), "True");
  sync_->credential_replaced(clock_.now());
  run(seconds{10});
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  EXPECT_EQ(watch_.credentials(), 1);
}

// With another credential it is asked for all the same.
TEST_F(NodeSyncTest, APauseThatTheServerAsksForIsKept) {
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  want(drained_node());
  step();
  sync_->credential_replaced(clock_.now());
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

TEST_F(NodeSyncTest, AfterARefusalTheNodeIsReadAgain) {
  api_.change("n1", [](node::ObservedNode& node) { node.labels["type"] = "hacked"; });
  api_.fail_next(Error{Code::kConflict, "409"});
  want(drained_node());
  run(seconds{1});
  EXPECT_EQ(type_label(), "virtual-kubelet");
}

TEST_F(NodeSyncTest, FlushWritesAtOnceWhateverTheTimersSay) {
  api_.fail_next(Error{Code::kUnavailable, "away"});
  want(drained_node());
  EXPECT_GT(step(), clock_.now().steady);  // waiting for the next try
  auto last = drained_node();
  last.conditions.back() = {"Ready", "False", "NodeShuttingDown", "node is shutting down"};
  want(last);
  EXPECT_TRUE(sync_->flush(clock_.now()));
  EXPECT_EQ(condition("Ready"), "False");
  EXPECT_EQ(condition("SlurmNodeStateDrain"), "True");
  const int writes = api_.writes();
  EXPECT_TRUE(sync_->flush(clock_.now()));
  EXPECT_EQ(api_.writes(), writes) << "nothing has changed";
  want(good_node());
  api_.fail_next(Error{Code::kUnavailable, "away"});
  EXPECT_EQ(sync_->flush(clock_.now()).error().code, Code::kUnavailable);
}

TEST_F(NodeSyncTest, FlushDoesNotWaitForTheSpreadOfAStart) {
  make();
  link_.set_uid(held().uid);
  sync_->set_site(SitePlace{"n1", 10'000}, clock_.now());
  step();
  ASSERT_FALSE(sync_->registered());
  want(drained_node());
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

TEST_F(NodeSyncTest, WakesForTheWatch) {
  watch_.set_wake(clock_.now().steady + seconds{30});
  EXPECT_EQ(step(), clock_.now().steady + seconds{30});
}

// A server that holds 1024Ki of memory as 1Mi.
class AlteredValueTest : public NodeSyncFixture {
 protected:
  AlteredValueTest() {
    api_.admit = [](node::ObservedNode& node) {
      node.capacity["memory"] = node.allocatable["memory"] = "1Mi";
    };
    want_memory(good_node());
    step();
    tell(Seen::kReplaced);
  }
  void want_memory(node::DesiredNode node) {
    node.capacity["memory"] = node.allocatable["memory"] = "1024Ki";
    want(node);
  }
};

TEST_F(AlteredValueTest, IsWrittenAtGrowingIntervalsWhateverTheWatchEchoes) {
  run(minutes{10});
  ASSERT_EQ(held().capacity.at("memory"), "1Mi");
  api_.clear_calls();
  for (int tick = 0; tick < 6 * 60; ++tick) {
    want_memory(good_node());
    tell(Seen::kModified);
    step_after(seconds{10});
  }
  EXPECT_GE(api_.calls().size(), 50U);
  EXPECT_LE(api_.calls().size(), 2 * 60U + 15);
}

TEST_F(AlteredValueTest, DoesNotDelayARealChange) {
  run(minutes{10});
  for (const auto& node : {drained_node(), good_node()}) {
    want_memory(node);
    step();
    EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-state"),
              node.annotations.at("slurmlet.io/slurm-state"));
    run(minutes{3});
  }
}

}  // namespace
}  // namespace slurmlet::sync
