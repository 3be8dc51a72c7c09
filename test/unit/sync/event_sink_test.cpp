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
  void emit_about(const std::string& name, const std::string& namespace_name = "") {
    sink_.emit({"Node", namespace_name, name, name}, true, "R", "m", "k", clock_.now());
  }
  void emit_many(int count) {
    for (int i = 0; i < count; ++i) {
      emit(std::to_string(i));
    }
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

TEST_F(EventSinkTest, SendsWhatHappened) {
  EXPECT_EQ(step(), kNever);
  sink_.emit({"Pod", "apps", "web-0", "pod-uid"}, false, "Because", "words", "k", clock_.now());
  EXPECT_EQ(step(), kNever);
  ASSERT_EQ(api_.events().size(), 1U);
  kube::Event event = api_.events().front();
  EXPECT_EQ(event.namespace_name, "apps");
  EXPECT_TRUE(event.name.starts_with("web-0."));
  EXPECT_EQ(event.type, "Normal");
  EXPECT_EQ(event.reason, "Because");
  EXPECT_EQ(event.message, "words");
  EXPECT_EQ(event.about.kind, "Pod");
  EXPECT_EQ(event.about.namespace_name, "apps");
  EXPECT_EQ(event.about.name, "web-0");
  EXPECT_EQ(event.about.uid, "pod-uid");
  EXPECT_EQ(event.source_component, "slurmlet");
  EXPECT_EQ(event.source_host, "n1.example");
  EXPECT_EQ(event.count, 1);
  EXPECT_EQ(event.first_seen, clock_.now().wall);
  EXPECT_EQ(event.last_seen, clock_.now().wall);
  emit("k");
  step();
  event = api_.events().back();
  EXPECT_EQ(event.namespace_name, "default") << "an Event about a Node must be somewhere";
  EXPECT_EQ(event.about.namespace_name, "");
  EXPECT_EQ(event.type, "Warning");
}

TEST_F(EventSinkTest, WhereAllNodesMaySendAtOnceEachHasItsDelayButAtTheEnd) {
  sink_.set_delay(seconds{7});
  emit("a");
  EXPECT_EQ(step(), clock_.now().steady + seconds{7});
  EXPECT_EQ(api_.writes(), 0);
  clock_.advance(seconds{7});
  EXPECT_EQ(step(), kNever);
  EXPECT_EQ(api_.events().size(), 1U);
  emit("b");
  step();
  sink_.flush(clock_.now());
  EXPECT_EQ(api_.events().size(), 2U);
  EXPECT_EQ(step(), kNever);
}

TEST_F(EventSinkTest, TheSameNewsBeforeSendingIsOneEvent) {
  for (int i = 0; i < 14; ++i) {
    emit("rs", "pod " + std::to_string(i));
  }
  emit("other");
  step();
  const auto events = api_.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_NE(events[0].name, events[1].name);
  const auto& counted = events[0].count == 14 ? events[0] : events[1];
  EXPECT_EQ(counted.count, 14);
  EXPECT_EQ(counted.message, "pod 0");
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
  EXPECT_EQ(api_.writes(), 1);
  run(minutes{1});
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.writes(), 2);
  EXPECT_EQ(api_.events().front().count, 31);
  EXPECT_EQ(api_.events().front().first_seen, first);
  EXPECT_EQ(api_.events().front().last_seen, first + seconds{30});
  api_.clear_calls();
  for (int i = 0; i < 3600; ++i) {
    emit("rs");
    step();
    clock_.advance(seconds{1});
  }
  EXPECT_LE(api_.writes(), 61) << "an hour of them";
  EXPECT_GE(api_.writes(), 55);
}

TEST_F(EventSinkTest, AnExpiredEventIsMadeAgainAndNewsAfterALongSilenceIsNew) {
  emit("rs");
  step();
  api_.expire_all();
  clock_.advance(minutes{2});
  emit("rs");
  run(minutes{2});
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.events().front().count, 2);
  EXPECT_EQ(sink_.dropped(), 0U);
  clock_.advance(minutes{11});
  step();
  emit("rs");
  step();
  EXPECT_EQ(api_.events().size(), 2U);
  EXPECT_EQ(api_.events().back().count, 1);
}

