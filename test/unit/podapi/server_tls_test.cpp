#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "podapi/allocated_bytes.h"
#include "podapi/raw_literal.h"
#include "podapi/server.h"
#include "podapi/server_rig.h"

namespace slurmlet::podapi {
namespace server_tls_test {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(ServerOverTls, AnswersAClientWithoutACertificate) {
  Rig rig{Rig::with_tls()};
  TlsTestClient client{rig.server.port()};
  client.send(kGetAndClose);
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_THAT(client.received, EndsWith("\r\n\r\nok"));
  EXPECT_EQ(client.session().error(), "closed") << "said good-bye";
  ASSERT_THAT(rig.handler.callers, SizeIs(1));
  EXPECT_FALSE(rig.handler.callers[0].certificate);
}

TEST(ServerOverTls, PassesTheCertificateOn) {
  Rig rig{Rig::with_tls()};
  const auto& pki = tls::server_pki();
  TlsTestClient client{rig.server.port(),
                       {.certificate = pki.client.certificate, .key = pki.client.key}};
  client.send(kGetAndClose);
  EXPECT_TRUE(rig.until_closed(client));
  ASSERT_THAT(rig.handler.callers, SizeIs(1));
  ASSERT_TRUE(rig.handler.callers[0].certificate);
  EXPECT_EQ(rig.handler.callers[0].certificate->common_name, "prometheus");
  EXPECT_THAT(rig.handler.callers[0].certificate->organizations, ElementsAre("monitoring"));
}

TEST(ServerOverTls, KeepsTheConnectionAndTakesPipelinedRequests) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Rig rig{Rig::with_tls()};
    TlsTestClient client{rig.server.port(), {.min_version = version, .max_version = version}};
    std::string many;
    for (int i = 0; i < 20; ++i) {
      many += kGet + kGet;
    }
    client.send(many + kGetAndClose);  // in one record
    EXPECT_TRUE(rig.until_closed(client));
    EXPECT_THAT(rig.handler.heads, SizeIs(41));
    EXPECT_THAT(client.received, EndsWith("\r\n\r\nok"));
  }
}

TEST(ServerOverTls, ANewIdentityIsShownToTheNextConnection) {
  const auto& pki = tls::server_pki();
  const auto renewed = tls::issue(pki.ca, {.common_name = "renewed", .purposes = "serverAuth"});
  auto pem = tls::server_pem();
  std::shared_ptr<const tls::ServerIdentity> present = std::move(*tls::ServerIdentity::make(pem));
  ServerOptions options;
  options.identity = [&] { return present; };
  Rig rig{options};
  TlsTestClient before{rig.server.port()};
  before.send(kGet);
  ASSERT_TRUE(rig.until({&before}, [&] { return !before.received.empty(); }));
  pem.certificate = renewed.certificate;
  pem.key = renewed.key;
  present = std::move(*tls::ServerIdentity::make(pem));
  TlsTestClient after{rig.server.port()};
  after.send(kGetAndClose);
  before.send(kGetAndClose);
  EXPECT_TRUE(rig.until({&before, &after}, [&] { return before.ended && after.ended; }));
  EXPECT_THAT(rig.handler.ids, SizeIs(3)) << "the old connection stays open";
  const auto name_shown = [](TlsTestClient& client) {
    const tls::CertificatePtr shown{SSL_get1_peer_certificate(client.session().ssl())};
    char name[64] = "";
    X509_NAME_get_text_by_NID(X509_get_subject_name(shown.get()), NID_commonName, name,
                              sizeof name);
    return std::string{name};
  };
  EXPECT_EQ(name_shown(before), "n1");
  EXPECT_EQ(name_shown(after), "renewed");
}

TEST(ServerOverTls, WithoutAnIdentityConnectionsAreClosed) {
  ServerOptions options;
  options.identity = [] { return nullptr; };
  Rig rig{options};
  TlsTestClient client{rig.server.port()};
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_EQ(rig.server.counters().turned_away, 1U);
}

TEST(ServerOverTls, PlainHttpGetsAHintToUseTls) {
  Rig rig{Rig::with_tls()};
  EXPECT_THAT(rig.exchange(kGet), StartsWith("HTTP/1.0 400 "));
  EXPECT_THAT(rig.handler.ids, IsEmpty());
  EXPECT_EQ(rig.server.counters().handshakes_failed, 1U);
}

TEST(ServerOverTls, ClosesInvalidTls) {
  for (const std::string& bytes :
       {std::string(5000, '\0'), std::string(5000, 'x'), std::string{"SSH-2.0-OpenSSH_9.2\r\n"},
        raw("\x16\x03\x01\xff\xff") + std::string(5000, '\x01')}) {
    Rig rig{Rig::with_tls()};
    EXPECT_THAT(rig.exchange(bytes), testing::Not(testing::HasSubstr("200 OK")));
    EXPECT_THAT(rig.handler.ids, IsEmpty());
    EXPECT_EQ(rig.server.counters().handshakes_failed, 1U);
  }
}

TEST(ServerOverTls, ASlowHandshakeEndsAtTheDeadlineFromAccept) {
  Rig rig{Rig::with_tls()};
  TestClient client{rig.server.port()};
  const std::string hello{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11};
  for (int second = 0; second < 10; ++second) {
    ASSERT_FALSE(client.ended) << second;
    client.send(hello.substr(static_cast<std::size_t>(second), 1));
    ASSERT_TRUE(rig.until({&client}, [&] { return client.has_sent(); }));
    rig.pass(seconds{1});
  }
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_EQ(rig.server.counters().timed_out, 1U);
}

