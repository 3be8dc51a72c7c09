#pragma once

// A Server on a loopback port, a counting handler and clients, all on the test's own thread:
// until() steps the server and the clients in turn, and sleeps in poll(2) when all are idle. The
// server's clock is fake.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "fakes/fake_clock.h"
#include "podapi/server.h"
#include "tls/server_session_fixture.h"

namespace slurmlet::podapi {

inline const std::string kGet = "GET /healthz HTTP/1.1\r\nHost: n1\r\n\r\n";
inline const std::string kGetAndClose =
    "GET /pods?a=b HTTP/1.1\r\nHost: n1\r\nConnection: close\r\n\r\n";

// Answers at once with `response`, or if `later` is set, with what the test puts into `ready`.
class CountingHandler final : public RequestHandler {
 public:
  std::optional<Response> begin(RequestId id, const Caller& caller, const RequestHead& head,
                                Now) override {
    ids.push_back(id);
    callers.push_back(caller);
    heads.push_back(head);
    return later ? std::nullopt : std::optional{response};
  }
  std::vector<std::pair<RequestId, Response>> take_answers(Now, SteadyTime& next) override {
    next = std::min(next, poll_again);
    return std::exchange(ready, {});
  }
  void forget(RequestId id) override { forgotten.push_back(id); }

  bool later = false;
  Response response = [] {
    Response ok;
    ok.body = "ok";
    return ok;
  }();
  std::vector<std::pair<RequestId, Response>> ready;
  SteadyTime poll_again = kNever;
  std::vector<RequestId> ids, forgotten;
  std::vector<Caller> callers;
  std::vector<RequestHead> heads;
};

class TestClient {
 public:
  explicit TestClient(int port, in_addr_t to = INADDR_LOOPBACK, in_addr_t from = INADDR_LOOPBACK)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(from);
    ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
    address.sin_addr.s_addr = htonl(to);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    // Otherwise a second small write waits for a delayed ACK.
    const int on = 1;
    ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  virtual ~TestClient() = default;
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }
  void send(const std::string& text) { to_send_ += text; }
  bool has_sent() const { return to_send_.empty(); }
  void half_close() { ::shutdown(fd_.get(), SHUT_WR); }
  void abort() { fd_.reset(); }
  // Sends and receives without blocking.
  virtual void turn() {
    while (!to_send_.empty()) {
      const ssize_t n =
          ::send(fd_.get(), to_send_.data(), to_send_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) {
        break;
      }
      to_send_.erase(0, static_cast<std::size_t>(n));
    }
    char buffer[16384];
    ssize_t n = 0;
    while (reads && (n = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0) {
      received.append(buffer, static_cast<std::size_t>(n));
    }
    ended = ended || (reads && (n == 0 || (n < 0 && errno != EAGAIN)));
  }

  std::string received;
  bool ended = false;  // the server has closed
  bool reads = true;

 protected:
  UniqueFd fd_;
  std::string to_send_;

 private:
  bool connected_ = false;
};

class TlsTestClient final : public TestClient {
 public:
  explicit TlsTestClient(int port, const tls::ClientSpec& spec = {})
      : TestClient(port), session_(spec, fd()) {
    ::fcntl(fd(), F_SETFL, ::fcntl(fd(), F_GETFL) | O_NONBLOCK);
  }
  void turn() override {
    if (!ended && !shaken_) {
      shaken_ = session_.handshake();
    }
    while (!ended && shaken_ && !to_send_.empty()) {
      const auto piece = std::min<std::size_t>(to_send_.size(), 4096);
      if (!session_.write(std::string_view{to_send_}.substr(0, piece))) {
        break;
      }
      to_send_.erase(0, piece);
    }
    if (!ended && shaken_ && reads) {
      received += session_.read();
    }
    ended = ended || session_.has_failed();
  }
  tls::TlsClient& session() { return session_; }
  bool has_shaken_hands() const { return shaken_; }

 private:
  tls::TlsClient session_;
  bool shaken_ = false;
};

struct Rig {
  explicit Rig(ServerOptions options = {}) : server(prepare(std::move(options)), handler) {
    const auto started = server.start();
    EXPECT_TRUE(started) << (started ? "" : started.error().message);
  }
  static ServerOptions prepare(ServerOptions options) {
    options.address = "127.0.0.1";
    options.port_flag = "--port";
    return options;
  }
  static ServerOptions with_tls(ServerOptions options = {}) {
    auto identity = std::move(*tls::ServerIdentity::make(tls::server_pem()));
    options.identity = [identity] { return identity; };
    return options;
  }

  void step() { next = server.step(clock.now()); }
  // Runs until `done`; false after ten seconds.
  template <typename Done>
  bool until(const std::vector<TestClient*>& clients, Done done) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (std::chrono::steady_clock::now() < patience) {
      for (TestClient* client : clients) {
        client->turn();
      }
      step();
      if (done()) {
        return true;
      }
      wait(clients);
    }
    return false;
  }
  bool until_closed(TestClient& client) {
    return until({&client}, [&] { return client.ended; });
  }
  // Advances the clock and steps the server.
  void pass(Duration by) {
    clock.advance(by);
    step();
  }
  std::string exchange(const std::string& request) {
    TestClient client{server.port()};
    client.send(request);
    EXPECT_TRUE(until_closed(client)) << request.substr(0, 80);
    return client.received;
  }

  fakes::FakeClock clock;
  CountingHandler handler;
  Server server;
  SteadyTime next = kNever;

 private:
  void wait(const std::vector<TestClient*>& clients) const {
    std::vector<pollfd> waiting{{server.fd(), POLLIN, 0}};
    for (const TestClient* client : clients) {
      short events = 0;
      events = static_cast<short>(events | (client->reads && !client->ended ? POLLIN : 0));
      events = static_cast<short>(events | (client->has_sent() || client->ended ? 0 : POLLOUT));
      waiting.push_back({client->ended ? -1 : client->fd(), events, 0});
    }
    ::poll(waiting.data(), waiting.size(), 1000);
  }
};

}  // namespace slurmlet::podapi
