#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "http/client_fixture.h"

namespace slurmlet::http {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(ClientCall, SendsMethodHeadersAndBody) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, "{}"); }};
  const auto client = make_client(endpoint_of(server), [] { return "t0ken\n"; });
  Request request = get("/api/v1/nodes/n1?fieldManager=slurmlet");
  request.method = "PATCH";
  request.body = R"({"a":1})";
  request.content_type = "application/merge-patch+json";
  const auto response = client->call(request);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "{}");
  const auto seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "PATCH");
  EXPECT_EQ(seen.path, "/api/v1/nodes/n1?fieldManager=slurmlet");
  EXPECT_EQ(seen.body, R"({"a":1})");
  auto headers = seen.headers;
  EXPECT_EQ(headers["host"], "localhost:" + std::to_string(server.port()));
  EXPECT_EQ(headers["content-type"], "application/merge-patch+json");
  EXPECT_EQ(headers["user-agent"], "slurmlet/test");
  EXPECT_EQ(headers["accept"], "application/json");
  EXPECT_EQ(headers["authorization"], "Bearer t0ken");
}

TEST(ClientCall, SendsNothingUncalledFor) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  const auto client = make_client(endpoint_of(server));
  ASSERT_TRUE(client->call(get("/a")));
  const auto headers = server.requests().at(0).headers;
  EXPECT_EQ(headers.count("authorization"), 0U);
  EXPECT_EQ(headers.count("content-type"), 0U);
  EXPECT_EQ(headers.count("accept-encoding"), 0U);
}

TEST(ClientCall, SendsAnEmptyBodyWhereTheMethodHasOne) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(201, ""); }};
  const auto client = make_client(endpoint_of(server));
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    Request request = get("/a");
    request.method = method;
    ASSERT_TRUE(client->call(request)) << method;
    auto seen = server.requests().back();
    EXPECT_EQ(seen.method, method);
    EXPECT_EQ(seen.headers.count("content-length"), std::string{method} == "DELETE" ? 0U : 1U);
  }
}

TEST(ClientCall, DoesNotWaitForContinueBeforeALongBody) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  const auto client = make_client(endpoint_of(server));
  Request request = get("/big");
  request.method = "PUT";
  request.body.assign(std::size_t{2} << 20, 'x');
  ASSERT_TRUE(client->call(request));
  EXPECT_EQ(server.requests().at(0).headers.count("expect"), 0U);
  EXPECT_EQ(server.requests().at(0).body, request.body);
}

TEST(ClientCall, AsksForTheTypeThatTheRequestNames) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  const auto client = make_client(endpoint_of(server));
  Request request = get("/a");
  ASSERT_TRUE(client->call(request));
  request.accept = "application/json;as=Table";
  ASSERT_TRUE(client->call(request));
  EXPECT_EQ(server.requests().at(0).headers.at("accept"), "application/json");
  EXPECT_EQ(server.requests().at(1).headers.at("accept"), "application/json;as=Table");
}

TEST(ClientCall, ALongerBodyThanTheRequestAllowsIsAnErrorOrCut) {
  const std::string body(100'000, 'x');
  TestServer server{{pki().server}, [&](Exchange& exchange) { exchange.respond(200, body); }};
  const auto client = make_client(endpoint_of(server));
  Request request = get("/a");
  request.max_body = body.size() - 1;
  const auto refused = client->call(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr(std::to_string(request.max_body) + " bytes"));
  request.may_be_cut = true;
  const auto cut = client->call(request);
  ASSERT_TRUE(cut) << cut.error().message;
  EXPECT_TRUE(cut->is_cut);
  EXPECT_EQ(cut->status, 200);
  request.max_body = body.size();
  const auto whole = client->call(request);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->is_cut);
  EXPECT_EQ(whole->body, body);
}

TEST(ClientCall, ReadsTheTokenForEachRequest) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  std::string token = "first";
  const auto client = make_client(endpoint_of(server), [&] { return token; });
  ASSERT_TRUE(client->call(get("/a")));
  token = "second";
  ASSERT_TRUE(client->call(get("/a")));
  EXPECT_EQ(server.requests().at(0).headers.at("authorization"), "Bearer first");
  EXPECT_EQ(server.requests().at(1).headers.at("authorization"), "Bearer second");
}

TEST(ClientCall, RefusesATokenThatWouldBreakTheHeaderWithoutQuotingIt) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  const auto client = make_client(endpoint_of(server), [] { return "sec\r\nX-Evil: 1"; });
  const auto response = client->call(get("/a"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kInvalid);
  EXPECT_THAT(response.error().message, testing::Not(HasSubstr("sec\r")));
  const auto stream = client->open_stream(get("/a"));
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->error()->code, Code::kInvalid);
  EXPECT_EQ(server.connections(), 0);
}