TEST(ServerOverTls, HandshakeAndHeadShareOneDeadline) {
  Rig rig{Rig::with_tls()};
  TlsTestClient client{rig.server.port()};
  rig.step();
  rig.clock.advance(seconds{8});
  ASSERT_TRUE(rig.until({&client}, [&] { return client.has_shaken_hands(); }));
  client.send("GET /");
  ASSERT_TRUE(rig.until({&client}, [&] { return client.has_sent(); }));
  rig.pass(seconds{2});
  EXPECT_EQ(rig.server.counters().open, 0U);
}

TEST(ServerOverTls, AHandshakeOverTheLimitIsDelayed) {
  ServerOptions options;
  options.handshakes = {0.5, 1};
  Rig rig{Rig::with_tls(std::move(options))};
  TlsTestClient first{rig.server.port()};
  EXPECT_TRUE(rig.until({&first}, [&] { return first.has_shaken_hands(); }));
  TlsTestClient second{rig.server.port()};
  second.send(kGetAndClose);
  EXPECT_TRUE(rig.until({&second}, [&] { return rig.server.counters().handshakes_delayed == 1; }));
  EXPECT_EQ(rig.next, rig.clock.now().steady + seconds{2});
  rig.pass(seconds{1});
  EXPECT_FALSE(second.has_shaken_hands());
  rig.pass(seconds{1});
  EXPECT_TRUE(rig.until_closed(second));
  EXPECT_THAT(second.received, EndsWith("\r\n\r\nok"));
  EXPECT_EQ(rig.server.counters().handshakes_delayed, 1U);
}

// Opens a connection from each of three addresses every 10 ms, with a ClientHello.
class Flood {
 public:
  explicit Flood(Rig& rig) : rig_(rig) {}
  void go_on() {
    rig_.clock.advance(std::chrono::milliseconds{10});
    for (const unsigned host : {1U, 2U, 3U}) {
      clients_.push_back(std::make_unique<TestClient>(rig_.server.port(), INADDR_LOOPBACK,
                                                      INADDR_LOOPBACK + host));
      clients_.back()->send("hello");
      clients_.back()->turn();
    }
    while (clients_.size() > 2 * ServerOptions{}.max_connections) {
      clients_.pop_front();
    }
    rig_.step();
  }

 private:
  Rig& rig_;
  std::deque<std::unique_ptr<TestClient>> clients_;
};

TEST(ServerOverTls, AKnownAddressIsServedDuringAFlood) {
  Rig rig{Rig::with_tls({})};
  const auto get = [&](auto meanwhile) {
    TlsTestClient client{rig.server.port()};
    client.send(kGetAndClose);
    const SteadyTime began = rig.clock.now().steady;
    while (!client.ended && rig.clock.now().steady < began + seconds{1}) {
      client.turn();
      meanwhile();
    }
    return client.received;
  };
  EXPECT_THAT(get([&] { rig.step(); }), EndsWith("\r\n\r\nok"));
  Flood flood{rig};
  for (int i = 0; i < 100; ++i) {
    flood.go_on();  // until the bucket is empty and all connections are in use
  }
  EXPECT_THAT(get([&] { flood.go_on(); }), EndsWith("\r\n\r\nok"));
}

TEST(ServerOverTls, ForgetsAClientThatLeavesBeforeItsHandshake) {
  ServerOptions options;
  options.handshakes.burst = 1;
  Rig rig{Rig::with_tls(std::move(options))};
  TlsTestClient first{rig.server.port()};
  EXPECT_TRUE(rig.until({&first}, [&] { return first.has_shaken_hands(); }));
  TlsTestClient second{rig.server.port()};
  EXPECT_TRUE(rig.until({&second}, [&] { return rig.server.counters().handshakes_delayed == 1; }));
  second.abort();
  EXPECT_TRUE(rig.until({&first}, [&] { return rig.server.counters().open == 1; }));
}

TEST(ServerOverTls, ASilentConnectionCostsNoHandshake) {
  ServerOptions options;
  options.handshakes.burst = 1;
  Rig rig{Rig::with_tls(std::move(options))};
  TestClient silent{rig.server.port()};
  TestClient gone{rig.server.port()};
  gone.half_close();
  EXPECT_TRUE(rig.until_closed(gone));
  TlsTestClient client{rig.server.port()};
  client.send(kGetAndClose);
  EXPECT_TRUE(rig.until_closed(client));
  EXPECT_EQ(rig.server.counters().handshakes_delayed, 0U);
}

TEST(ServerOverTls, HandshakesWithoutARequestAreBounded) {
  ServerOptions options;
  options.handshakes = {1, 1000};
  Rig rig{Rig::with_tls(std::move(options))};
  std::deque<std::unique_ptr<TlsTestClient>> clients;
  std::size_t warm = 0;
  for (int i = 0; i < 600; ++i) {
    clients.push_back(std::make_unique<TlsTestClient>(rig.server.port()));
    TlsTestClient& client = *clients.back();
    ASSERT_TRUE(rig.until({&client}, [&] { return client.has_shaken_hands(); }));
    if (clients.size() > ServerOptions{}.max_per_address) {
      clients.pop_front();
    }
    if (i == 200) {
      warm = allocated_bytes();
    }
  }
  EXPECT_EQ(rig.server.counters().open, ServerOptions{}.max_per_address);
  EXPECT_LT(allocated_bytes(), warm + (std::size_t{1} << 20));
}

}  // namespace server_tls_test
}  // namespace slurmlet::podapi
