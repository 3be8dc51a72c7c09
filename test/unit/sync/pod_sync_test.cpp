#include "sync/pod_sync.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"

namespace slurmlet::sync {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

kube::Pod pod(const std::string& name, const std::string& phase = "Pending") {
  kube::Pod out;
  out.namespace_name = "default";
  out.name = name;
  out.uid = name + "-uid";
  out.phase = phase;
  return out;
}

kube::Pod pod_of(const std::string& owner, const std::string& name) {
  kube::Pod out = pod(name);
  out.controller = kube::OwnerRef{"ReplicaSet", owner, owner + "-uid"};
  return out;
}

class PodSyncTest : public ::testing::Test {
 protected:
  using Seen = kube::WatchEvent<kube::Pod>::Type;

  SteadyTime step() { return sync_.step(clock_.now()); }
  // Steps as the loop does, until none is due at once.
  SteadyTime settle() {
    SteadyTime next = step();
    while (next <= clock_.now().steady) {
      next = step();
    }
    return next;
  }
  SteadyTime step_after(Duration time) {
    clock_.advance(time);
    return step();
  }
  // The scheduler, or whoever sets spec.nodeName, brings it here.
  void bring(const kube::Pod& pod) {
    api_.put(pod);
    watch_.feed(Seen::kAdded, {pod});
  }
  void mark_deleting(kube::Pod pod) {
    pod.deleting = true;
    api_.put(pod);
    watch_.feed(Seen::kModified, {pod});
  }
  std::vector<std::string> failed() const {
    std::vector<std::string> uids;
    for (const auto& one : api_.failed()) {
      uids.push_back(one.uid);
    }
    return uids;
  }
  std::vector<kube::Event> events() {
    while (event_sink_.step(clock_.now()) <= clock_.now().steady) {
    }
    return event_api_.events();
  }
  int count_events(const std::string& kind, const std::string& reason) {
    int count = 0;
    for (const auto& event : events()) {
      count += event.about.kind == kind && event.reason == reason ? 1 : 0;
    }
    return count;
  }

