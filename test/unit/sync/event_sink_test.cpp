#include "sync/event_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class EventSinkTest : public ::testing::Test {
 protected:
  void emit(const std::string& key, const std::string& message = "words") {
    sink_.emit({"Node", "", "n1", "n1"}, true, "SlurmDrained", message, key, clock_.now());
  }
  SteadyTime step() { return sink_.step(clock_.now()); }
  // Steps as the loop does, until none is due at once.
  SteadyTime settle() {
    SteadyTime next = step();
    while (next <= clock_.now().steady) {
      next = step();
    }
    return next;
  }
  // Goes on until nothing is left to send or `limit` is over.
  void run(Duration limit) {
    const SteadyTime end = clock_.now().steady + limit;
    SteadyTime next = step();
    while (next <= end) {
      clock_.advance(next - clock_.now().steady);
      next = step();
    }
  }

  fakes::FakeClock clock_;
  fakes::FakeEventApi api_;
  EventSink sink_{api_, "n1.example", [] { return 0.0; }};
};

TEST_F(EventSinkTest, NothingToSendNeedsNoWakeUp) {
  EXPECT_EQ(step(), kNever);
  EXPECT_TRUE(api_.calls().empty());
}

TEST_F(EventSinkTest, SendsWhatHappened) {
  sink_.emit({"Pod", "default", "web-0", "pod-uid"}, false, "Because", "words", "k", clock_.now());
  EXPECT_EQ(step(), kNever);
  ASSERT_EQ(api_.events().size(), 1U);
  const kube::Event event = api_.events().front();
  EXPECT_EQ(event.namespace_name, "default");
  EXPECT_TRUE(event.name.starts_with("web-0."));
  EXPECT_EQ(event.type, "Normal");
  EXPECT_EQ(event.reason, "Because");
  EXPECT_EQ(event.message, "words");
  EXPECT_EQ(event.about.kind, "Pod");
  EXPECT_EQ(event.about.namespace_name, "default");
  EXPECT_EQ(event.about.name, "web-0");
  EXPECT_EQ(event.about.uid, "pod-uid");
  EXPECT_EQ(event.source_component, "slurmlet");
  EXPECT_EQ(event.source_host, "n1.example");
  EXPECT_EQ(event.count, 1);
  EXPECT_EQ(event.first_seen, clock_.now().wall);
  EXPECT_EQ(event.last_seen, clock_.now().wall);
}

TEST_F(EventSinkTest, WhereAllNodesMaySendAtOnceEachHasItsDelay) {
  sink_.set_delay(seconds{7});
  emit("a");
  EXPECT_EQ(step(), clock_.now().steady + seconds{7});
  EXPECT_TRUE(api_.calls().empty());
  clock_.advance(seconds{7});
  EXPECT_EQ(step(), kNever);
  EXPECT_EQ(api_.events().size(), 1U);
}

TEST_F(EventSinkTest, AtTheEndWhatWaitsIsSent) {
  sink_.set_delay(seconds{7});
  emit("a");
  step();
  sink_.flush(clock_.now());
  EXPECT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(step(), kNever);
}

TEST_F(EventSinkTest, AnEventAboutANodeIsInNamespaceDefault) {
  emit("k");
  step();
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.events().front().namespace_name, "default");
  EXPECT_EQ(api_.events().front().about.namespace_name, "");
  EXPECT_EQ(api_.events().front().type, "Warning");
}

TEST_F(EventSinkTest, TheSameNewsBeforeSendingIsOneEvent) {
  for (int i = 0; i < 14; ++i) {
    emit("rs", "pod " + std::to_string(i));
  }
  emit("other");
  step();
  ASSERT_EQ(api_.events().size(), 2U);
  const auto events = api_.events();
  const auto& counted = events[0].count == 14 ? events[0] : events[1];
  EXPECT_EQ(counted.count, 14);
  EXPECT_EQ(counted.message, "pod 0");
}

TEST_F(EventSinkTest, DifferentNewsHaveDifferentNames) {
  emit("a");
  emit("b");
  step();
  ASSERT_EQ(api_.events().size(), 2U);
  EXPECT_NE(api_.events()[0].name, api_.events()[1].name);
}

