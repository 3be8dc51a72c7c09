#include "podapi/health_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace slurmlet::podapi {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGet = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

class Client {
 public:
  explicit Client(int port, in_addr_t to = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(to);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  bool connected() const { return connected_; }
  bool send(const std::string& text) {
    return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  // Everything until the server closes; bounded by the test's own time limit.
  std::string read_to_end() {
    std::string all;
    char buffer[4096];
    while (true) {
      pollfd waiting{fd_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 20'000) <= 0) {
        return all + "<server never closed>";
      }
      const ssize_t n = ::recv(fd_.get(), buffer, sizeof buffer, 0);
      if (n <= 0) {
        return all;
      }
      all.append(buffer, static_cast<std::size_t>(n));
    }
  }

 private:
  UniqueFd fd_;
  bool connected_ = false;
};

Snapshot healthy() { return {"node7", {{"loop", true, "", true}}, {}}; }

HealthServerOptions any_port() {
  HealthServerOptions options;
  options.port = 0;
  return options;
}

std::string get(int port) {
  Client client{port};
  return client.send(kGet) ? client.read_to_end() : "<not sent>";
}

TEST(HealthServer, AnswersOverTcp) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  EXPECT_THAT(get(server.port()), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nok")));
}

TEST(HealthServer, AsksForAFreshSnapshotEachTime) {
  std::atomic<bool> ok = true;
  HealthServer server{any_port(), [&] { return Snapshot{"n", {{"c", ok, "x", true}}, {}}; }};
  ASSERT_TRUE(server.start());
  EXPECT_THAT(get(server.port()), StartsWith("HTTP/1.1 200"));
  ok = false;
  EXPECT_THAT(get(server.port()), StartsWith("HTTP/1.1 503"));
}

TEST(HealthServer, AnswersARequestThatComesInPieces) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  Client client{server.port()};
  for (const char c : std::string{kGet}) {
    ASSERT_TRUE(client.send(std::string{c}));
  }
  EXPECT_THAT(client.read_to_end(), EndsWith("ok"));
}

TEST(HealthServer, SendsAnswersLargerThanTheSocketBuffer) {
  const auto large = [] {
    return Snapshot{
        "n", {}, {{"m", std::string(std::size_t{8} << 20, 'h'), MetricType::kGauge, {}}}};
  };
  auto options = any_port();
  options.time_limit = std::chrono::seconds{60};  // a sanitizer needs long to write this much
  HealthServer server{options, large};
  ASSERT_TRUE(server.start());
  Client client{server.port()};
  ASSERT_TRUE(client.send("GET /metrics HTTP/1.1\r\n\r\n"));
  const std::string answer = client.read_to_end();
  EXPECT_GT(answer.size(), std::size_t{8} << 20);
  EXPECT_THAT(answer.substr(answer.size() - 15), EndsWith("TYPE m gauge\n"));
}

TEST(HealthServer, IsReachableThroughLoopbackOnly) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  // 127.0.0.2 is this machine too, but not the address that is bound.
  EXPECT_FALSE(Client(server.port(), INADDR_LOOPBACK + 1).connected());
}

TEST(HealthServer, ATakenPortNamesTheFlag) {
  HealthServer first{any_port(), &healthy};
  ASSERT_TRUE(first.start());
  HealthServerOptions same;
  same.port = first.port();
  HealthServer second{same, &healthy};
  const auto started = second.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kConflict);
  EXPECT_THAT(started.error().message,
              AllOf(HasSubstr(std::to_string(first.port())), HasSubstr("--healthz-port 0")));
}

TEST(HealthServer, CanBeStartedAgainOnTheSamePort) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  HealthServerOptions same;
  same.port = server.port();
  EXPECT_THAT(get(same.port), EndsWith("ok"));  // leaves a connection in TIME_WAIT
  server.stop();
  EXPECT_FALSE(Client(same.port).connected());
  HealthServer next{same, &healthy};
  ASSERT_TRUE(next.start());
  EXPECT_THAT(get(same.port), EndsWith("ok"));
}

