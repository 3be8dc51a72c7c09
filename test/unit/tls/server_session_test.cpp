#include "tls/server_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>

#include "tls/pem.h"
#include "tls/server_session_fixture.h"

namespace slurmlet::tls {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string read_text(ServerSession& session) {
  char buffer[256];
  const auto io = session.read(buffer, sizeof buffer);
  return io.state == State::kDone ? std::string(buffer, io.bytes) : std::string{};
}

class ServerSessionVersion : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Tls, ServerSessionVersion, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION),
                         [](const auto& test) {
                           return test.param == TLS1_2_VERSION ? "Tls12" : "Tls13";
                         });

TEST_P(ServerSessionVersion, CarriesBytesBothWaysAndSaysGoodBye) {
  Pair pair{{.min_version = GetParam(), .max_version = GetParam(), .protocols = "\x08http/1.1"}};
  char buffer[64];
  EXPECT_EQ(pair.server->read(buffer, sizeof buffer).state, State::kWantRead);
  ASSERT_EQ(pair.handshake(), State::kDone) << pair.client.error();
  EXPECT_EQ(SSL_version(pair.client.ssl()), GetParam());
  const unsigned char* protocol = nullptr;
  unsigned int length = 0;
  SSL_get0_alpn_selected(pair.client.ssl(), &protocol, &length);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(protocol), length), "http/1.1");

  EXPECT_EQ(pair.server->read(buffer, sizeof buffer).state, State::kWantRead);
  ASSERT_TRUE(pair.client.write("GET /"));
  EXPECT_EQ(read_text(*pair.server), "GET /");
  const auto written = pair.server->write("200 OK");
  EXPECT_EQ(written.state, State::kDone);
  EXPECT_EQ(written.bytes, 6U);
  EXPECT_EQ(pair.client.read(), "200 OK");

  pair.server->close();
  EXPECT_EQ(pair.client.read(), "");
  EXPECT_EQ(pair.client.error(), "closed");
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

TEST_P(ServerSessionVersion, TellsAnOrderlyEndFromACut) {
  const ClientSpec spec{.min_version = GetParam(), .max_version = GetParam()};
  char buffer[8];
  Pair orderly{spec};
  ASSERT_EQ(orderly.handshake(), State::kDone);
  orderly.client.close();
  EXPECT_EQ(orderly.server->read(buffer, sizeof buffer).state, State::kClosed);
  Pair cut{spec};
  ASSERT_EQ(cut.handshake(), State::kDone);
  cut.sockets.client.reset();
  EXPECT_EQ(cut.server->read(buffer, sizeof buffer).state, State::kFailed);
  EXPECT_EQ(cut.server->read(buffer, sizeof buffer).state, State::kFailed);
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

// Also the proof that there is no SIGPIPE: it would end the test program.
TEST_P(ServerSessionVersion, WritingToAPeerThatIsGoneFails) {
  Pair pair{{.min_version = GetParam(), .max_version = GetParam()}};
  ASSERT_EQ(pair.handshake(), State::kDone);
  pair.sockets.client.reset();
  EXPECT_EQ(pair.server->write("hello").state, State::kFailed);
  pair.server->close();
}

TEST_P(ServerSessionVersion, HasBufferedTellsOfBytesThatPollDoesNot) {
  Pair pair{{.min_version = GetParam(), .max_version = GetParam()}};
  EXPECT_FALSE(pair.server->has_buffered());
  ASSERT_EQ(pair.handshake(), State::kDone);
  EXPECT_FALSE(pair.server->has_buffered());
  ASSERT_TRUE(pair.client.write("abcdef"));
  char two[2];
  EXPECT_EQ(pair.server->read(two, sizeof two).bytes, 2U);
  EXPECT_TRUE(pair.server->has_buffered());
  EXPECT_EQ(read_text(*pair.server), "cdef");
  EXPECT_FALSE(pair.server->has_buffered());
}

TEST_P(ServerSessionVersion, FullSocketAsksToComeBackAndLosesNothing) {
  Pair pair{{.min_version = GetParam(), .max_version = GetParam()}};
  ASSERT_EQ(pair.handshake(), State::kDone);
  std::string sent(std::size_t{1} << 20, 'x');
  for (std::size_t i = 0; i < sent.size(); ++i) {
    sent[i] = static_cast<char>('a' + i % 23);
  }
  std::string got;
  std::size_t done = 0;
  bool was_full = false;
  while (done < sent.size()) {
    // From another place in memory each time, as a buffer that moves.
    const std::string rest = sent.substr(done);
    const auto io = pair.server->write(rest);
    if (io.state == State::kWantWrite) {
      was_full = true;
      got += pair.client.read();
      continue;
    }
    ASSERT_EQ(io.state, State::kDone) << pair.client.error();
    done += io.bytes;
  }
  got += pair.client.read();
  EXPECT_TRUE(was_full);
  EXPECT_TRUE(got == sent);
}

TEST_P(ServerSessionVersion, BelievesAValidClientCertificate) {
  Pair pair{{.certificate = server_pki().client.certificate,
             .key = server_pki().client.key,
             .min_version = GetParam(),
             .max_version = GetParam()}};
  EXPECT_FALSE(pair.server->client_certificate());
  ASSERT_EQ(pair.handshake(), State::kDone) << pair.client.error();
  const auto certificate = pair.server->client_certificate();
  ASSERT_TRUE(certificate);
  EXPECT_EQ(certificate->common_name, "prometheus");
  EXPECT_THAT(certificate->organizations, testing::ElementsAre("monitoring"));
}

TEST_P(ServerSessionVersion, NeedsNoClientCertificate) {
  Pair pair{{.min_version = GetParam(), .max_version = GetParam()}};
  ASSERT_EQ(pair.handshake(), State::kDone) << pair.client.error();
  EXPECT_FALSE(pair.server->client_certificate());
  const auto* authorities = SSL_get0_peer_CA_list(pair.client.ssl());
  ASSERT_EQ(sk_X509_NAME_num(authorities), 1);
}

TEST_P(ServerSessionVersion, WithoutClientCaAsksForNoCertificate) {
  ServerPem pem = server_pem();
  pem.client_ca.reset();
  Pair pair{{.certificate = server_pki().client.certificate,
             .key = server_pki().client.key,
             .min_version = GetParam(),
             .max_version = GetParam()},
            pem};
  ASSERT_EQ(pair.handshake(), State::kDone) << pair.client.error();
  EXPECT_FALSE(pair.server->client_certificate());
}

// What is wrong with a client certificate.
std::string problem(const Issued& shown) {
  const auto trust = parse_trust(server_pki().ca.certificate, "ca");
  const auto own = parse_credential(shown.certificate, "certificate", shown.key, "key");
  const std::unique_ptr<X509_STORE_CTX, Releaser<X509_STORE_CTX_free>> chain{X509_STORE_CTX_new()};
  require(X509_STORE_CTX_init(chain.get(), trust->get(), own->leaf.get(), own->chain.get()) == 1 &&
          X509_STORE_CTX_set_default(chain.get(), "ssl_client") == 1);
  X509_verify_cert(chain.get());
  ERR_clear_error();
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(chain.get()));
}

