// Who is trusted, what is shown, and by which way the server is reached.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "http/client_fixture.h"
#include "http/connect_proxy.h"

namespace slurmlet::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

// Sets an environment variable for the duration of a test.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedEnvironment() { ::unsetenv(name_); }
  ScopedEnvironment(const ScopedEnvironment&) = delete;
  ScopedEnvironment& operator=(const ScopedEnvironment&) = delete;

 private:
  const char* name_;
};

void expect_denied(Client& client, const TestServer& server, const std::string& reason) {
  const auto response = client.call(get("/secret"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kDenied);
  EXPECT_THAT(response.error().message, HasSubstr(": certificate verify failed: "));
  EXPECT_THAT(response.error().message, HasSubstr(reason));
  EXPECT_TRUE(server.requests().empty());
}

TEST(ClientTls, TrustsItsCaOnly) {
  const auto other = tls::make_self_signed({.common_name = "other-ca", .is_ca = true});
  TestServer server{{pki().server}, respond_ok};
  auto client = make_curl_client(endpoint_of(server), make_identity(other.certificate), {});
  ASSERT_TRUE(client);
  expect_denied(**client, server, "unable to get local issuer certificate");
}

TEST(ClientTls, UsesTheSystemStoreOnlyWithoutACa) {
  const std::string bundle =
      (std::filesystem::temp_directory_path() / ("slurmlet-ca-" + std::to_string(::getpid())))
          .string();
  ASSERT_TRUE(write_file_atomic(bundle, pki().ca.certificate, 0600));
  const ScopedEnvironment environment{"SSL_CERT_FILE", bundle};
  const auto other = tls::make_self_signed({.common_name = "other-ca", .is_ca = true});
  TestServer server{{pki().server}, respond_ok};
  auto strict = make_curl_client(endpoint_of(server), make_identity(other.certificate), {});
  ASSERT_TRUE(strict);
  expect_denied(**strict, server, "unable to get local issuer certificate");
  auto relaxed = make_curl_client(endpoint_of(server), make_identity(""), {});
  ASSERT_TRUE(relaxed);
  EXPECT_TRUE((*relaxed)->call(get("/a")));
  std::filesystem::remove(bundle);
}

TEST(ClientTls, AcceptsAnIntermediateAsAnchor) {
  const auto intermediate = tls::issue(pki().ca, {.common_name = "sub-ca", .is_ca = true});
  const auto leaf = tls::issue(intermediate, {.common_name = "s", .names = {"DNS:localhost"}});
  TestServer server{{leaf}, respond_ok};
  auto client = make_curl_client(endpoint_of(server), make_identity(intermediate.certificate), {});
  ASSERT_TRUE(client);
  EXPECT_TRUE((*client)->call(get("/a")));
}

TEST(ClientTls, VerifiesTheHostName) {
  const auto elsewhere = tls::issue(pki().ca, {.common_name = "s", .names = {"DNS:elsewhere"}});
  TestServer server{{elsewhere}, respond_ok};
  expect_denied(*make_client(endpoint_of(server)), server, "localhost");
}

TEST(ClientTls, VerifiesIpAddresses) {
  TestServer server{{pki().server}, respond_ok};
  Endpoint endpoint = endpoint_of(server);
  endpoint.url = server.url("127.0.0.1");
  EXPECT_TRUE(make_client(endpoint)->call(get("/a")));
  const auto by_name = tls::issue(pki().ca, {.common_name = "s", .names = {"DNS:localhost"}});
  TestServer nameless{{by_name}, respond_ok};
  endpoint.url = nameless.url("127.0.0.1");
  expect_denied(*make_client(endpoint), nameless, "127.0.0.1");
}

TEST(ClientTls, TakesAnyServerOnlyWithAnIdentityThatVerifiesNone) {
  const auto elsewhere = tls::make_self_signed({.common_name = "s", .names = {"DNS:elsewhere"}});
  TestServer server{{elsewhere}, respond_ok};
  auto untrusting = tls::ClientIdentity::make_untrusting();
  ASSERT_TRUE(untrusting);
  auto client = make_curl_client(endpoint_of(server), *untrusting, {});
  ASSERT_TRUE(client);
  const auto response = (*client)->call(get("/a"));
  EXPECT_TRUE(response) << response.error().message;
}

TEST(ClientTls, RefusesAnExpiredCertificate) {
  const WallTime now = std::chrono::system_clock::now();
  const auto expired = tls::issue(pki().ca, {.common_name = "s",
                                             .names = {"DNS:localhost"},
                                             .not_before = now - 48h,
                                             .not_after = now - 24h});
  TestServer server{{expired}, respond_ok};
  expect_denied(*make_client(endpoint_of(server)), server, "certificate has expired");
}

TEST(ClientTls, RefusesTls11) {
  TestServer server{{pki().server, "", TLS1_1_VERSION}, respond_ok};
  const auto response = make_client(endpoint_of(server))->call(get("/a"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("version"));
  TestServer newer{{pki().server, "", TLS1_2_VERSION}, respond_ok};
  EXPECT_TRUE(make_client(endpoint_of(newer))->call(get("/a")));
}

TEST(ClientTls, ShowsItsClientCertificate) {
  TestServer server{{pki().server, pki().ca.certificate}, respond_ok};
  ASSERT_TRUE(make_client(endpoint_of(server), {}, pki().client)->call(get("/a")));
  EXPECT_EQ(server.requests().at(0).client_name, "system:node:n1");
}

TEST(ClientTls, SaysThatTheServerWantsAClientCertificate) {
  for (const int version : {TLS1_2_VERSION, 0}) {
    TestServer server{{pki().server, pki().ca.certificate, version}, respond_ok};
    const auto response = make_client(endpoint_of(server))->call(get("/a"));
    ASSERT_FALSE(response);
    EXPECT_TRUE(server.requests().empty());
    if (version == 0) {
      EXPECT_EQ(response.error().code, Code::kDenied);
      EXPECT_THAT(response.error().message, HasSubstr("rejects the client certificate"));
    }
  }
}

TEST(ClientTls, VerifiesAgainstServerNameWhileConnectingToTheHost) {
  const auto internal = tls::issue(pki().ca, {.common_name = "s", .names = {"DNS:api.internal"}});
  TestServer server{{internal}, respond_ok};
  Endpoint endpoint = endpoint_of(server);
  endpoint.url = server.url("127.0.0.1");
  endpoint.server_name = "api.internal";
  const auto client = make_client(endpoint);
  for (int i = 0; i < 2; ++i) {
    const auto response = client->call(get("/a"));
    ASSERT_TRUE(response) << response.error().message;
  }
  const auto seen = server.requests().at(0);
  EXPECT_EQ(seen.server_name, "api.internal");
  EXPECT_EQ(seen.headers.at("host"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(server.connections(), 1);  // kept alive all the same
  endpoint.server_name = "other.internal";
  const auto refused = make_client(endpoint)->call(get("/b"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDenied);
  EXPECT_THAT(refused.error().message, StartsWith("GET " + endpoint.url + "/b: "));
}

TEST(ClientProxy, TunnelsAndKeepsTheTokenFromTheProxy) {
  TestServer server{{pki().server}, respond_ok};
  ConnectProxy proxy{server.port()};
  Endpoint endpoint = endpoint_of(server);
  endpoint.proxy = proxy.url();
  const ScopedEnvironment no_proxy{"no_proxy", "*"};  // must not undo the configured proxy
  const auto client = make_client(endpoint, [] { return "t0ken"; });
  const auto response = client->call(get("/a"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_FALSE(response->retry_after);  // the proxy's headers are not the server's
  ASSERT_EQ(proxy.heads().size(), 1U);
  EXPECT_THAT(proxy.heads()[0],
              StartsWith("CONNECT localhost:" + std::to_string(server.port()) + " "));
  EXPECT_THAT(proxy.heads()[0], Not(HasSubstr("t0ken")));
  EXPECT_EQ(server.requests().at(0).headers.at("authorization"), "Bearer t0ken");
  ASSERT_TRUE(client->call(get("/a")));
  EXPECT_EQ(proxy.heads().size(), 1U);  // the tunnel is reused
}

TEST(ClientProxy, AsksTheProxyForTheRealHostWhenAServerNameIsSet) {
  const auto internal = tls::issue(pki().ca, {.common_name = "s", .names = {"DNS:api.internal"}});
  TestServer server{{internal}, respond_ok};
  ConnectProxy proxy{server.port()};
  Endpoint endpoint = endpoint_of(server);
  endpoint.url = "https://api.example:6443";
  endpoint.proxy = proxy.url();
  endpoint.server_name = "api.internal";
  const auto response = make_client(endpoint)->call(get("/a"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_THAT(proxy.heads().at(0), StartsWith("CONNECT api.example:6443 "));
  EXPECT_EQ(server.requests().at(0).server_name, "api.internal");
}

TEST(ClientProxy, ErrorsNameTheProxyAndNoPassword) {
  const struct {
    const char* proxy;
    const char* shown;
    const char* why;
  } kRows[] = {
      {"http://me:secret@127.0.0.1:1", "127.0.0.1:1", "connection refused"},
      // libcurl quotes these
      {"gopher://me:secret@127.0.0.1:1", "127.0.0.1:1", ""},
      {"http://me:secret@127.0.0.1:port", "127.0.0.1:port", ""},
  };
  for (const auto& row : kRows) {
    Endpoint endpoint{
        .url = "https://api.example:6443", .proxy = row.proxy, .server_name = "", .user_agent = ""};
    const auto response = make_client(endpoint)->call(get("/a"));
    ASSERT_FALSE(response) << row.proxy;
    EXPECT_THAT(response.error().message,
                StartsWith(std::string{"GET https://api.example:6443/a through the proxy "} +
                           row.shown + ": " + row.why));
    EXPECT_THAT(response.error().message, Not(HasSubstr("secret"))) << row.proxy;
  }
}

TEST(ClientProxy, IgnoresTheEnvironmentsProxies) {
  const ScopedEnvironment https_proxy{"https_proxy", "http://127.0.0.1:1"};
  const ScopedEnvironment all_proxy{"ALL_PROXY", "http://127.0.0.1:1"};
  TestServer server{{pki().server}, respond_ok};
  EXPECT_TRUE(make_client(endpoint_of(server))->call(get("/a")));
}

TEST(MakeCurlClient, RefusesABadUrlAndHttpsWithoutIdentity) {
  EXPECT_EQ(make_curl_client({}, make_identity(""), {}).error().code, Code::kInvalid);
  const Endpoint endpoint{.url = "https://h", .proxy = "", .server_name = "", .user_agent = ""};
  EXPECT_EQ(make_curl_client(endpoint, nullptr, {}).error().code, Code::kInternal);
}

}  // namespace
}  // namespace slurmlet::http
