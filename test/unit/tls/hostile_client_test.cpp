// Clients that nobody has authenticated, at their worst: what a session lets them hold and do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "tls/openssl_memory.h"
#include "tls/server_session_fixture.h"

namespace slurmlet::tls {
namespace {

using testing::HasSubstr;

// A session without a client: the test is the client.
struct Bare {
  std::shared_ptr<const ServerIdentity> identity = std::move(*ServerIdentity::make(server_pem()));
  SocketPair sockets;
  std::unique_ptr<ServerSession> server = ServerSession::make(*identity, sockets.server.get());

  bool send(std::string_view bytes) {
    return ::send(sockets.client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
};

std::string receive(int socket) {
  char buffer[4096];
  const ssize_t n = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
  return n > 0 ? std::string(buffer, static_cast<std::size_t>(n)) : std::string{};
}

std::string client_hello() {
  SocketPair sockets;
  TlsClient client{{}, sockets.client.get()};
  client.handshake();
  return receive(sockets.server.get());
}

// One record of TLS that carries `length` bytes of a handshake message.
std::string handshake_record(const std::string& body) {
  return std::string{"\x16\x03\x01"} + static_cast<char>(body.size() >> 8U) +
         static_cast<char>(body.size() & 0xffU) + body;
}

TEST(HostileClient, PlainHttpIsRecognized) {
  Bare bare;
  ASSERT_TRUE(bare.send("GET /metrics HTTP/1.1\r\nHost: n1\r\n\r\n"));
  EXPECT_EQ(bare.server->handshake(), State::kFailed);
  EXPECT_TRUE(bare.server->got_plain_http());
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

TEST(HostileClient, NoiseFails) {
  for (const char* noise : {"SSH-2.0-OpenSSH_9.2\r\n", "\x80\x80\x80\x80\x80\x80\x80\x80",
                            "\x16\x03\x01\xff\xff\xff\xff\xff\xff"}) {
    Bare bare;
    ASSERT_TRUE(bare.send(noise));
    EXPECT_EQ(bare.server->handshake(), State::kFailed) << noise;
    EXPECT_FALSE(bare.server->got_plain_http()) << noise;
    EXPECT_EQ(ERR_peek_error(), 0UL) << noise;
  }
}

TEST(HostileClient, LeavingBeforeTheHandshakeFails) {
  Bare bare;
  EXPECT_EQ(bare.server->handshake(), State::kWantRead);
  bare.sockets.client.reset();
  EXPECT_EQ(bare.server->handshake(), State::kFailed);
  bare.server->close();
}

TEST(HostileClient, HalfAHandshakeWaitsAndDoesNotGrow) {
  const std::string hello = client_hello();
  ASSERT_GT(hello.size(), 100U);
  Bare bare;
  ASSERT_TRUE(bare.send(hello.substr(0, 1)));
  ASSERT_EQ(bare.server->handshake(), State::kWantRead);
  // The first whole record header sizes the buffers; from there on nothing may be added.
  ASSERT_TRUE(bare.send(hello.substr(1, 5)));
  ASSERT_EQ(bare.server->handshake(), State::kWantRead);
  const std::size_t held = openssl_bytes();
  for (std::size_t i = 6; i + 1 < hello.size(); ++i) {
    ASSERT_TRUE(bare.send(hello.substr(i, 1)));
    ASSERT_EQ(bare.server->handshake(), State::kWantRead) << i;
  }
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(bare.server->handshake(), State::kWantRead);
  }
  EXPECT_EQ(openssl_bytes(), held);
  EXPECT_FALSE(bare.server->has_buffered());
}

TEST(HostileClient, EndlessHelloIsCutAndItsMemoryGivenBack) {
  Bare bare;
  const std::size_t before = openssl_bytes();
  restart_openssl_peak();
  // A hello that claims the most OpenSSL takes (131396 bytes) and comes in records of 1 KiB.
  std::string body(1024, '\0');
  body.replace(0, 4, std::string("\x01\x02\x00\x44", 4));
  State state = bare.server->handshake();
  std::size_t sent = 0;
  while (state == State::kWantRead && sent < (std::size_t{1} << 20)) {
    ASSERT_TRUE(bare.send(handshake_record(body)));
    sent += 5 + body.size();
    body.assign(1024, '\0');
    state = bare.server->handshake();
  }
  EXPECT_EQ(state, State::kFailed);
  EXPECT_LE(sent, ServerSession::kMaxHandshakeBytes + 2048);
  EXPECT_LT(openssl_peak() - before, std::size_t{256} << 10);
  bare.server.reset();
  EXPECT_LT(openssl_bytes(), before);
}

TEST(HostileClient, LongCertificateChainIsRefused) {
  Issued shown = server_pki().client;
  while (shown.certificate.size() < std::size_t{60} << 10) {
    shown.certificate += server_pki().ca.certificate;
  }
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    restart_openssl_peak();
    Pair pair{{.certificate = shown.certificate,
               .key = shown.key,
               .min_version = version,
               .max_version = version}};
    EXPECT_EQ(pair.handshake(), State::kFailed);
    if (!pair.client.has_failed()) {
      pair.client.read();
    }
    EXPECT_THAT(pair.client.error(), HasSubstr("illegal parameter"));
  }
}

TEST(HostileClient, RenegotiationIsRefused) {
  Pair pair{{.max_version = TLS1_2_VERSION}};
  ASSERT_EQ(pair.handshake(), State::kDone);
  ASSERT_EQ(SSL_renegotiate(pair.client.ssl()), 1);
  char buffer[64];
  EXPECT_FALSE(pair.client.handshake());
  EXPECT_EQ(pair.server->read(buffer, sizeof buffer).state, State::kWantRead);
  EXPECT_FALSE(pair.client.handshake());
  EXPECT_THAT(pair.client.error(), HasSubstr("no renegotiation"));
}

State update_keys(Pair& pair, int times, bool with_content) {
  char buffer[64];
  State state = State::kWantRead;
  for (int i = 0; i < times && state != State::kFailed; ++i) {
    SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    pair.client.handshake();
    if (with_content) {
      pair.client.write("x");
    }
    state = pair.server->read(buffer, sizeof buffer).state;
    pair.client.read();
  }
  return state;
}

// Content beside them, or another request, does not make them cheaper.
TEST(HostileClient, ManyKeyUpdatesEndTheSession) {
  for (const bool with_content : {false, true}) {
    Pair pair{{.min_version = TLS1_3_VERSION}};
    ASSERT_EQ(pair.handshake(), State::kDone);
    ASSERT_NE(update_keys(pair, ServerSession::kMaxKeyUpdates, with_content), State::kFailed);
    pair.server->begin_request();
    EXPECT_EQ(update_keys(pair, 100, with_content), State::kFailed) << with_content;
  }
}

TEST(HostileClient, ContentInTinyRecordsIsBoundedForARequest) {
  Pair pair;
  ASSERT_EQ(pair.handshake(), State::kDone);
  char byte = 0;
  const auto take = [&](std::size_t times) {
    State state = State::kDone;
    for (std::size_t i = 0; i < times && state == State::kDone; ++i) {
      pair.client.write("x");
      state = pair.server->read(&byte, 1).state;
    }
    return state;
  };
  ASSERT_EQ(take(1000), State::kDone);
  pair.server->begin_request();
  ASSERT_EQ(take(1000), State::kDone);
  EXPECT_EQ(take(2000), State::kFailed);
}

// All of them in the socket before one read: a single call must not chew through what the peer can
// send without end.
TEST(HostileClient, OneReadTakesABoundedNumberOfBytes) {
  Pair pair{{.min_version = TLS1_3_VERSION}};
  ASSERT_EQ(pair.handshake(), State::kDone);
  BIO* collected = BIO_new(BIO_s_mem());
  SSL_set0_wbio(pair.client.ssl(), collected);
  while (BIO_pending(collected) <= static_cast<int>(ServerSession::kMaxRequestBytes)) {
    SSL_key_update(pair.client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    ASSERT_TRUE(pair.client.handshake());
  }
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(collected, &bytes);
  ASSERT_EQ(::send(pair.sockets.client.get(), bytes, static_cast<std::size_t>(length), 0), length);
  char buffer[64];
  EXPECT_EQ(pair.server->read(buffer, sizeof buffer).state, State::kFailed);
  int left = 0;
  ASSERT_EQ(::ioctl(pair.sockets.server.get(), FIONREAD, &left), 0);
  EXPECT_GT(left, length / 2)
      << "ended by the number of key updates, long before the bytes allowed";
}

TEST(HostileClient, IdleSessionsAreSmall) {
  const Pair first;  // what is made once for all
  std::vector<std::unique_ptr<Bare>> bares;
  for (int i = 0; i < 8; ++i) {
    bares.push_back(std::make_unique<Bare>());
  }
  std::vector<std::unique_ptr<ServerSession>> sessions;
  const std::size_t before = openssl_bytes();
  for (const auto& bare : bares) {
    sessions.push_back(ServerSession::make(*first.identity, bare->sockets.server.get()));
    TlsClient client{
        {.certificate = server_pki().client.certificate, .key = server_pki().client.key},
        bare->sockets.client.get()};
    State state = State::kWantRead;
    while (!client.handshake() || state == State::kWantRead) {
      ASSERT_FALSE(client.has_failed()) << client.error();
      state = sessions.back()->handshake();
    }
    ASSERT_EQ(state, State::kDone);
    char buffer[8];
    EXPECT_EQ(sessions.back()->read(buffer, sizeof buffer).state, State::kWantRead);
  }
  const std::size_t each = (openssl_bytes() - before) / bares.size();
  RecordProperty("bytes_per_idle_session", static_cast<int>(each));
  EXPECT_LT(each, std::size_t{48} << 10);
}

}  // namespace
}  // namespace slurmlet::tls
