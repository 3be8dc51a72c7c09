// How the Server opens its port and reopens it.

#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <thread>

#include "podapi/server_rig.h"

namespace slurmlet::podapi {
namespace {

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A listening socket of another program or the service manager.
UniqueFd listening(int port = 0, in_addr_t address = INADDR_LOOPBACK) {
  UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(address);
  name.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(::listen(socket.get(), 8), 0);
  return socket;
}

int port_of(const UniqueFd& socket) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
  return ntohs(name.sin_port);
}

// Makes accept4(2) of this thread fail like a security module, which leaves the client in the
// queue.
bool forbid_accepting() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_accept4, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{4, filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

class PortTest : public ::testing::Test {
 protected:
  Server make(int port, std::vector<int> inherited = {}) {
    ServerOptions options = Rig::prepare({});
    options.port = port;
    options.inherited = std::move(inherited);
    options.random = [] { return 0.99; };
    return Server{options, handler_};
  }
  SteadyTime step(Server& server, Duration after = {}) {
    clock_.advance(after);
    return server.step(clock_.now());
  }
  // Whether the server answers a request there.
  bool serves(Server& server, int port) {
    TestClient client{port};
    client.send(kGet);
    for (int i = 0; i < 100 && client.received.empty(); ++i) {
      client.turn();
      step(server);
      pollfd ready{server.fd(), POLLIN, 0};
      ::poll(&ready, 1, 100);
    }
    return client.received.starts_with("HTTP/1.1 200");
  }

  fakes::FakeClock clock_;
  CountingHandler handler_;
};

TEST_F(PortTest, RetriesAPortInUseWithBackOff) {
  UniqueFd squatter = listening();
  const int port = port_of(squatter);
  Server server = make(port);
  const Status started = server.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kConflict);
  EXPECT_THAT(started.error().message, HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(started.error().message, HasSubstr("--port"));
  EXPECT_FALSE(server.counters().listening);
  EXPECT_EQ(server.port(), port);
  SteadyTime next = step(server);
  for (int i = 0; i < 20; ++i) {
    const SteadyTime now = clock_.now().steady;
    ASSERT_GT(next, now);
    ASSERT_LE(next, now + seconds{30});
    EXPECT_EQ(step(server), next) << "nothing to do before";
    next = step(server, next - now);
  }
  EXPECT_EQ(server.counters().bind_failures, 22U);
  squatter.reset();
  EXPECT_EQ(step(server, next - clock_.now().steady), kNever);
  EXPECT_TRUE(server.counters().listening);
  EXPECT_TRUE(serves(server, port));
}

TEST_F(PortTest, DoesNotRetryAnInvalidAddress) {
  ServerOptions options;
  options.address = "nowhere";
  Server server{options, handler_};
  EXPECT_EQ(server.start().error().code, Code::kInvalid);
  EXPECT_EQ(step(server), kNever);
}

TEST_F(PortTest, RetriesAForbiddenAcceptAfterAPause) {
  Server server = make(0);
  ASSERT_TRUE(server.start());
  const TestClient client{server.port()};
  bool forbidden = false;
  SteadyTime next{};
  std::thread{[&] {
    forbidden = forbid_accepting();
    next = forbidden ? step(server) : next;
  }}.join();
  if (!forbidden) {
    GTEST_SKIP() << "no seccomp here";
  }
  EXPECT_EQ(next, clock_.now().steady + seconds{1});
  pollfd ready{server.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0) << "the client that waits does not wake it";
  EXPECT_EQ(server.counters().accepted, 0U);
  step(server, seconds{1});
  EXPECT_TRUE(serves(server, server.port()));
  EXPECT_EQ(server.counters().accepted, 2U);
}

TEST_F(PortTest, UsesTheServiceManagersSocket) {
  const UniqueFd other = listening();
  const UniqueFd ours = listening();
  Server server = make(port_of(ours), {0, 9999, other.get(), ours.get()});
  ASSERT_TRUE(server.start());
  EXPECT_EQ(server.port(), port_of(ours));
  EXPECT_TRUE(serves(server, port_of(ours)));
}

TEST_F(PortTest, ItOutlivesTheServer) {
  const UniqueFd ours = listening();
  {
    Server server = make(port_of(ours), {ours.get()});
    ASSERT_TRUE(server.start());
  }
  const TestClient between{port_of(ours)};
  EXPECT_TRUE(between.connected()) << "it waits in the queue";
  Server server = make(port_of(ours), {ours.get()});
  ASSERT_TRUE(server.start());
  EXPECT_TRUE(serves(server, port_of(ours)));
}

TEST_F(PortTest, ASocketIsForTheServerOfItsPortAndAddress) {
  const UniqueFd loopback = listening();
  const UniqueFd all = listening(0, INADDR_ANY);
  struct Row {
    const UniqueFd& socket;
    const char* address;
    int more;  // than its port
    bool fits;
  };
  const Row kRows[] = {
      {loopback, "127.0.0.1", 0, true},
      {loopback, "127.0.0.1", 1, false},
      {loopback, "0:0:0:0:0:FFFF:7F00:1", 0, true},
      {loopback, "127.0.0.2", 0, false},
      {loopback, "::", 0, false},
      {all, "0.0.0.0", 0, true},
      {all, "::", 0, true},
      {all, "127.0.0.1", 0, false},
  };
  for (const Row& row : kRows) {
    ServerOptions options;
    options.address = row.address;
    options.port = port_of(row.socket) + row.more;
    EXPECT_EQ(is_for(row.socket.get(), options), row.fits) << row.address << " +" << row.more;
  }
  EXPECT_EQ(socket_name(loopback.get()), "127.0.0.1:" + std::to_string(port_of(loopback)));
  EXPECT_FALSE(is_for(0, ServerOptions{}));
}

// As with `ss --kill`.
TEST_F(PortTest, ReopensALostPort) {
  const int port = port_of(listening());
  const UniqueFd ours = listening(port);
  Server server = make(port, {ours.get()});
  ASSERT_TRUE(server.start());
  ASSERT_TRUE(serves(server, port));
  ASSERT_EQ(::shutdown(ours.get(), SHUT_RDWR), 0);
  const SteadyTime next = step(server);
  EXPECT_FALSE(server.counters().listening);
  EXPECT_GE(next, clock_.now().steady + seconds{1});
  EXPECT_LE(next, clock_.now().steady + seconds{3});
  EXPECT_EQ(step(server, seconds{3}), kNever);
  EXPECT_TRUE(server.counters().listening);
  EXPECT_TRUE(serves(server, port));
}

TEST(Server, CanBeStartedAgainOnTheSamePort) {
  ServerOptions same;
  {
    Rig rig;
    same.port = rig.server.port();
    EXPECT_THAT(rig.exchange(kGetAndClose), EndsWith("ok"));  // leaves a connection in TIME_WAIT
    EXPECT_FALSE(rig.server.start()) << "already running";
  }
  EXPECT_FALSE(TestClient(same.port).connected());
  Rig next{same};
  EXPECT_THAT(next.exchange(kGetAndClose), EndsWith("ok"));
}

TEST(Server, RejectsInvalidAddressesAndPorts) {
  CountingHandler handler;
  for (const auto& [address, port] : std::initializer_list<std::pair<const char*, int>>{
           {"127.0.0.1", -1}, {"127.0.0.1", 65536}, {"localhost", 0}, {"", 0}, {"1.2.3", 0}}) {
    ServerOptions options;
    options.address = address;
    options.port = port;
    EXPECT_EQ(Server(options, handler).start().error().code, Code::kInvalid) << address << port;
  }
}

TEST(Server, AnAddressThatIsNotOursIsAnError) {
  CountingHandler handler;
  ServerOptions options;
  options.address = "192.0.2.1";
  const auto started = Server(options, handler).start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("192.0.2.1"));
}

TEST(Server, TheUnspecifiedAddressTakesIPv4AndNamesItSo) {
  CountingHandler handler;
  Server server{{}, handler};
  ASSERT_TRUE(server.start());
  TestClient client{server.port()};
  ASSERT_TRUE(client.connected());
  client.send(kGetAndClose);
  client.turn();
  const fakes::FakeClock clock;
  for (int i = 0; i < 100 && handler.callers.empty(); ++i) {
    pollfd waiting{server.fd(), POLLIN, 0};
    ::poll(&waiting, 1, 1000);
    server.step(clock.now());
  }
  ASSERT_THAT(handler.callers, SizeIs(1));
  EXPECT_THAT(handler.callers[0].address, StartsWith("127.0.0.1:"));
}

}  // namespace
}  // namespace slurmlet::podapi
