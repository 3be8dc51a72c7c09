// Connections that go silent without being closed: what one client of a server learns, all use.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "http/watch_server.h"

namespace slurmlet::http {
namespace silence_test {

using namespace std::chrono_literals;

const SteadyTime kStart{1h};

TEST(Silence, WhatWasOpenBeforeAnUnansweredCallIsSuspectOnceALaterOneIsAnswered) {
  Silence silence;
  int woken = 0;
  silence.join(&woken, [&] { ++woken; });
  silence.answered(kStart);
  EXPECT_FALSE(silence.before());
  silence.timed_out(kStart + 10s);
  silence.answered(kStart + 9s);  // it was begun before
  EXPECT_FALSE(silence.before());
  EXPECT_EQ(woken, 0);
  silence.answered(kStart + 23s);
  EXPECT_EQ(silence.before(), kStart + 10s);
  EXPECT_EQ(woken, 1);
  silence.answered(kStart + 33s);
  EXPECT_EQ(woken, 1);
}

// An overloaded server answers none, or one now and then: it is not to get all watches each time.
TEST(Silence, AServerThatAnswersSeldomIsNotCalledOnEachTime) {
  Silence silence;
  int woken = 0;
  silence.join(&woken, [&] { ++woken; });
  for (Duration at{}; at < 1h; at += 20s) {
    silence.timed_out(kStart + at);
    silence.timed_out(kStart + at + 5s);
    silence.answered(kStart + at + 15s);
  }
  EXPECT_LE(woken, 60);
  EXPECT_GE(woken, 40);
  silence.leave(&woken);
  silence.timed_out(kStart + 2h);
  silence.answered(kStart + 3h);
  EXPECT_LE(woken, 60);
  Silence dead;
  for (Duration at{}; at < 1h; at += 20s) {
    dead.timed_out(kStart + at);
  }
  EXPECT_FALSE(dead.before());
}

// Answers all at first. After silence() nothing comes any more over the connections that there are;
// new ones work.
class Forgetful {
 public:
  void silence() { known_ = server_.connections(); }
  TestServer& server() { return server_; }

 private:
  void serve(Exchange& exchange) {
    if (exchange.request().connection <= known_) {
      exchange.wait_for_client_to_close();
    } else {
      respond_or_watch(exchange);
    }
  }

  std::atomic<int> known_ = 0;
  TestServer server_{{pki().server}, [this](Exchange& exchange) { serve(exchange); }};
};

std::shared_ptr<const Credentials> credentials(const TestServer& server) {
  return std::make_shared<const Credentials>(
      Credentials{endpoint_of(server), make_identity(pki().ca.certificate), {}});
}

std::unique_ptr<Client> client_with(const std::shared_ptr<const Credentials>& credentials) {
  auto client = make_curl_client([credentials] { return credentials; });
  EXPECT_TRUE(client);
  return std::move(*client);
}

// As the thread of the Lease and the main thread do.
TEST(Silence, ACallOfAnotherThreadsClientEndsTheStreamThatIsWaitedFor) {
  Forgetful forgetful;
  const auto shared = credentials(forgetful.server());
  const auto watcher = client_with(shared);
  const auto other = client_with(shared);
  ASSERT_TRUE(other->call(get("/lease")));
  const auto stream = open_watch(*watcher);
  ASSERT_TRUE(watcher->call(get("/node")));
  forgetful.silence();
  std::thread thread{[&] {
    const auto lost = other->call(get("/lease", 300ms));
    EXPECT_FALSE(lost);
    EXPECT_TRUE(other->call(get("/lease")));
  }};
  while (!stream->ended()) {
    (void)watcher->wait(steady_now() + 10s, {});
  }
  thread.join();
  ASSERT_TRUE(stream->error());
  EXPECT_EQ(stream->error()->code, Code::kTimeout);
  // Neither the idle connection of before nor the stream's is used again.
  const auto again = watcher->call(get("/node", 5s));
  EXPECT_TRUE(again) << again.error().message;
  const auto fresh = open_watch(*watcher);
  EXPECT_FALSE(fresh->ended());
}

TEST(Silence, AClientsOwnCallEndsItsStreamsAndThoseOfNoOtherServer) {
  Forgetful forgetful;
  TestServer another{{pki().server}, respond_or_watch};
  const auto client = client_with(credentials(forgetful.server()));
  const auto of_another = credentials(another);
  auto sibling = make_sibling(*client, [of_another] { return of_another; });
  ASSERT_TRUE(sibling);
  const auto elsewhere = open_watch(**sibling, *client);
  const auto old = open_watch(*client);
  ASSERT_TRUE(client->call(get("/a")));
  forgetful.silence();
  EXPECT_FALSE(client->call(get("/a", 300ms)));
  EXPECT_FALSE(old->ended()) << "the server may be slow, and the stream as good as before";
  const auto young = open_watch(*client);
  EXPECT_TRUE(client->call(get("/a")));
  EXPECT_TRUE(old->ended());
  EXPECT_FALSE(young->ended());
  EXPECT_FALSE(elsewhere->ended());
}

TEST(Silence, AfterOneCallWithoutAnAnswerTheNextTakesANewConnection) {
  Forgetful forgetful;
  const auto client = client_with(credentials(forgetful.server()));
  {
    // Two connections that are idle then.
    const auto stream = client->open_stream(get("/b"));
    ASSERT_TRUE(client->call(get("/a")));
    while (!stream->ended()) {
      (void)client->wait(steady_now() + 10s, {});
    }
  }
  forgetful.silence();
  EXPECT_FALSE(client->call(get("/a", 300ms)));
  const auto next = client->call(get("/a", 5s));
  EXPECT_TRUE(next) << next.error().message;
}

}  // namespace silence_test
}  // namespace slurmlet::http