TEST_F(EventSinkTest, AStormCostsTheBurstAndThenOneInTenSeconds) {
  emit_many(100);
  EXPECT_EQ(step(), clock_.now().steady);
  EXPECT_LE(api_.writes(), 4) << "a step makes few calls";
  settle();
  const int burst = api_.writes();
  EXPECT_LE(burst, 30);
  run(minutes{5});
  EXPECT_GE(api_.writes(), burst + 29);
  EXPECT_LE(api_.writes(), burst + 31);
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
  EXPECT_LE(api_.writes(), 60);
  emit_many(10);
  settle();
  const auto events = api_.events();
  EXPECT_EQ(std::ranges::count(events, "Node", [](const auto& one) { return one.about.kind; }), 10);
}

TEST_F(EventSinkTest, WhatIsRememberedIsBounded) {
  emit_many(1000);
  EXPECT_GT(sink_.dropped(), 500U);
  EXPECT_LT(sink_.dropped(), 1000U);
}

TEST_F(EventSinkTest, LongTextIsCut) {
  const std::string megabyte(1 << 20, 'x');
  emit(megabyte + "a", megabyte);
  emit(megabyte + "b", megabyte);
  step();
  ASSERT_EQ(api_.events().size(), 1U) << "a key counts by its beginning";
  EXPECT_EQ(api_.events().front().message.size(), 1024U);
}

TEST_F(EventSinkTest, AnApiServerThatIsAwayGetsItLaterAndIsAskedForOneOnly) {
  for (const Code code : {Code::kUnavailable, Code::kTimeout}) {
    api_.fail_always(Error{code, "away"});
    api_.clear_calls();
    emit(std::to_string(static_cast<int>(code)));
    emit(std::to_string(static_cast<int>(code)) + "b");
    const SteadyTime next = step();
    EXPECT_GE(next, clock_.now().steady + seconds{5});
    EXPECT_LE(next, clock_.now().steady + seconds{20});
    clock_.advance(seconds{4});
    step();  // too early
    EXPECT_EQ(api_.writes(), 1);
    api_.fail_always(std::nullopt);
    run(minutes{1});
  }
  EXPECT_EQ(api_.events().size(), 4U);
  EXPECT_EQ(sink_.dropped(), 0U);
}

TEST_F(EventSinkTest, ACancelledCallLosesNothing) {
  api_.fail_always(Error{Code::kCancelled, "cancelled"});
  emit_many(2);
  step();
  EXPECT_EQ(api_.writes(), 1) << "nor is the next one tried";
  api_.fail_always(std::nullopt);
  step();
  EXPECT_EQ(api_.events().size(), 2U);
  EXPECT_EQ(sink_.dropped(), 0U);
}

TEST_F(EventSinkTest, APauseThatTheApiServerAsksForIsKept) {
  api_.fail_next(Error{Code::kUnavailable, "429 Too Many Requests", seconds{40}});
  emit_many(2);
  EXPECT_GE(step(), clock_.now().steady + seconds{40});
  clock_.advance(seconds{39});
  step();
  EXPECT_EQ(api_.writes(), 1);
  run(minutes{1});
  EXPECT_EQ(api_.events().size(), 2U);
}

// EventRateLimit for one namespace, say.
TEST_F(EventSinkTest, EventsThatAlwaysFailHoldUpNoOther) {
  api_.fail_calls("create full", Error{Code::kUnavailable, "429 Too Many Requests"});
  emit_about("full-first");
  emit_about("b");
  for (int i = 0; i < 6; ++i) {
    emit_about("full-" + std::to_string(i), "full");
  }
  step();
  emit_about("c");
  run(minutes{5});
  EXPECT_EQ(api_.events().size(), 2U);
}

TEST_F(EventSinkTest, RetriesAreSpread) {
  EventSink late{api_, "n2", [] { return 0.5; }};
  api_.fail_always(Error{Code::kUnavailable, "away"});
  late.emit({"Node", "", "n2", "n2"}, true, "R", "m", "k", clock_.now());
  emit("k");
  EXPECT_GT(late.step(clock_.now()), step());
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

TEST_F(EventSinkTest, AnEventThatExistsAlreadyIsUpdated) {
  emit("rs");
  step();
  const kube::Event stored = api_.events().front();
  EventSink again{api_, "n1.example", [] { return 0.0; }};
  for (int i = 0; i < 2; ++i) {
    again.emit({"Node", "", "n1", "n1"}, true, "SlurmDrained", "words", "rs", clock_.now());
  }
  EXPECT_EQ(again.step(clock_.now()), kNever);  // same time and number: the same name
  ASSERT_EQ(api_.events().size(), 1U);
  EXPECT_EQ(api_.events().front().name, stored.name);
  EXPECT_EQ(api_.events().front().count, 2);
  EXPECT_EQ(again.dropped(), 0U);
}

}  // namespace
}  // namespace slurmlet::sync