TEST_F(EventSinkTest, ARepeatRaisesTheCountAtMostOnceAMinute) {
  emit("rs");
  step();
  const WallTime first = clock_.now().wall;
  for (int i = 0; i < 30; ++i) {
    clock_.advance(seconds{1});
    emit("rs");
    step();
  }
  EXPECT_EQ(api_.calls().size(), 1U);
  const SteadyTime due = step();
  EXPECT_EQ(due, clock_.now().steady + seconds{31});  // a minute after the first repeat
  clock_.advance(seconds{31});
  EXPECT_EQ(step(), kNever);
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.calls().size(), 2U);
  EXPECT_EQ(api_.events().front().count, 31);
  EXPECT_EQ(api_.events().front().first_seen, first);
  EXPECT_EQ(api_.events().front().last_seen, first + seconds{30});
}

TEST_F(EventSinkTest, AnHourOfRepeatsIsAboutACallAMinute) {
  for (int i = 0; i < 3600; ++i) {
    emit("rs");
    step();
    clock_.advance(seconds{1});
  }
  EXPECT_LE(api_.calls().size(), 61U);
  EXPECT_GE(api_.calls().size(), 55U);
}

TEST_F(EventSinkTest, NewsAfterALongSilenceIsNewAgain) {
  emit("rs");
  step();
  clock_.advance(minutes{11});
  step();
  emit("rs");
  step();
  EXPECT_EQ(api_.events().size(), 2U);
  EXPECT_EQ(api_.events().back().count, 1);
}

TEST_F(EventSinkTest, AStormCostsTheBurstAndThenOneInTenSeconds) {
  for (int i = 0; i < 100; ++i) {
    emit(std::to_string(i));
  }
  EXPECT_EQ(step(), clock_.now().steady);
  EXPECT_EQ(api_.calls().size(), 4U) << "a step makes few calls";
  const SteadyTime next = settle();
  EXPECT_EQ(api_.calls().size(), 25U);
  EXPECT_EQ(next, clock_.now().steady + seconds{10});
  run(minutes{5});
  EXPECT_GE(api_.calls().size(), 25U + 29U);
  EXPECT_LE(api_.calls().size(), 25U + 31U);
  run(hours{1});
  EXPECT_EQ(api_.events().size(), 100U);  // late, but none is lost
  EXPECT_EQ(sink_.dropped(), 0U);
}

TEST_F(EventSinkTest, AStormOfPodsDelaysNoNewsOfTheNode) {
  for (int i = 0; i < 300; ++i) {
    sink_.emit({"Pod", "default", "web-" + std::to_string(i), "uid"}, true, "SlurmNodeNoPods",
               "words", std::to_string(i), clock_.now());
  }
  run(minutes{5});
  const auto before = api_.calls().size();
  EXPECT_LE(before, 15U + 31U);
  for (int i = 0; i < 10; ++i) {
    emit(std::to_string(i));
  }
  settle();
  const auto events = api_.events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const auto& event) { return event.about.kind == "Node"; }),
            10);
}

TEST_F(EventSinkTest, WhatIsRememberedIsBounded) {
  for (int i = 0; i < 300; ++i) {
    emit(std::to_string(i));
  }
  EXPECT_EQ(sink_.dropped(), 300U - 256U);
}

TEST_F(EventSinkTest, LongTextIsCut) {
  const std::string megabyte(1 << 20, 'x');
  emit(megabyte + "a", megabyte);
  emit(megabyte + "b", megabyte);
  step();
  ASSERT_EQ(api_.events().size(), 1U) << "a key counts by its beginning";
  EXPECT_EQ(api_.events().front().message.size(), 1024U);
}

TEST_F(EventSinkTest, AnExpiredEventIsMadeAgain) {
  emit("rs");
  step();
  api_.expire_all();
  clock_.advance(minutes{2});
  emit("rs");
  run(minutes{2});
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.events().front().count, 2);
  EXPECT_EQ(sink_.dropped(), 0U);
}

TEST_F(EventSinkTest, AnApiServerThatIsAwayGetsItLater) {
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    api_.fail_always(Error{code, "away"});
    emit(std::to_string(static_cast<int>(code)));
    const SteadyTime next = step();
    EXPECT_EQ(next, clock_.now().steady + seconds{10});
    clock_.advance(seconds{5});
    step();  // too early
    api_.fail_always(std::nullopt);
    run(minutes{1});
  }
  EXPECT_EQ(api_.events().size(), 2U);
  EXPECT_EQ(sink_.dropped(), 0U);
}

