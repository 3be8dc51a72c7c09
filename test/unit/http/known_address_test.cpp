#include <gmock/gmock.h>

#include "http/client_fixture.h"
#include "http/connect_proxy.h"
#include "http/target.h"
#include "http/transfer.h"
#include "http/transfer_loop.h"

namespace slurmlet::http {
namespace {

using namespace std::chrono_literals;

// Names below .test lead nowhere (RFC 6761), so what resolves one fails with any resolver.
class KnownAddressTest : public ::testing::Test {
 protected:
  struct Call {
    std::string name = "known.test";
    std::string proxy = "", server_name = "";
  };
  Status call(const Call& by) {
    auto target = make_target({.url = "https://" + by.name + port_,
                               .proxy = by.proxy,
                               .server_name = by.server_name,
                               .user_agent = ""});
    EXPECT_TRUE(target);
    ConnectionPool pool{curl_share_init(), [](CURLSH* share) { curl_share_cleanup(share); }};
    const auto shared = std::make_shared<const Shared>(
        Shared{std::move(*target), make_identity(pki().ca.certificate)});
    Transfer transfer{loop_,       owner_, shared, get("/a", 5s), "", pool, Transfer::Kind::kWhole,
                      steady_now()};
    loop_.add(transfer);
    for (loop_.advance(); !transfer.ended(); loop_.advance()) {
      (void)loop_.poll(kNever, {});
    }
    return transfer.error() ? Status{*transfer.error()} : Status{};
  }
  // ":6443"
  static std::string port_of(const std::string& url) { return url.substr(url.rfind(':')); }

  tls::Issued certificate_ =
      tls::issue(pki().ca, {.common_name = "server", .names = {"DNS:known.test", "DNS:localhost"}});
  TestServer server_{{certificate_}, [](Exchange& exchange) { exchange.respond(200, "ok"); }};
  std::string port_ = port_of(server_.url());
  Owner owner_;
  TransferLoop loop_;
};

TEST_F(KnownAddressTest, IsKeptOnceTheServerWasReached) {
  ASSERT_TRUE(call({.name = "localhost"}));
  EXPECT_THAT(owner_.peer, testing::AnyOf("127.0.0.1", "[::1]"));
  EXPECT_FALSE(owner_.resolve);
}

TEST_F(KnownAddressTest, NeedsNoResolver) {
  EXPECT_FALSE(call({}));
  owner_.peer = "127.0.0.1";
  const Status reached = call({});
  EXPECT_TRUE(reached) << reached.error().message;
}

// Either may be wrong: the address, as the server has moved, or the resolver, as it is silent.
TEST_F(KnownAddressTest, TakesTurnsWithTheResolverWhileNothingConnects) {
  owner_.peer = "127.0.0.1";
  const std::string good = std::exchange(port_, ":1");
  ASSERT_FALSE(call({}));
  EXPECT_TRUE(owner_.resolve);
  port_ = good;
  ASSERT_FALSE(call({})) << "the resolver knows no such name";
  EXPECT_FALSE(owner_.resolve);
  EXPECT_EQ(owner_.peer, "127.0.0.1");
  EXPECT_TRUE(call({}));
}

TEST_F(KnownAddressTest, FreesNobodyFromShowingItsName) {
  owner_.peer = "127.0.0.1";
  const Status other = call({.name = "other.test"});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kDenied) << other.error().message;
  EXPECT_TRUE(owner_.resolve) << "another machine may have the address by now";
  owner_.resolve = false;
  const Status shown = call({.name = "other.test", .server_name = "known.test"});
  EXPECT_TRUE(shown) << "by tls-server-name: " << shown.error().message;
}

TEST_F(KnownAddressTest, IsTheProxysWhereThereIsOne) {
  ConnectProxy proxy{std::stoi(port_.substr(1))};
  owner_.peer = "127.0.0.1";
  const Status reached =
      call({.name = "localhost", .proxy = "http://proxy.test" + port_of(proxy.url())});
  EXPECT_TRUE(reached) << reached.error().message;
}

}  // namespace
}  // namespace slurmlet::http