TEST(HealthServer, OnePatientClientDoesNotBlockTheNext) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  Client silent{server.port()};
  ASSERT_TRUE(silent.send("GET /heal"));
  EXPECT_THAT(get(server.port()), EndsWith("ok"));
}

TEST(HealthServer, SlowClientsAreCutOffAtTheTimeLimit) {
  auto options = any_port();
  options.time_limit = milliseconds{200};
  HealthServer server{options, &healthy};
  ASSERT_TRUE(server.start());
  Client a{server.port()};
  Client b{server.port()};
  ASSERT_TRUE(a.send("GET /heal"));
  ASSERT_TRUE(b.send("G"));
  // Both threads are held; this one waits in the kernel's queue until they are free.
  EXPECT_THAT(get(server.port()), EndsWith("ok"));
  EXPECT_EQ(a.read_to_end(), "");
  EXPECT_EQ(b.read_to_end(), "");
}

TEST(HealthServer, AFloodOfHeadersIsRefusedAtTheSizeLimit) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  Client flood{server.port()};
  ASSERT_TRUE(flood.send("GET /healthz HTTP/1.1\r\n"));
  std::size_t sent = 0;
  while (sent < (std::size_t{64} << 20) &&
         flood.send("X-Header: " + std::string(2000, 'x') + "\r\n")) {
    sent += 2012;
  }
  EXPECT_LT(sent, std::size_t{32} << 20) << "the server must stop reading and close";
  EXPECT_THAT(get(server.port()), EndsWith("ok"));
}

TEST(HealthServer, ALongHeadIsAnsweredWith431) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  Client client{server.port()};
  ASSERT_TRUE(client.send("GET /" + std::string(20'000, 'x')));
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 431 "));
}

TEST(HealthServer, StopsAtOnceWithAStuckClient) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  Client stuck{server.port()};
  ASSERT_TRUE(stuck.send("GET /heal"));
  EXPECT_THAT(get(server.port()), EndsWith("ok"));  // by now `stuck` is being served
  const auto start = steady_clock::now();
  server.stop();
  EXPECT_LT(steady_clock::now() - start, milliseconds{500});
  EXPECT_EQ(stuck.read_to_end(), "");
}

TEST(HealthServer, StopMayBeRepeatedAndMayComeWithoutStart) {
  HealthServer server{any_port(), &healthy};
  server.stop();
  ASSERT_TRUE(server.start());
  EXPECT_FALSE(server.start()) << "already running";
  server.stop();
  server.stop();
}

TEST(HealthServer, RefusesWhatIsNoPort) {
  for (const int port : {-1, 65536}) {
    HealthServerOptions options;
    options.port = port;
    EXPECT_EQ(HealthServer(options, &healthy).start().error().code, Code::kInvalid) << port;
  }
}

// Context switches of the server's threads so far.
long switches_of_server_threads() {
  long total = 0;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream status{task.path() / "status"};
    std::string line;
    bool ours = false;
    while (std::getline(status, line)) {
      ours = ours || line == "Name:\thealthz";
      if (ours && line.find("ctxt_switches:") != std::string::npos) {
        total += std::stol(line.substr(line.find(':') + 1));
      }
    }
  }
  return total;
}

TEST(HealthServer, SleepsWhenIdle) {
  HealthServer server{any_port(), &healthy};
  ASSERT_TRUE(server.start());
  EXPECT_THAT(get(server.port()), EndsWith("ok"));
  std::this_thread::sleep_for(milliseconds{100});  // both threads are back in poll()
  const long before = switches_of_server_threads();
  ASSERT_GT(before, 0);
  std::this_thread::sleep_for(milliseconds{1000});  // the time over which nothing must happen
  EXPECT_EQ(switches_of_server_threads(), before);
}

}  // namespace
}  // namespace slurmlet::podapi