// As a signal ends a call that is under way.
TEST_F(EventSinkTest, ACancelledCallLosesNothing) {
  api_.fail_always(Error{Code::kCancelled, "cancelled"});
  emit("a");
  emit("b");
  step();
  EXPECT_EQ(api_.calls().size(), 1U) << "nor is the next one tried";
  api_.fail_always(std::nullopt);
  step();
  EXPECT_EQ(api_.events().size(), 2U);
  EXPECT_EQ(sink_.dropped(), 0U);
}

TEST_F(EventSinkTest, AnApiServerThatIsAwayIsAskedForOneEventOnly) {
  api_.fail_always(Error{Code::kUnavailable, "away"});
  for (int i = 0; i < 10; ++i) {
    emit(std::to_string(i));
  }
  step();
  EXPECT_EQ(api_.calls().size(), 1U);
  clock_.advance(seconds{5});
  step();
  EXPECT_EQ(api_.calls().size(), 1U) << "nor is it asked for another one before it is time";
}

TEST_F(EventSinkTest, APauseThatTheApiServerAsksForIsKept) {
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  emit("a");
  emit("b");
  EXPECT_EQ(step(), clock_.now().steady + seconds{40});
  clock_.advance(seconds{39});
  step();
  EXPECT_EQ(api_.calls().size(), 1U);
  run(minutes{1});
  EXPECT_EQ(api_.events().size(), 2U);
}

// EventRateLimit for one namespace, say.
TEST_F(EventSinkTest, AnEventThatAlwaysFailsHoldsUpNoOther) {
  api_.fail_calls("create a-first", Error{Code::kUnavailable, "429 Too Many Requests"});
  sink_.emit({"Node", "", "a-first", "a"}, true, "R", "m", "k", clock_.now());
  sink_.emit({"Node", "", "b", "b"}, true, "R", "m", "k", clock_.now());
  sink_.emit({"Node", "", "c", "c"}, true, "R", "m", "k", clock_.now());
  run(minutes{5});
  EXPECT_EQ(api_.events().size(), 2U);
}

TEST_F(EventSinkTest, EventsOfANamespaceThatAlwaysFailHoldUpNoOther) {
  api_.fail_calls("create full", Error{Code::kUnavailable, "429 Too Many Requests"});
  for (int i = 0; i < 6; ++i) {
    const std::string name = "full-" + std::to_string(i);
    sink_.emit({"Node", "full", name, name}, true, "R", "m", "k", clock_.now());
  }
  step();
  sink_.emit({"Node", "", "z", "z"}, true, "R", "m", "k", clock_.now());
  run(minutes{5});
  EXPECT_EQ(api_.events().size(), 1U);
}

TEST_F(EventSinkTest, RetriesAreSpread) {
  EventSink late{api_, "n2", [] { return 0.5; }};
  api_.fail_always(Error{Code::kUnavailable, "away"});
  late.emit({"Node", "", "n2", "n2"}, true, "R", "m", "k", clock_.now());
  EXPECT_EQ(late.step(clock_.now()), clock_.now().steady + seconds{15});
}

TEST_F(EventSinkTest, ARefusedEventIsDroppedAndCounted) {
  api_.fail_next(Error{Code::kDenied, "403"});
  emit("rs");
  EXPECT_EQ(step(), kNever);
  EXPECT_EQ(sink_.dropped(), 1U);
  EXPECT_TRUE(api_.events().empty());
  emit("rs");  // the next of its kind tries again
  step();
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.events().front().count, 2);
}

// The answer to a create got lost: the Event is there when it is sent again.
TEST_F(EventSinkTest, AnEventThatExistsAlreadyIsUpdated) {
  emit("rs");
  step();
  const kube::Event stored = api_.events().front();
  EventSink again{api_, "n1.example", [] { return 0.0; }};
  again.emit({"Node", "", "n1", "n1"}, true, "SlurmDrained", "words", "rs", clock_.now());
  again.emit({"Node", "", "n1", "n1"}, true, "SlurmDrained", "words", "rs", clock_.now());
  EXPECT_EQ(again.step(clock_.now()), kNever);  // same time and number: the same name
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.events().front().name, stored.name);
  EXPECT_EQ(api_.events().front().count, 2);
  EXPECT_EQ(again.dropped(), 0U);
}

}  // namespace
}  // namespace slurmlet::sync
