#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "podapi/routes.h"
#include "podapi/server.h"
#include "podapi/server_rig.h"

namespace slurmlet::podapi {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string exchange(Server& server, const std::string& method, const std::string& path) {
  TestClient client{server.port()};
  client.send(method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const fakes::FakeClock clock;
  for (int i = 0; i < 1000 && !client.ended; ++i) {
    client.turn();
    server.step(clock.now());
    pollfd waiting[2]{{server.fd(), POLLIN, 0}, {client.fd(), POLLIN, 0}};
    ::poll(waiting, 2, 1000);
  }
  return client.received;
}

TEST(Pages, AnswersFromAFreshSnapshotEachTime) {
  bool ok = true;
  Pages handler{[&](const RequestHead& head) {
    return handle({head.method, head.path}, {"n1", {{"loop", ok, "stuck"}}, {}});
  }};
  Server server{Rig::prepare({}), handler};
  ASSERT_TRUE(server.start());
  EXPECT_THAT(exchange(server, "GET", "/healthz"), EndsWith("\r\n\r\nok"));
  EXPECT_THAT(exchange(server, "GET", "/readyz?verbose"), EndsWith("\r\n\r\nok"));
  ok = false;
  EXPECT_THAT(exchange(server, "GET", "/readyz"), StartsWith("HTTP/1.1 503 "));
}

TEST(Pages, StatusIsMadeOnlyOnRequest) {
  int made = 0;
  const auto status = [&] { return "{\"made\":" + std::to_string(++made) + "}"; };
  Pages handler{[&](const RequestHead& head) {
    return handle({head.method, head.path}, {"n1", {}, {}, status});
  }};
  Server server{Rig::prepare({}), handler};
  ASSERT_TRUE(server.start());
  EXPECT_THAT(exchange(server, "GET", "/healthz"), EndsWith("\r\n\r\nok"));
  EXPECT_EQ(made, 0);
  const std::string answer = exchange(server, "GET", "/status");
  EXPECT_THAT(answer, EndsWith("\r\n\r\n{\"made\":1}"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: application/json\r\n"));
}

TEST(Pages, RejectsEverythingElse) {
  Pages handler{[](const RequestHead& head) {
    return handle({head.method, head.path}, {"n1", {}, {}});
  }};
  Server server{Rig::prepare({}), handler};
  ASSERT_TRUE(server.start());
  EXPECT_THAT(exchange(server, "GET", "/metrics"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(exchange(server, "POST", "/healthz"), HasSubstr("\r\nAllow: GET, HEAD\r\n"));
}

}  // namespace
}  // namespace slurmlet::podapi
