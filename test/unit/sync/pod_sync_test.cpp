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
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
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
  void bring_replicas(const std::string& owner, int count) {
    for (int i = 0; i < count; ++i) {
      bring(pod_of(owner, owner + "-" + std::to_string(i)));
    }
  }
  // A controller that makes new pods as the old ones fail, until one has to wait.
  void bring_hot_loop() {
    for (int i = 0; i < 8; ++i) {
      bring(pod_of("web", "web-" + std::to_string(i)));
      step_after(seconds{2});
    }
    bring(pod_of("web", "web-late"));
    ASSERT_GT(step(), clock_.now().steady + seconds{1});
  }
  void mark_deleting(kube::Pod pod) {
    pod.deleting = true;
    bring(pod);
  }
  // Steps from wake-up to wake-up until so many have failed.
  void run_until_failed(std::size_t count) {
    const SteadyTime began = clock_.now().steady;
    while (failed().size() < count && clock_.now().steady < began + minutes{5}) {
      clock_.advance(std::max<Duration>(step() - clock_.now().steady, milliseconds{1}));
    }
    EXPECT_EQ(failed().size(), count);
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
  // Events about the Node with that reason.
  std::vector<kube::Event> node_events(const std::string& reason) {
    auto out = events();
    std::erase_if(out, [&reason](const kube::Event& event) {
      return event.about.kind != "Node" || event.reason != reason;
    });
    return out;
  }

  fakes::FakeClock clock_;
  fakes::FakePodApi api_;
  fakes::FakeWatch<kube::Pod> watch_;
  fakes::FakeEventApi event_api_;
  EventSink event_sink_{event_api_, "n1", [] { return 0.0; }};
  PodSync sync_{api_, watch_, event_sink_, {"n1", "alps", seconds{60}}, [] { return 1.0; }};
};

TEST_F(PodSyncTest, NoPodsAndFinishedOnesNeedNoCalls) {
  EXPECT_EQ(step(), kNever);
  watch_.feed(Seen::kReplaced, {});
  EXPECT_EQ(step(), kNever);
  bring(pod("a", "Succeeded"));
  bring(pod("b", "Failed"));
  EXPECT_EQ(step(), kNever);
  EXPECT_THAT(api_.calls(), IsEmpty());
}

// One that runs is left over from a kubelet of this name.
TEST_F(PodSyncTest, APodIsFailedAtOnceAndItsOwnerReadsWhy) {
  for (const char* phase : {"Pending", "Running"}) {
    const std::string name = std::string{"web-"} + phase;
    bring(pod(name, phase));
    EXPECT_EQ(step(), kNever);
    EXPECT_EQ(api_.failed().back().uid, name + "-uid");
    EXPECT_EQ(api_.failed().back().reason, "SlurmNodeNoPods");
    EXPECT_THAT(api_.failed().back().message,
                AllOf(HasSubstr("n1"), HasSubstr("cluster \"alps\""), HasSubstr("spec.nodeName")));
    EXPECT_EQ(api_.find("default/" + name)->phase, "Failed");
    EXPECT_THAT(
        events(),
        Contains(AllOf(Field(&kube::Event::namespace_name, "default"),
                       Field(&kube::Event::about, Field(&kube::ObjectRef::uid, name + "-uid")),
                       Field(&kube::Event::reason, "SlurmNodeNoPods"),
                       Field(&kube::Event::type, "Warning"))));
  }
  EXPECT_EQ(sync_.rejected(), 2U);
  EXPECT_EQ(sync_.waiting(), 0U);
}

TEST_F(PodSyncTest, TheClusterNameMayComeLater) {
  sync_.set_cluster("");
  bring(pod("web"));
  step();
  EXPECT_THAT(api_.failed().back().message, Not(HasSubstr("cluster")));
  sync_.set_cluster("jura");
  bring(pod("web2"));
  step();
  EXPECT_THAT(api_.failed().back().message, HasSubstr("cluster \"jura\""));
}

TEST_F(PodSyncTest, TheEchoOfARejectionIsNotRejectedAgain) {
  bring(pod("web"));
  step();
  watch_.feed(Seen::kModified, {pod("web", "Failed")});
  watch_.feed(Seen::kModified, {pod("other", "Failed")});
  step_after(seconds{1});
  watch_.feed(Seen::kReplaced, {pod("web", "Failed")});
  EXPECT_EQ(step_after(seconds{1}), kNever);
  EXPECT_EQ(api_.writes(), 1);
}

