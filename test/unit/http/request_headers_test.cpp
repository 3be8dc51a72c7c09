// Headers that a request brings with it.

#include <gmock/gmock.h>

#include "http/client_fixture.h"

namespace slurmlet::http {
namespace {

using testing::HasSubstr;
using testing::Not;

Request with_header(const std::string& name, const std::string& value) {
  Request request = get("/node");
  request.headers = {{name, value}};
  return request;
}

TEST(RequestHeaders, AreSentBesideOurOwn) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, "ok"); }};
  const auto client = make_client(endpoint_of(server));
  Request request = get("/node");
  request.headers = {{"X-SLURM-USER-NAME", "n1"}, {"X-SLURM-USER-TOKEN", "a.b.c"}, {"X-None", ""}};
  ASSERT_TRUE(client->call(request));
  ASSERT_TRUE(client->call(get("/node")));
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].headers.at("x-slurm-user-name"), "n1");
  EXPECT_EQ(seen[0].headers.at("x-slurm-user-token"), "a.b.c");
  EXPECT_EQ(seen[0].headers.at("x-none"), "");
  EXPECT_EQ(seen[0].headers.at("accept"), "application/json");
  EXPECT_EQ(seen[0].headers.count("authorization"), 0U);
  EXPECT_EQ(seen[1].headers.count("x-slurm-user-token"), 0U);
}

TEST(RequestHeaders, OfAStreamAreSentToo) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  const auto client = make_client(endpoint_of(server));
  const auto stream = client->open_stream(with_header("X-SLURM-USER-NAME", "n1"));
  while (!stream->ended()) {
    (void)client->wait(kNever, {});
  }
  EXPECT_EQ(server.requests().at(0).headers.at("x-slurm-user-name"), "n1");
}

struct BadHeader {
  const char* name;
  std::string value;
};
class RequestHeaderRefused : public testing::TestWithParam<BadHeader> {};
INSTANTIATE_TEST_SUITE_P(Cases, RequestHeaderRefused,
                         testing::Values(BadHeader{"X-A", "secret\r\nX-B: c"},
                                         BadHeader{"X-A", "secret\n"},
                                         BadHeader{"X-A", std::string{"secret\0", 7}},
                                         BadHeader{"X-A", "secret\x7f"}, BadHeader{"", "secret"},
                                         BadHeader{"X A", "secret"}, BadHeader{"X-A:", "secret"},
                                         BadHeader{"X-A\r\nX-B", "secret"}));

TEST_P(RequestHeaderRefused, IsNotSentAndNotQuoted) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, "ok"); }};
  const auto client = make_client(endpoint_of(server));
  const Request request = with_header(GetParam().name, GetParam().value);
  const auto response = client->call(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kInvalid);
  EXPECT_THAT(response.error().message, Not(HasSubstr("secret")));
  const auto stream = client->open_stream(request);
  ASSERT_TRUE(stream->ended());
  EXPECT_EQ(stream->error()->message, response.error().message);
  EXPECT_EQ(server.connections(), 0);
}

}  // namespace
}  // namespace slurmlet::http
