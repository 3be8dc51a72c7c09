#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "http/client_fixture.h"

namespace slurmlet::http {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

Endpoint nowhere() {
  return {.url = "https://127.0.0.1:1", .proxy = "", .server_name = "", .user_agent = ""};
}

TEST(ClientWait, EndsAtItsTime) {
  const auto client = make_client(nowhere());
  const SteadyTime start = steady_now();
  EXPECT_THAT(client->wait(start + 100ms, {}), IsEmpty());
  EXPECT_GE(steady_now() - start, 100ms);
  EXPECT_LT(steady_now() - start, 10s);
  EXPECT_THAT(client->wait(SteadyTime::min(), {}), IsEmpty());
}

TEST(ClientWait, ReturnsTheReadableDescriptors) {
  const auto client = make_client(nowhere());
  const UniqueFd quiet{::eventfd(0, EFD_CLOEXEC)};
  const UniqueFd ready{::eventfd(1, EFD_CLOEXEC)};
  EXPECT_THAT(client->wait(kNever, {quiet.get(), ready.get()}), ElementsAre(ready.get()));
  // Also when the time has passed already.
  EXPECT_THAT(client->wait(steady_now(), {ready.get(), quiet.get()}), ElementsAre(ready.get()));
}

TEST(ClientWait, ReturnsAPipeWhoseWriterHasGone) {
  const auto client = make_client(nowhere());
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader{ends[0]};
  ::close(ends[1]);
  EXPECT_THAT(client->wait(steady_now() + 10s, {reader.get()}), ElementsAre(reader.get()));
}

TEST(ClientWait, IsInterruptedFromAnotherThread) {
  const auto client = make_client(nowhere());
  std::thread other{[&] { client->interrupt(); }};
  EXPECT_THAT(client->wait(kNever, {}), IsEmpty());
  other.join();
}

TEST(ClientWait, TellsTheEndOfAStreamOnce) {
  const auto client = make_client(nowhere());
  const auto stream = client->open_stream(get("/watch"));
  while (!stream->ended()) {
    (void)client->wait(kNever, {});
  }
  EXPECT_EQ(stream->error()->code, Code::kUnavailable);
  const SteadyTime start = steady_now();
  (void)client->wait(start + 50ms, {});  // the dead stream does not make us spin
  EXPECT_GE(steady_now() - start, 50ms);
}

TEST(ClientWait, TellsOfAStreamThatCouldNotStart) {
  const auto client = make_client(nowhere(), [] { return "bad token"; });
  const auto stream = client->open_stream(get("/watch"));
  (void)client->wait(kNever, {});
  EXPECT_TRUE(stream->ended());
}

// A reader that is not stepped for a while must not make the loop turn and turn.
TEST(ClientWait, TellsOfAPieceOfTheBodyOnceWhetherItIsTakenOrNot) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      exchange.start_chunked(200);
                      exchange.chunk("event");
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/watch"));
  int told = 0;  // of the status and of the body, together or one after the other
  const SteadyTime start = steady_now();
  for (; stream->status() == 0 && steady_now() < start + 10s; ++told) {
    (void)client->wait(start + 10s, {});
  }
  for (const SteadyTime end = steady_now() + 1s; steady_now() < end; ++told) {
    (void)client->wait(end, {});
  }
  EXPECT_GE(told, 2);
  EXPECT_LE(told, 4);
  EXPECT_EQ(stream->take(), "event");
}

long context_switches() {
  const auto status = read_file("/proc/thread-self/status");
  for (const auto line : split(*status, '\n')) {
    constexpr std::string_view kField = "voluntary_ctxt_switches:";
    if (line.starts_with(kField)) {
      return parse_int<long>(trim(line.substr(kField.size()))).value_or(-1);
    }
  }
  return -1;
}

TEST(ClientWait, SleepsWithoutWakeUpsBesideAnIdleStreamAndConnection) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      if (exchange.request().path == "/call") {
                        exchange.respond(200, "");
                        return;
                      }
                      exchange.start_chunked(200);
                      exchange.chunk("event");
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(get("/watch", 20s));
  while (stream->take().empty()) {
    ASSERT_FALSE(stream->ended());
    (void)client->wait(kNever, {});
  }
  ASSERT_TRUE(client->call(get("/call")));
  (void)client->wait(steady_now() + 1ms, {});
  const UniqueFd quiet{::eventfd(0, EFD_CLOEXEC)};
  const long before = context_switches();
  ASSERT_GE(before, 0);
  const SteadyTime until = steady_now() + 1500ms;
  (void)client->wait(until, {quiet.get()});
  EXPECT_GE(steady_now(), until);
  EXPECT_LE(context_switches() - before, 3);
}

}  // namespace
}  // namespace slurmlet::http