TEST_F(PodSyncTest, ADeletingPodFailsAndIsRemoved) {
  for (const char* phase : {"Pending", "Running", "Unknown", ""}) {
    SCOPED_TRACE(phase);
    mark_deleting(pod("web", phase));
    const auto before = api_.failed().size();
    step();
    EXPECT_EQ(api_.failed().size(), before + 1);
    EXPECT_EQ(api_.failed().back().reason, "SlurmNodeNoPods");
    EXPECT_FALSE(api_.find("default/web"));
    watch_.feed(Seen::kDeleted, {pod("web", phase)});
  }
  EXPECT_EQ(sync_.finished(), 4U);
  EXPECT_EQ(sync_.rejected(), 0U);
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(PodSyncTest, ADeletingPodThatHasEndedIsRemoved) {
  for (const char* phase : {"Failed", "Succeeded"}) {
    mark_deleting(pod(std::string{"web-"} + phase, phase));
    step();
    EXPECT_FALSE(api_.find(std::string{"default/web-"} + phase));
  }
  EXPECT_THAT(api_.failed(), IsEmpty());
  EXPECT_EQ(sync_.finished(), 2U);
  bring(pod("rejected"));
  step();
  mark_deleting(pod("rejected", "Failed"));
  step_after(seconds{1});
  EXPECT_FALSE(api_.find("default/rejected"));
  EXPECT_EQ(api_.failed().size(), 1U);
}

TEST_F(PodSyncTest, ADeletingPodIsNotRemovedBeforeItsEndIsReported) {
  api_.fail_calls("set_failed", Error{Code::kUnavailable, "away"});
  mark_deleting(pod("web"));
  EXPECT_GT(step(), clock_.now().steady);
  EXPECT_TRUE(api_.find("default/web"));
  api_.fail_calls("remove_now", Error{Code::kUnavailable, "away"});
  step_after(minutes{1});
  EXPECT_TRUE(api_.find("default/web"));
  api_.fail_calls("", std::nullopt);
  step_after(minutes{1});
  EXPECT_FALSE(api_.find("default/web"));
  EXPECT_EQ(api_.failed().size(), 1U) << "what was reported is not reported again";
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
  EXPECT_THAT(logged({}), AllOf(HasSubstr("d/huge"), HasSubstr("d/odd")));
  EXPECT_EQ(sync_.unreadable(), 2U);
  EXPECT_EQ(logged(minutes{5}), "");
  watch_.leave_out({"d/huge", "d/new"});
  EXPECT_THAT(logged(minutes{5}), AllOf(HasSubstr("d/new"), Not(HasSubstr("d/huge"))));
  watch_.leave_out({});
  EXPECT_NE(logged(minutes{5}), "");
  EXPECT_EQ(sync_.unreadable(), 0U);
}

TEST_F(PodSightTest, AWatchThatStaysAwayIsSaidOnceAndItsReturnToo) {
  EXPECT_TRUE(sync_.sees());
  for (int i = 0; i < 3; ++i) {  // shortly
    watch_.fail(Error{Code::kDenied, "LIST /api/v1/pods: 403 Forbidden"});
    EXPECT_EQ(logged({}), "");
    EXPECT_FALSE(sync_.sees());
    EXPECT_EQ(logged(seconds{10}), "") << "it may be over in a moment";
    watch_.fail(std::nullopt);
    EXPECT_EQ(logged(seconds{10}), "");
  }
  watch_.fail(Error{Code::kDenied, "LIST /api/v1/pods: 403 Forbidden"});
  EXPECT_EQ(logged({}), "");
  EXPECT_THAT(logged(seconds{30}), HasSubstr("403 Forbidden"));
  EXPECT_EQ(logged(minutes{5}), "");
  watch_.fail(std::nullopt);
  EXPECT_NE(logged(seconds{1}), "");
  EXPECT_TRUE(sync_.sees());
}

TEST_F(PodSyncTest, AFailedCallIsRetriedUntilItIsDone) {
  std::size_t rejected = 0;
  for (const Code code : {Code::kUnavailable, Code::kTimeout, Code::kDenied, Code::kInternal,
                          Code::kInvalid, Code::kConflict}) {
    SCOPED_TRACE(static_cast<int>(code));
    const std::string name = std::string{"web-"} + std::to_string(static_cast<int>(code));
    api_.fail_next(Error{code, "no"}, 3);
    bring(pod(name));
    api_.clear_calls();
    SteadyTime next = step();
    EXPECT_GT(next, clock_.now().steady);
    EXPECT_LE(next, clock_.now().steady + seconds{5});
    EXPECT_EQ(sync_.waiting(), 1U);
    EXPECT_THAT(node_events("PodRejected"), SizeIs(rejected > 0 ? 1 : 0)) << "it is not yet";
    EXPECT_EQ(sync_.rejected(), rejected++);
    EXPECT_EQ(step(), next);  // not before
    EXPECT_EQ(api_.writes(), 1);
    for (int tries = 0; tries < 3; ++tries) {
      next = step_after(next - clock_.now().steady);
    }
    EXPECT_EQ(api_.find("default/" + name)->phase, "Failed");
    EXPECT_EQ(sync_.waiting(), 0U);
    EXPECT_EQ(next, kNever);
  }
}

TEST_F(PodSyncTest, ASilentApiServerHoldsUpATurnOnceAndNotForEachPod) {
  bring_replicas("silent", 5);
  api_.fail_always(Error{Code::kTimeout, "PATCH pod: no answer in time"});
  EXPECT_LE(step(), clock_.now().steady) << "the others are due, after the other loops' turn";
  EXPECT_EQ(api_.writes(), 1);
  step();
  EXPECT_EQ(api_.writes(), 2);
  api_.fail_always(std::nullopt);
  clock_.advance(minutes{1});
  settle();
  EXPECT_EQ(failed().size(), 5U);
}

TEST_F(PodSyncTest, APauseThatTheApiServerAsksForIsKeptForAllPods) {
  bring_replicas("busy", 5);
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  const SteadyTime next = step();
  EXPECT_GE(next, clock_.now().steady + seconds{40});
  EXPECT_LE(next, clock_.now().steady + seconds{50});
  step_after(seconds{39});
  EXPECT_EQ(api_.writes(), 1);
  clock_.advance(seconds{14});
  settle();
  EXPECT_EQ(failed().size(), 5U);
}

TEST_F(PodSyncTest, PodsOfANamespaceThatAlwaysFailHoldUpNoOther) {
  for (const int asked : {0, 1, 5, 60}) {
    SCOPED_TRACE(asked);
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
    bring(pod(fmt::format("z-{}", asked)));
    run_until_failed(failed().size() + 1);
  }
}

TEST_F(PodSyncTest, PodsThatAlwaysFailHoldUpNoOtherOfTheirNamespace) {
  for (const char* name : {"bad-1", "bad-2", "good-1", "good-2"}) {
    bring(pod(name));
  }
  api_.fail_calls("set_failed default/bad-", Error{Code::kUnavailable, "429", seconds{60}});
  run_until_failed(2);
  EXPECT_THAT(failed(), UnorderedElementsAre("good-1-uid", "good-2-uid"));
}

TEST_F(PodSyncTest, AStepMakesFewCallsThoughAllFailTogether) {
  bring_replicas("slow", 10);
  EXPECT_LE(step(), clock_.now().steady);
  EXPECT_LE(api_.writes(), 4);
  EXPECT_EQ(settle(), kNever);
  EXPECT_EQ(failed().size(), 10U);
  EXPECT_EQ(api_.writes(), 10);
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
  EXPECT_EQ(api_.writes(), 30);
}

TEST_F(PodSyncTest, APodThatIsGoneIsDoneWith) {
  watch_.feed(Seen::kAdded, {pod("ghost")});
  EXPECT_EQ(step(), kNever);
  EXPECT_EQ(sync_.rejected(), 0U);
  auto other = pod("web-0");
  other.uid = "second-uid";
  api_.put(other);
  watch_.feed(Seen::kAdded, {pod("web-0")});  // already replaced on the server: 422
  EXPECT_NE(step(), kNever);
  watch_.feed(Seen::kDeleted, {pod("web-0")});
  EXPECT_EQ(step_after(milliseconds{10}), kNever);
  EXPECT_EQ(sync_.waiting(), 0U);
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
  EXPECT_EQ(node_events("PodCreationLoop").size(), 1U);
  EXPECT_EQ(node_events("PodRejected").size(), 1U);
}

TEST_F(PodSyncTest, AHotLoopDoesNotDelayOthers) {
  bring_hot_loop();
  EXPECT_GT(sync_.waiting(), 0U);
  const auto before = failed().size();
  bring(pod_of("other", "other-0"));
  bring(pod("bare"));
  step();
  EXPECT_EQ(failed().size(), before + 2);
}

TEST_F(PodSyncTest, APodThatWaitsIsRemovedAtOnceWhenItIsDeleted) {
  bring_hot_loop();
  mark_deleting(pod_of("web", "web-late"));
  step_after(milliseconds{10});
  EXPECT_FALSE(api_.find("default/web-late"));
}

TEST_F(PodSyncTest, EventsOfAControllerOrANamespaceAreOneOnTheNode) {
  bring_replicas("web", 12);
  settle();
  ASSERT_EQ(node_events("PodRejected").size(), 1U);
  const auto event = node_events("PodRejected").front();
  EXPECT_EQ(event.about.name, "n1");
  EXPECT_THAT(event.message, AllOf(HasSubstr("default/web-0"), HasSubstr("ReplicaSet web")));
  EXPECT_EQ(event.count, 12);
  for (int i = 0; i < 12; ++i) {
    bring(pod("bare-" + std::to_string(i)));
  }
  auto other = pod("other");
  other.namespace_name = "other";
  bring(other);
  settle();
  EXPECT_EQ(node_events("PodRejected").size(), 3U);
}

TEST_F(PodSyncTest, AStormOfPodsDelaysNoNewsOfTheNode) {
  for (int i = 0; i < 300; ++i) {
    bring(pod_of("forged-" + std::to_string(i), "pod-" + std::to_string(i)));
  }
  settle();
  events();
  for (int i = 0; i < 10; ++i) {
    event_sink_.emit({"Node", "", "n1", "n1"}, false, "SlurmDrained", "words", std::to_string(i),
                     clock_.now());
  }
  EXPECT_EQ(node_events("SlurmDrained").size(), 10U);
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
