#include "http/known_addresses.h"

#include <gmock/gmock.h>

#include <atomic>

#include "http/client_fixture.h"
#include "http/connect_proxy.h"

namespace slurmlet::http {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kStart{1h};

// Answers when it may. Owned by the look-ups too, as one may outlive its test.
struct Resolver {
  std::vector<std::string> resolve() {
    ++asked;
    EXPECT_TRUE(may_answer.wait());
    return answer;
  }

  Event may_answer;
  std::vector<std::string> answer;  // set before it may
  std::atomic<int> asked{0};
};

class KnownAddressesTest : public ::testing::Test {
 protected:
  ~KnownAddressesTest() override { resolver_->may_answer.set(); }
  // What a thread of its own brings about.
  template <typename Condition>
  static bool wait_for(Condition condition) {
    for (const auto end = steady_now() + 10s; !condition(); std::this_thread::sleep_for(1ms)) {
      if (steady_now() > end) {
        return false;
      }
    }
    return true;
  }
  std::string of() const { return known_.of("api"); }

  std::shared_ptr<Resolver> resolver_ = std::make_shared<Resolver>();
  KnownAddresses known_{[resolver = resolver_](const std::string&) { return resolver->resolve(); }};
};

TEST_F(KnownAddressesTest, WhatHasWorkedComesFirst) {
  EXPECT_EQ(of(), "");
  known_.worked("api", "192.0.2.1");
  EXPECT_EQ(of(), "192.0.2.1");
  known_.worked("api", "2001:db8::1");
  EXPECT_EQ(of(), "[2001:db8::1],192.0.2.1");
  known_.worked("api", "192.0.2.1");
  EXPECT_EQ(of(), "192.0.2.1,[2001:db8::1]");
  EXPECT_EQ(known_.of("other"), "");
}

TEST_F(KnownAddressesTest, NobodyWaitsForASilentResolver) {
  known_.worked("api", "192.0.2.1");
  known_.look_up("api", kStart);
  known_.look_up("api", kStart + 1h);
  EXPECT_EQ(of(), "192.0.2.1");
  ASSERT_TRUE(wait_for([&] { return resolver_->asked > 0; }));
  EXPECT_EQ(resolver_->asked, 1) << "one question at a time";
  resolver_->answer = {"192.0.2.2", "192.0.2.1"};
  resolver_->may_answer.set();
  EXPECT_TRUE(wait_for([&] { return of() == "192.0.2.2,192.0.2.1"; })) << of();
}

TEST_F(KnownAddressesTest, ANameThatDoesNotResolveLeadsWhereItLed) {
  resolver_->may_answer.set();
  known_.worked("api", "192.0.2.1");
  for (int i = 1; i <= 3; ++i) {
    const auto again = [&] {
      known_.look_up("api", kStart + i * KnownAddresses::kAgain);
      return resolver_->asked == i;
    };
    EXPECT_TRUE(wait_for(again));
    EXPECT_EQ(of(), "192.0.2.1");
    known_.look_up("api", kStart + i * KnownAddresses::kAgain + 1s);
    EXPECT_EQ(resolver_->asked, i) << "not so soon";
  }
}

// Names below .test lead nowhere (RFC 6761), so what follows fails with any resolver.
class KnownServerTest : public ::testing::Test {
 protected:
  static Status call(const Endpoint& endpoint) {
    const auto answer = make_client(endpoint)->call(get("/a", 5s));
    return answer ? Status{} : Status{answer.error()};
  }
  // ":6443"
  static std::string port_of(const std::string& url) { return url.substr(url.rfind(':')); }
  std::string with_name(const std::string& name) const {
    return "https://" + name + port_of(server_.url());
  }

  tls::Issued certificate_ =
      tls::issue(pki().ca, {.common_name = "server", .names = {"DNS:known.test", "DNS:localhost"}});
  TestServer server_{{certificate_}, [](Exchange& exchange) { exchange.respond(200, "ok"); }};
};

TEST_F(KnownServerTest, IsReachedWithoutItsName) {
  const Endpoint endpoint{
      .url = with_name("known.test"), .proxy = "", .server_name = "", .user_agent = ""};
  EXPECT_FALSE(call(endpoint));
  known_addresses().worked("known.test", "127.0.0.1");
  const Status reached = call(endpoint);
  EXPECT_TRUE(reached) << reached.error().message;
}

TEST_F(KnownServerTest, MustShowItsName) {
  known_addresses().worked("other.test", "127.0.0.1");
  const Status other =
      call({.url = with_name("other.test"), .proxy = "", .server_name = "", .user_agent = ""});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kDenied) << other.error().message;
  const Status shown = call(
      {.url = with_name("other.test"), .proxy = "", .server_name = "known.test", .user_agent = ""});
  EXPECT_TRUE(shown) << "by tls-server-name: " << shown.error().message;
}

TEST_F(KnownServerTest, IsReachedThroughAKnownProxy) {
  ConnectProxy proxy{std::stoi(port_of(server_.url()).substr(1))};
  known_addresses().worked("proxy.test", "127.0.0.1");
  const Status reached = call({.url = with_name("localhost"),
                               .proxy = "http://proxy.test" + port_of(proxy.url()),
                               .server_name = "",
                               .user_agent = ""});
  EXPECT_TRUE(reached) << reached.error().message;
}

TEST_F(KnownServerTest, ItsAddressIsKnownOnceItWasReached) {
  ASSERT_TRUE(
      call({.url = with_name("localhost"), .proxy = "", .server_name = "", .user_agent = ""}));
  EXPECT_THAT(known_addresses().of("localhost"), ::testing::HasSubstr("127.0.0.1"));
}

}  // namespace
}  // namespace slurmlet::http