  fakes::FakeClock clock_;
  fakes::FakePodApi api_;
  fakes::FakeWatch<kube::Pod> watch_;
  fakes::FakeEventApi event_api_;
  EventSink event_sink_{event_api_, "n1", [] { return 0.0; }};
  PodSync sync_{api_, watch_, event_sink_, {"n1", "alps", seconds{60}}, [] { return 1.0; }};
};

TEST_F(PodSyncTest, NoPodsNoCalls) {
  EXPECT_EQ(step(), kNever);
  watch_.feed(Seen::kReplaced, {});
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(PodSyncTest, APendingPodIsFailedAtOnce) {
  bring(pod("web"));
  EXPECT_EQ(step(), kNever);
  ASSERT_EQ(api_.failed().size(), 1U);
  EXPECT_EQ(api_.failed().front().reason, "SlurmNodeNoPods");
  EXPECT_EQ(api_.failed().front().message,
            "node n1 belongs to Slurm cluster \"alps\" and runs no pods. Submit a Slurm job, or "
            "remove spec.nodeName or the toleration that brought the pod here.");
  EXPECT_EQ(api_.find("default", "web")->phase, "Failed");
  EXPECT_EQ(sync_.rejected(), 1U);
  EXPECT_EQ(sync_.waiting(), 0U);
}

TEST_F(PodSyncTest, TheClusterNameMayComeLater) {
  sync_.set_cluster("");
  bring(pod("web"));
  step();
  EXPECT_TRUE(
      api_.failed().back().message.starts_with("node n1 belongs to Slurm and runs no pods"));
  sync_.set_cluster("jura");
  bring(pod("web2"));
  step();
  EXPECT_TRUE(
      api_.failed().back().message.starts_with("node n1 belongs to Slurm cluster \"jura\""));
}

TEST_F(PodSyncTest, ARunningPodIsFailedToo) {  // left over from a kubelet of this name
  bring(pod("web", "Running"));
  step();
  EXPECT_THAT(failed(), ElementsAre("web-uid"));
}

TEST_F(PodSyncTest, FinishedPodsAreLeftAlone) {
  bring(pod("a", "Succeeded"));
  bring(pod("b", "Failed"));
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
}

TEST_F(PodSyncTest, TheEchoOfARejectionIsNotRejectedAgain) {
  bring(pod("web"));
  step();
  auto echo = pod("web", "Failed");
  watch_.feed(Seen::kModified, {echo});
  watch_.feed(Seen::kModified, {pod("other", "Failed")});
  step_after(seconds{1});
  EXPECT_EQ(api_.calls().size(), 1U);
}

// What holds it back by a finalizer, as the Job controller does, waits for a terminal phase.
TEST_F(PodSyncTest, ADeletingPodFailsAndIsRemoved) {
  for (const char* phase : {"Pending", "Running", "Unknown", ""}) {
    api_.clear_calls();
    auto deleting = pod("web", phase);
    deleting.deleting = true;
    bring(deleting);
    step();
    EXPECT_THAT(api_.calls(), ElementsAre("set_failed default/web", "remove_now default/web"))
        << phase;
    EXPECT_EQ(api_.failed().back().reason, "SlurmNodeNoPods");
    EXPECT_FALSE(api_.find("default", "web")) << phase;
    watch_.feed(Seen::kDeleted, {deleting});
  }
  EXPECT_EQ(sync_.finished(), 4U);
  EXPECT_EQ(sync_.rejected(), 0U);
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(PodSyncTest, ADeletingPodThatHasEndedIsRemoved) {
  for (const char* phase : {"Failed", "Succeeded"}) {
    auto deleting = pod(std::string{"web-"} + phase, phase);
    deleting.deleting = true;
    bring(deleting);
    step();
    EXPECT_FALSE(api_.find("default", deleting.name)) << phase;
  }
  EXPECT_THAT(api_.failed(), IsEmpty());
  EXPECT_EQ(sync_.finished(), 2U);
}

TEST_F(PodSyncTest, ADeletingPodIsNotRemovedBeforeItsEndIsReported) {
  api_.fail_calls("set_failed", Error{Code::kUnavailable, "away"});
  auto deleting = pod("web");
  deleting.deleting = true;
  bring(deleting);
  EXPECT_EQ(step(), clock_.now().steady + seconds{2});
  EXPECT_EQ(api_.count("remove_now default/web"), 0);
  api_.fail_calls("remove_now", Error{Code::kUnavailable, "away"});
  step_after(seconds{2});
  EXPECT_TRUE(api_.find("default", "web"));
  api_.fail_calls("", std::nullopt);
  step_after(minutes{1});
  EXPECT_FALSE(api_.find("default", "web"));
  EXPECT_EQ(api_.count("set_failed default/web"), 2) << "what was reported is not reported again";
}

TEST_F(PodSyncTest, ARejectedPodThatIsDeletedIsRemoved) {
  bring(pod("web"));
  step();
  mark_deleting(pod("web", "Failed"));
  step_after(seconds{1});
  EXPECT_THAT(api_.calls(), ElementsAre("set_failed default/web", "remove_now default/web"));
}

// --- what is not seen is said

class PodSightTest : public PodSyncTest {
 protected:
  // What is logged by a step after that time.
  std::string logged(Duration time) {
    ::testing::internal::CaptureStderr();
    step_after(time);
    return ::testing::internal::GetCapturedStderr();
  }
};

TEST_F(PodSightTest, PodsThatCannotBeReadAreNamedOnce) {
  watch_.leave_out({"d/huge", "d/odd"});
  EXPECT_THAT(logged({}), AllOf(HasSubstr("pod d/huge"), HasSubstr("pod d/odd")));
  EXPECT_EQ(sync_.unreadable(), 2U);
  EXPECT_EQ(logged(minutes{5}), "");
  watch_.leave_out({"d/huge", "d/new"});
  EXPECT_THAT(logged(minutes{5}), AllOf(HasSubstr("pod d/new"), Not(HasSubstr("d/huge"))));
  watch_.leave_out({});
  EXPECT_THAT(logged(minutes{5}), HasSubstr("can be read again"));
  EXPECT_EQ(sync_.unreadable(), 0U);
}

TEST_F(PodSightTest, AWatchThatStaysAwayIsSaidOnceAndItsReturnToo) {
  EXPECT_TRUE(sync_.sees());
  watch_.fail(Error{Code::kDenied, "LIST /api/v1/pods: 403 Forbidden"});
  EXPECT_EQ(logged({}), "");
  EXPECT_FALSE(sync_.sees());
  EXPECT_EQ(logged(seconds{14}), "") << "it may be over in a moment";
  EXPECT_THAT(
      logged(seconds{1}),
      HasSubstr("cannot watch the pods bound to this node: LIST /api/v1/pods: 403 Forbidden"));
  EXPECT_EQ(logged(minutes{5}), "");
  watch_.fail(std::nullopt);
  EXPECT_THAT(logged(seconds{1}), HasSubstr("bound to this node again"));
  EXPECT_TRUE(sync_.sees());
}

TEST_F(PodSightTest, AShortAbsenceIsNotSaid) {
  for (int i = 0; i < 3; ++i) {
    watch_.fail(Error{Code::kGone, "410"});
    EXPECT_EQ(logged(seconds{10}), "");
    watch_.fail(std::nullopt);
    EXPECT_EQ(logged(seconds{10}), "");
  }
}

TEST_F(PodSyncTest, AFailedCallIsRetriedUntilItIsDone) {
  for (const Code code : {Code::kUnavailable, Code::kTimeout, Code::kDenied, Code::kInternal,
                          Code::kInvalid, Code::kConflict}) {
    const std::string name = std::string{"web-"} + std::to_string(static_cast<int>(code));
    api_.fail_next(Error{code, "no"}, 3);
    bring(pod(name));
    api_.clear_calls();
    const auto start = clock_.now().steady;
    SteadyTime next = step();
    EXPECT_EQ(next, start + seconds{2}) << static_cast<int>(code);
    EXPECT_EQ(sync_.waiting(), 1U);
    EXPECT_EQ(step(), next);  // not before
    EXPECT_EQ(api_.calls().size(), 1U);
    for (int tries = 0; tries < 3; ++tries) {
      next = step_after(next - clock_.now().steady);
    }
    EXPECT_EQ(api_.find("default", name)->phase, "Failed") << static_cast<int>(code);
    EXPECT_EQ(sync_.waiting(), 0U);
    EXPECT_EQ(next, kNever);
  }
}

TEST_F(PodSyncTest, ASilentApiServerHoldsUpATurnOnceAndNotForEachPod) {
  for (int i = 0; i < 5; ++i) {
    bring(pod("silent-" + std::to_string(i)));
  }
  api_.fail_always(Error{Code::kTimeout, "PATCH pod: no answer in time"});
  EXPECT_LE(step(), clock_.now().steady) << "the others are due, after the other loops' turn";
  EXPECT_EQ(api_.calls().size(), 1U);
  step();
  EXPECT_EQ(api_.calls().size(), 2U);
  api_.fail_always(std::nullopt);
  clock_.advance(minutes{1});
  settle();
  EXPECT_EQ(failed().size(), 5U);
}

// It asked once, and means all of them.
TEST_F(PodSyncTest, APauseThatTheApiServerAsksForIsKeptForAllPods) {
  for (int i = 0; i < 5; ++i) {
    bring(pod("busy-" + std::to_string(i)));
  }
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  const SteadyTime next = step();
  EXPECT_GE(next, clock_.now().steady + seconds{40});
  EXPECT_LE(next, clock_.now().steady + seconds{50});
  step_after(seconds{39});
  EXPECT_EQ(api_.calls().size(), 1U);
  clock_.advance(seconds{14});
  settle();
  EXPECT_EQ(failed().size(), 5U);
}

// A webhook that answers for one pod with a Status of its own.
TEST_F(PodSyncTest, APodThatAlwaysFailsHoldsUpNoOther) {
  for (int i = 0; i < 3; ++i) {
    bring(pod("web-" + std::to_string(i)));
  }
  api_.fail_calls("set_failed default/web-0", Error{Code::kUnavailable, "429", seconds{20}});
  for (int turns = 0; turns < 20; ++turns) {
    clock_.advance(std::max<Duration>(step() - clock_.now().steady, seconds{0}));
  }
  EXPECT_EQ(failed().size(), 2U);
}

// A webhook or a quota that answers 429 for a whole namespace, with and without a pause of its own.
TEST_F(PodSyncTest, PodsOfANamespaceThatAlwaysFailHoldUpNoOther) {
  for (const int asked : {0, 1, 5, 60}) {
    Error error{Code::kUnavailable, "429"};
    if (asked > 0) {
      error.retry_after = seconds{asked};
    }
    api_.fail_calls("set_failed full/", error);
    for (int i = 0; i < 20; ++i) {
      kube::Pod bad = pod(fmt::format("a-{}-{}", asked, i));
      bad.namespace_name = "full";
      bring(bad);
    }
    step();
    const std::size_t before = failed().size();
    bring(pod(fmt::format("z-{}", asked)));
    const SteadyTime began = clock_.now().steady;
    while (failed().size() == before && clock_.now().steady < began + minutes{5}) {
      clock_.advance(std::max<Duration>(step() - clock_.now().steady, milliseconds{1}));
    }
    EXPECT_EQ(failed().size(), before + 1) << asked;
  }
}

// Two in a namespace with others: what has waited longest is tried first.
TEST_F(PodSyncTest, TwoPodsThatAlwaysFailHoldUpNoOtherOfTheirNamespace) {
  for (const char* name : {"bad-1", "bad-2", "good"}) {
    bring(pod(name));
  }
  api_.fail_calls("set_failed default/bad-", Error{Code::kUnavailable, "429", seconds{60}});
  const SteadyTime began = clock_.now().steady;
  while (failed().empty() && clock_.now().steady < began + minutes{5}) {
    clock_.advance(std::max<Duration>(step() - clock_.now().steady, seconds{0}));
  }
  EXPECT_THAT(failed(), ElementsAre("good-uid"));
}

// Ten seconds for each call to a slow API server: the watchdog must not take that for a hang.
TEST_F(PodSyncTest, AStepMakesFewCalls) {
  for (int i = 0; i < 10; ++i) {
    bring(pod("slow-" + std::to_string(i)));
  }
  EXPECT_LE(step(), clock_.now().steady);
  EXPECT_EQ(api_.calls().size(), 4U);
  EXPECT_EQ(settle(), kNever);
  EXPECT_EQ(api_.calls().size(), 10U);
}

TEST_F(PodSyncTest, RetriesAreAtMostHalfAMinuteApart) {
  api_.fail_always(Error{Code::kUnavailable, "away"});
  bring(pod("web"));
  for (int i = 0; i < 30; ++i) {
    const SteadyTime next = step();
    ASSERT_GT(next, clock_.now().steady);
    ASSERT_LE(next, clock_.now().steady + seconds{30});
    clock_.advance(next - clock_.now().steady);
  }
  EXPECT_EQ(api_.calls().size(), 30U);
}

TEST_F(PodSyncTest, APodThatIsGoneIsDoneWith) {
  watch_.feed(Seen::kAdded, {pod("ghost")});
  EXPECT_EQ(step(), kNever);
  EXPECT_EQ(sync_.waiting(), 0U);
  EXPECT_EQ(sync_.rejected(), 0U);
}

// A StatefulSet's next pod has the same name and another uid.
TEST_F(PodSyncTest, TheNextPodOfTheSameNameIsAnotherOne) {
  bring(pod("web-0"));
  step();
  auto next = pod("web-0");
  watch_.feed(Seen::kDeleted, {pod("web-0", "Failed")});
  next.uid = "second-uid";
  bring(next);
  step_after(seconds{1});
  EXPECT_THAT(failed(), ElementsAre("web-0-uid", "second-uid"));
}

TEST_F(PodSyncTest, RetriesEndWhenTheWatchTellsOfTheDeletion) {
  auto other = pod("web-0");
  other.uid = "second-uid";
  api_.put(other);
  watch_.feed(Seen::kAdded, {pod("web-0")});  // already replaced on the server: 422
  EXPECT_NE(step(), kNever);
  watch_.feed(Seen::kDeleted, {pod("web-0")});
  EXPECT_EQ(step_after(milliseconds{10}), kNever);
  EXPECT_EQ(sync_.waiting(), 0U);
}

TEST_F(PodSyncTest, AListForgetsWhatVanishedAndFindsWhatWasMissed) {
  api_.fail_next(Error{Code::kUnavailable, "away"}, 2);
  bring(pod("vanished"));
  bring(pod("kept"));
  step();
  EXPECT_EQ(sync_.waiting(), 2U);
  api_.put(pod("missed"));
  watch_.feed(Seen::kReplaced, {pod("kept"), pod("missed")});
  step_after(seconds{2});
  EXPECT_EQ(sync_.waiting(), 0U);
  EXPECT_THAT(failed(), UnorderedElementsAre("kept-uid", "missed-uid"));
}

TEST_F(PodSyncTest, AListOfWhatIsDoneAlreadyCostsNothing) {
  bring(pod("web"));
  step();
  watch_.feed(Seen::kReplaced, {pod("web", "Failed")});
  EXPECT_EQ(step_after(seconds{1}), kNever);
  EXPECT_EQ(api_.calls().size(), 1U);
}

TEST_F(PodSyncTest, TenReplicasThatComeTogetherAreFailedTogether) {
  for (int i = 0; i < 10; ++i) {
    bring(pod_of("web", "web-" + std::to_string(i)));
  }
  EXPECT_EQ(settle(), kNever);
  EXPECT_EQ(api_.failed().size(), 10U);
}

TEST_F(PodSyncTest, AHotLoopSlowsDown) {
  int made = 0;
  const SteadyTime end = clock_.now().steady + minutes{10};
  bring(pod_of("web", "web-0"));
  while (clock_.now().steady < end) {
    const SteadyTime next = step();
    if (static_cast<int>(api_.failed().size()) > made) {
      // failed: the ReplicaSet makes another one at once
      made = static_cast<int>(api_.failed().size());
      clock_.advance(milliseconds{10});
      bring(pod_of("web", "web-" + std::to_string(made)));
    } else {
      ASSERT_LE(next, clock_.now().steady + seconds{61});
      clock_.advance(std::max<Duration>(next - clock_.now().steady, milliseconds{1}));
    }
  }
  EXPECT_GT(made, 64);
  EXPECT_LT(made, 100);
  EXPECT_EQ(count_events("Node", "PodCreationLoop"), 1);
  EXPECT_EQ(count_events("Node", "PodRejected"), 1);
}

TEST_F(PodSyncTest, AHotLoopDoesNotDelayOthers) {
  for (int i = 0; i < 8; ++i) {
    bring(pod_of("web", "web-" + std::to_string(i)));
    step_after(seconds{2});
  }
  bring(pod_of("web", "web-late"));
  step();
  EXPECT_GT(sync_.waiting(), 0U);
  const auto before = api_.failed().size();
  bring(pod_of("other", "other-0"));
  bring(pod("bare"));
  step();
  EXPECT_EQ(api_.failed().size(), before + 2);
}

TEST_F(PodSyncTest, APodThatWaitsIsRemovedAtOnceWhenItIsDeleted) {
  for (int i = 0; i < 8; ++i) {
    bring(pod_of("web", "web-" + std::to_string(i)));
    step_after(seconds{2});
  }
  bring(pod_of("web", "web-late"));
  ASSERT_GT(step(), clock_.now().steady + seconds{1});
  mark_deleting(pod_of("web", "web-late"));
  step_after(milliseconds{10});
  EXPECT_FALSE(api_.find("default", "web-late"));
}

TEST_F(PodSyncTest, EventsOfOneControllerAreOneOnTheNode) {
  for (int i = 0; i < 12; ++i) {
    bring(pod_of("web", "web-" + std::to_string(i)));
  }
  settle();
  int counted = 0;
  for (const auto& event : events()) {
    if (event.about.kind == "Node") {
      EXPECT_EQ(event.reason, "PodRejected");
      EXPECT_EQ(event.about.name, "n1");
      EXPECT_THAT(event.message,
                  ::testing::HasSubstr("rejected pod default/web-0 (of ReplicaSet web)"));
      counted += event.count;
    }
  }
  EXPECT_EQ(counted, 12);
  EXPECT_EQ(count_events("Node", "PodRejected"), 1);
}

TEST_F(PodSyncTest, BarePodsOfANamespaceAreOneEventOnTheNode) {
  for (int i = 0; i < 12; ++i) {
    bring(pod("bare-" + std::to_string(i)));
  }
  auto other = pod("other");
  other.namespace_name = "other";
  bring(other);
  settle();
  EXPECT_EQ(count_events("Node", "PodRejected"), 2);
}

TEST_F(PodSyncTest, AStormOfPodsDelaysNoNewsOfTheNode) {
  for (int i = 0; i < 300; ++i) {
    bring(pod_of("forged-" + std::to_string(i), "pod-" + std::to_string(i)));
  }
  settle();
  while (event_sink_.step(clock_.now()) <= clock_.now().steady) {
  }
  for (int i = 0; i < 10; ++i) {
    event_sink_.emit({"Node", "", "n1", "n1"}, false, "SlurmDrained", "words", std::to_string(i),
                     clock_.now());
  }
  while (event_sink_.step(clock_.now()) <= clock_.now().steady) {
  }
  EXPECT_EQ(count_events("Node", "SlurmDrained"), 10);
}

TEST_F(PodSyncTest, TheOwnerOfAPodReadsWhyOnThePod) {
  bring(pod("web"));
  step();
  bool found = false;
  for (const auto& event : events()) {
    if (event.about.kind == "Pod") {
      found = true;
      EXPECT_EQ(event.namespace_name, "default");
      EXPECT_EQ(event.about.name, "web");
      EXPECT_EQ(event.about.uid, "web-uid");
      EXPECT_EQ(event.reason, "SlurmNodeNoPods");
      EXPECT_EQ(event.type, "Warning");
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(PodSyncTest, AFailedRejectionIsNoEvent) {
  api_.fail_next(Error{Code::kUnavailable, "away"});
  bring(pod("web"));
  step();
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_EQ(sync_.rejected(), 0U);
}

TEST_F(PodSyncTest, WakesForTheWatch) {
  watch_.set_wake(clock_.now().steady + seconds{20});
  EXPECT_EQ(step(), clock_.now().steady + seconds{20});
}

// kubectl debug adds a container to a pod that has failed long ago, and waits for it.
TEST_F(PodSyncTest, AContainerAddedToAFailedPodIsSaidToHaveEnded) {
  kube::Pod web = pod("web", "Failed");
  bring(web);
  step();
  EXPECT_THAT(failed(), IsEmpty());
  web.ephemeral_containers.push_back({"debugger", "j", false});
  api_.put(web);
  watch_.feed(Seen::kModified, {web});
  step();
  EXPECT_THAT(failed(), ElementsAre("web-uid"));
  EXPECT_EQ(sync_.rejected(), 0U);
  web.ephemeral_containers.back().has_ended = true;
  watch_.feed(Seen::kModified, {web});
  step();
  EXPECT_THAT(failed(), ElementsAre("web-uid"));
}

}  // namespace
}  // namespace slurmlet::sync