struct Disbelieved {
  const char* name;
  Issued (*make)();
  const char* problem;
};

using namespace std::chrono_literals;
const auto kNow = std::chrono::system_clock::now();

class ServerSessionDisbelieves : public testing::TestWithParam<std::tuple<Disbelieved, int>> {};
INSTANTIATE_TEST_SUITE_P(
    Certificates, ServerSessionDisbelieves,
    testing::Combine(
        testing::Values(
            Disbelieved{"Expired",
                        [] {
                          return issue(server_pki().ca, {.common_name = "a",
                                                         .not_before = kNow - 2h,
                                                         .not_after = kNow - 1h});
                        },
                        "certificate has expired"},
            Disbelieved{"NotYetValid",
                        [] {
                          return issue(server_pki().ca,
                                       {.common_name = "a", .not_before = kNow + 30min});
                        },
                        "certificate is not yet valid"},
            Disbelieved{"OfAnotherCa",
                        [] { return issue(server_pki().other_ca, {.common_name = "a"}); },
                        "unable to get local issuer certificate"},
            Disbelieved{"OfACaOfTheSameName",
                        [] {
                          const Issued fake =
                              make_self_signed({.common_name = "kubernetes", .is_ca = true});
                          return issue(fake, {.common_name = "a"});
                        },
                        "certificate signature failure"},
            Disbelieved{"ForServersOnly", [] { return server_pki().server; },
                        "unsuitable certificate purpose"},
            Disbelieved{
                "SelfSigned",
                [] { return make_self_signed(CertificateSpec{.common_name = "system:masters"}); },
                "self-signed certificate"},
            Disbelieved{"OfALeafThatIsNoCa",
                        [] {
                          Issued made = issue(server_pki().client, {.common_name = "a"});
                          made.certificate += server_pki().client.certificate;
                          return made;
                        },
                        "invalid CA certificate"}),
        testing::Values(TLS1_2_VERSION, TLS1_3_VERSION)),
    [](const auto& test) {
      return std::string{std::get<0>(test.param).name} +
             (std::get<1>(test.param) == TLS1_2_VERSION ? "Tls12" : "Tls13");
    });