TEST(ClientCall, ReturnsErrorStatusesAsValues) {
  TestServer server{{pki().server}, [](Exchange& exchange) {
                      const int status = std::atoi(exchange.request().path.c_str() + 1);
                      exchange.respond(status, "why", "Retry-After: 3\r\nLocation: /200\r\n");
                    }};
  const auto client = make_client(endpoint_of(server));
  for (const int status : {302, 401, 404, 409, 429, 500}) {
    const auto response = client->call(get("/" + std::to_string(status)));
    ASSERT_TRUE(response) << status;
    EXPECT_EQ(response->status, status);
    EXPECT_EQ(response->body, "why");
    EXPECT_EQ(response->retry_after, Duration{3s});
    ASSERT_TRUE(response->server_date);
    EXPECT_EQ(std::chrono::system_clock::to_time_t(*response->server_date), 1795183331);
  }
  EXPECT_EQ(server.requests().size(), 6U);  // the redirect was not followed
}

TEST(ClientCall, KeepsItsDeadlineWhenTheServerNeverAnswers) {
  TestServer server{{pki().server},
                    [](Exchange& exchange) { exchange.wait_for_client_to_close(); }};
  const auto client = make_client(endpoint_of(server));
  const SteadyTime start = steady_now();
  const auto response = client->call(get("/slow", 300ms));
  const Duration took = steady_now() - start;
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_EQ(response.error().message, "GET " + server.url() + "/slow: no answer within 300 ms");
  EXPECT_GE(took, 299ms);
  EXPECT_LT(took, 10s);
  EXPECT_TRUE(server.wait_closed(1));  // the connection is not kept
}

TEST(ClientCall, KeepsItsDeadlineDuringTheTlsHandshake) {
  int port = 0;
  const UniqueFd listener = listen_on_loopback(port);  // the kernel accepts, nobody speaks
  const auto client = make_client({.url = "https://127.0.0.1:" + std::to_string(port),
                                   .proxy = "",
                                   .server_name = "",
                                   .user_agent = ""});
  const SteadyTime start = steady_now();
  const auto response = client->call(get("/slow", 200ms));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_LT(steady_now() - start, 10s);
}

TEST(ClientCall, SaysThatNobodyListens) {
  int port = 0;
  { const UniqueFd closed = listen_on_loopback(port); }
  const std::string url = "https://127.0.0.1:" + std::to_string(port);
  const auto client = make_client({.url = url, .proxy = "", .server_name = "", .user_agent = ""});
  const auto response = client->call(get("/api"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_EQ(response.error().message, "GET " + url + "/api: connection refused");
}

TEST(ClientCall, EndsWhenTheAbortDescriptorBecomesReadable) {
  const UniqueFd abort{::eventfd(0, EFD_CLOEXEC)};
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      ::eventfd_write(abort.get(), 1);
                      exchange.wait_for_client_to_close();
                    }};
  const auto client = make_client(endpoint_of(server));
  client->set_abort_fd(abort.get());
  const auto response = client->call(get("/slow"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kCancelled);
  eventfd_t value = 0;
  EXPECT_EQ(::eventfd_read(abort.get(), &value), 0);  // left for its owner to read
}

TEST(ClientCall, IsInterruptedFromAnotherThreadForGood) {
  std::unique_ptr<Client> client;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      client->interrupt();
                      exchange.wait_for_client_to_close();
                    }};
  client = make_client(endpoint_of(server));
  for (int i = 0; i < 2; ++i) {
    const auto response = client->call(get("/slow"));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kCancelled);
  }
  EXPECT_TRUE(client->wait(kNever, {}).empty());
  EXPECT_EQ(client->open_stream(get("/watch"))->error()->code, Code::kCancelled);
  EXPECT_EQ(server.requests().size(), 1U);
}

// The client's socket to `port`, found among our descriptors.
int socket_to(int port) {
  const auto names = list_directory("/proc/self/fd");
  for (const auto& name : *names) {
    const int fd = parse_int<int>(name).value_or(-1);
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) {
      return fd;
    }
  }
  return -1;
}

TEST(ClientCall, NoticesDeadPeersByKeepAliveWithin20Seconds) {
  TestServer server{{pki().server}, [](Exchange& exchange) { exchange.respond(200, ""); }};
  const auto client = make_client(endpoint_of(server));
  ASSERT_TRUE(client->call(get("/a")));
  const int fd = socket_to(server.port());
  ASSERT_GE(fd, 0);
  const auto option = [fd](int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    EXPECT_EQ(::getsockopt(fd, level, name, &value, &length), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE) +
                option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT),
            20);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 18000);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_NODELAY), 1);
}

}  // namespace
}  // namespace slurmlet::http
