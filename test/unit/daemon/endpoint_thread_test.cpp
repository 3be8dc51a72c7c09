// EndpointThread: the thread, its ports and what it takes from the other threads. What is answered
// on the ports is tested in podapi/.

#include "daemon/endpoint_thread.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "daemon/slurm_source.h"
#include "fakes/fake_clock.h"
#include "http/curl_client.h"

namespace slurmlet::daemon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A listening socket on a free port of 127.0.0.1.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ::ntohs(address.sin_port);
  }
  int port() const { return port_; }
  int fd() const { return socket_.get(); }

 private:
  UniqueFd socket_;
  int port_ = 0;
};

class EndpointThreadTest : public ::testing::Test {
 protected:
  EndpointThreadTest() {
    settings_.endpoint.port = 0;
    settings_.endpoint.healthz_port = health_.port();
  }
  // `sockets` of the service manager.
  void start(std::vector<int> sockets) {
    service_.emplace(status::Notifier{}, std::nullopt, std::move(sockets));
    shared_.reset(new Shared{*service_, clock_});
    auto client = make_waiting_client();
    ASSERT_TRUE(client);
    serving_.emplace(settings_.endpoint, "n1", "");
    if (settings_.endpoint.port != 0) {
      ASSERT_TRUE(serving_->start(clock_.now().wall));
    }
    endpoint_.emplace(settings_, "n1", *std::move(client), *serving_, *shared_);
    endpoint_->start();
  }
  http::Response get(const std::string& path) {
    http::Endpoint server;
    server.url = "http://127.0.0.1:" + std::to_string(health_.port());
    auto client = http::make_curl_client(server, nullptr, {});
    EXPECT_TRUE(client);
    const auto response = (*client)->call({"GET", path, "", ""});
    EXPECT_TRUE(response) << response.error().message;
    return response ? *response : http::Response{};
  }
  std::string log_of_start(std::vector<int> sockets) {
    ::testing::internal::CaptureStderr();
    start(std::move(sockets));
    return ::testing::internal::GetCapturedStderr();
  }

  Listener health_;
  Listener other_;
  SystemClock clock_;
  config::Settings settings_;
  std::optional<status::ServiceReport> service_;
  std::unique_ptr<Shared> shared_;
  std::optional<credentials::ServingCertificate> serving_;
  std::optional<EndpointThread> endpoint_;
};

TEST_F(EndpointThreadTest, AnswersFromWhatTheOtherThreadsPublish) {
  start({health_.fd()});
  EXPECT_EQ(get("/healthz").status, 200) << "before the first turn of the main thread";
  EXPECT_EQ(get("/readyz").status, 503);
  status::Report report;
  report.registered = true;
  report.ready = {"Ready", "True", "SlurmdRunning", "slurmd is running"};
  report.facts.slurmd.liveness = node::SlurmdFacts::Liveness::kRunning;
  shared_->report.set(report);
  sync::LeaseStatus lease;
  lease.renewed_at = clock_.now().wall;
  lease.renewed_steady = clock_.now().steady;
  shared_->lease.status.set(lease);
  const auto ready = get("/readyz");
  EXPECT_EQ(ready.status, 200) << ready.body;
  const auto status = nlohmann::json::parse(get("/status").body, nullptr, false);
  ASSERT_TRUE(status.is_object());
  EXPECT_EQ(status.value("node", ""), "n1") << status;
  EXPECT_EQ(status.value("registered", false), true) << status;
}

TEST_F(EndpointThreadTest, ServesNothingWhereBothPortsAreOff) {
  settings_.endpoint.healthz_port = 0;
  start({});
  EXPECT_EQ(endpoint_->kubelet_port(), 0);
  endpoint_.reset();  // ends, though no thread was started
}

TEST_F(EndpointThreadTest, ServesTheKubeletApiOnTheGivenPort) {
  settings_.endpoint.address = "127.0.0.1";
  settings_.endpoint.port = other_.port();
  EXPECT_THAT(log_of_start({other_.fd(), health_.fd()}), Not(HasSubstr("socket")));
  EXPECT_EQ(endpoint_->kubelet_port(), settings_.endpoint.port);
  http::Endpoint server;
  server.url = "https://127.0.0.1:" + std::to_string(settings_.endpoint.port);
  const auto anybody = tls::ClientIdentity::make_untrusting();
  ASSERT_TRUE(anybody);
  auto client = http::make_curl_client(server, *anybody, {});
  ASSERT_TRUE(client);
  const auto response = (*client)->call({"GET", "/metrics", "", ""});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 401) << "nobody is let in without credentials";
}

TEST_F(EndpointThreadTest, APortThatIsTakenIsTriedAgainAndStaysTheNodes) {
  settings_.endpoint.address = "127.0.0.1";
  settings_.endpoint.port = other_.port();  // other_ listens there
  EXPECT_THAT(log_of_start({health_.fd()}),
              AllOf(HasSubstr("no kubelet endpoint"), HasSubstr("retrying until it listens")));
  EXPECT_EQ(endpoint_->kubelet_port(), settings_.endpoint.port);
  EXPECT_EQ(get("/healthz").status, 200) << "the node goes on without it";
}

TEST_F(EndpointThreadTest, WarnsOfASocketThatNobodyServes) {
  const int port = other_.port();
  const std::string log = log_of_start({health_.fd(), other_.fd()});
  EXPECT_THAT(log, HasSubstr("slurmlet.socket listens on 127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(log, Not(HasSubstr("listens on 127.0.0.1:" + std::to_string(health_.port()))));
}

// It waits in its client, for ever: nobody asks.
TEST_F(EndpointThreadTest, EndsAtOnceThoughNobodyAsks) {
  start({health_.fd()});
  EXPECT_EQ(get("/healthz").status, 200);
  const auto begin = clock_.now().steady;
  endpoint_.reset();
  EXPECT_LT(clock_.now().steady - begin, std::chrono::seconds{3});
}

}  // namespace
}  // namespace slurmlet::daemon