TEST_P(ServerSessionDisbelieves, ButLetsTheClientIn) {
  const auto& [wrong, version] = GetParam();
  const Issued shown = wrong.make();
  ASSERT_EQ(problem(shown), wrong.problem);
  Pair pair{{.certificate = shown.certificate,
             .key = shown.key,
             .min_version = version,
             .max_version = version}};
  ASSERT_EQ(pair.handshake(), State::kDone) << pair.client.error();
  EXPECT_FALSE(pair.server->client_certificate());
  ASSERT_TRUE(pair.client.write("GET /"));
  EXPECT_EQ(read_text(*pair.server), "GET /");
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

TEST(ServerSession, BelievesThroughAnIntermediateOnEitherSide) {
  const Issued middle = issue(server_pki().ca, {.common_name = "middle", .is_ca = true});
  const Issued leaf = issue(middle, {.common_name = "leaf"});
  Pair sent{{.certificate = leaf.certificate + middle.certificate, .key = leaf.key}};
  ASSERT_EQ(sent.handshake(), State::kDone);
  EXPECT_TRUE(sent.server->client_certificate());
  // The intermediate as the anchor, as Go has it.
  ServerPem pem = server_pem();
  pem.client_ca = middle.certificate;
  Pair anchored{{.certificate = leaf.certificate, .key = leaf.key}, pem};
  ASSERT_EQ(anchored.handshake(), State::kDone);
  EXPECT_TRUE(anchored.server->client_certificate());
}

TEST(ServerSession, OutlivesItsIdentity) {
  Pair pair;
  pair.identity.reset();
  ASSERT_EQ(pair.handshake(), State::kDone);
}

struct Refused {
  const char* name;
  ClientSpec client;
  const char* alert;
};
class ServerSessionRefuses : public testing::TestWithParam<Refused> {};
INSTANTIATE_TEST_SUITE_P(
    Clients, ServerSessionRefuses,
    testing::Values(
        Refused{"Tls10",
                {.min_version = TLS1_VERSION, .max_version = TLS1_VERSION},
                "protocol version"},
        Refused{"Tls11",
                {.min_version = TLS1_1_VERSION, .max_version = TLS1_1_VERSION},
                "protocol version"},
        Refused{"CbcSuite",
                {.max_version = TLS1_2_VERSION, .ciphers = "ECDHE-ECDSA-AES128-SHA"},
                "handshake failure"},
        Refused{"Http2Only", {.protocols = std::string{"\x02h2"}}, "no application protocol"},
        Refused{"CostlyGroup",
                {.min_version = TLS1_3_VERSION, .groups = "ffdhe8192"},
                "handshake failure"}),
    [](const auto& test) { return test.param.name; });

TEST_P(ServerSessionRefuses, WithAnAlert) {
  Pair pair{GetParam().client};
  EXPECT_EQ(pair.handshake(), State::kFailed);
  EXPECT_THAT(pair.client.error(), HasSubstr(GetParam().alert));
  EXPECT_EQ(pair.server->handshake(), State::kFailed);
  EXPECT_FALSE(pair.server->client_certificate());
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

struct BadPem {
  const char* name;
  void (*damage)(ServerPem&);
  const char* source;
  const char* words;
};
class ServerIdentityRefuses : public testing::TestWithParam<BadPem> {};
INSTANTIATE_TEST_SUITE_P(
    Sources, ServerIdentityRefuses,
    testing::Values(BadPem{"NoCertificate", [](ServerPem& pem) { pem.certificate.clear(); },
                           "/pki/serving.crt: ", "no PEM certificate"},
                    BadPem{"CaEmpty", [](ServerPem& pem) { pem.client_ca = ""; },
                           "/pki/ca.crt: ", "no PEM certificate"}),
    [](const auto& test) { return test.param.name; });

TEST_P(ServerIdentityRefuses, NamingSourceAndCure) {
  ServerPem pem = server_pem();
  GetParam().damage(pem);
  const auto identity = ServerIdentity::make(pem);
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code, Code::kInvalid);
  EXPECT_THAT(identity.error().message, StartsWith(GetParam().source));
  EXPECT_THAT(identity.error().message, HasSubstr(GetParam().words));
  EXPECT_THAT(identity.error().message, HasSubstr(";"));
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

TEST(ServerIdentity, SummarizesTheServingCertificate) {
  const auto identity = ServerIdentity::make(server_pem());
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ((*identity)->certificate().common_name, "n1");
  EXPECT_THAT((*identity)->certificate().dns_names, testing::ElementsAre("n1"));
}

}  // namespace
}  // namespace slurmlet::tls
