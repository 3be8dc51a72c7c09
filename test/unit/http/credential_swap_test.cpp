// Credentials that are replaced under a client in use.

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "base/published.h"
#include "http/watch_server.h"

namespace slurmlet::http {
namespace credential_swap_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

// Credentials that a test replaces, and a client that uses them.
struct Swapped {
  explicit Swapped(Credentials first) : published{std::make_shared<Published<Credentials>>()} {
    published->set(std::move(first));
    auto made = make_curl_client([current = published] { return current->get(); });
    EXPECT_TRUE(made);
    client = std::move(*made);
  }
  void swap(Credentials fresh) const { published->set(std::move(fresh)); }

  std::shared_ptr<Published<Credentials>> published;
  std::unique_ptr<Client> client;
};

Credentials credentials(const TestServer& server, const std::string& common_name = "",
                        const std::string& token = "") {
  const tls::Issued own =
      common_name.empty() ? tls::Issued{} : tls::issue(pki().ca, {.common_name = common_name});
  return {endpoint_of(server), make_identity(pki().ca.certificate, own), [token] { return token; }};
}

TEST(CredentialSwap, TheSameObjectKeepsTheConnectionAndTheStream) {
  TestServer server{{pki().server}, respond_or_watch};
  const Swapped swapped{credentials(server)};
  const auto stream = open_watch(*swapped.client);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(swapped.client->call(get("/a")));
    (void)swapped.client->wait(steady_now(), {});
  }
  EXPECT_FALSE(stream->ended());
  EXPECT_EQ(server.connections(), 2);
}

TEST(CredentialSwap, ShowsTheNewClientCertificate) {
  TestServer server{{pki().server, pki().ca.certificate}, respond_ok};
  const Swapped swapped{credentials(server, "old")};
  ASSERT_TRUE(swapped.client->call(get("/a")));
  swapped.swap(credentials(server, "new"));
  ASSERT_TRUE(swapped.client->call(get("/b")));
  ASSERT_TRUE(swapped.client->call(get("/c")));
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].client_name, "old");
  EXPECT_EQ(seen[1].client_name, "new");
  EXPECT_EQ(seen[2].client_name, "new");
  EXPECT_EQ(server.connections(), 2);
  EXPECT_TRUE(server.wait_closed(1));  // the idle one of the old certificate
}

TEST(CredentialSwap, TrustsTheNewCaAndNoLongerTheOld) {
  const auto other = tls::make_self_signed({.common_name = "other-ca", .is_ca = true});
  TestServer server{{tls::issue(other, {.common_name = "s", .names = {"DNS:localhost"}})},
                    respond_ok};
  const Credentials old_ca = credentials(server);
  Credentials new_ca = old_ca;
  new_ca.identity = make_identity(other.certificate);
  const Swapped swapped{old_ca};
  const auto before = swapped.client->call(get("/a"));
  ASSERT_FALSE(before);
  EXPECT_EQ(before.error().code, Code::kDenied);
  swapped.swap(new_ca);
  EXPECT_TRUE(swapped.client->call(get("/a")));
  swapped.swap(old_ca);
  const auto after = swapped.client->call(get("/a"));
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, Code::kDenied);
}

TEST(CredentialSwap, GoesToTheNewAddress) {
  TestServer first{{pki().server}, respond_or_watch};
  TestServer second{{pki().server}, respond_or_watch};
  const Swapped swapped{credentials(first)};
  auto stream = open_watch(*swapped.client);
  ASSERT_TRUE(swapped.client->call(get("/a")));
  swapped.swap(credentials(second));
  ASSERT_TRUE(swapped.client->call(get("/b")));
  EXPECT_TRUE(first.wait_closed(1));  // the stream's
  stream.reset();
  EXPECT_TRUE(first.wait_closed(2));
  ASSERT_EQ(second.requests().size(), 1U);
  EXPECT_EQ(second.requests()[0].path, "/b");
  EXPECT_EQ(first.requests().size(), 2U);
}

TEST(CredentialSwap, EndsStreamsInOrderAndWakesTheWait) {
  TestServer server{{pki().server, pki().ca.certificate}, respond_or_watch};
  const Swapped swapped{credentials(server, "old")};
  auto stream = open_watch(*swapped.client);
  swapped.swap(credentials(server, "new"));
  EXPECT_FALSE(stream->ended());  // until the client is used
  (void)swapped.client->wait(kNever, {});
  EXPECT_TRUE(stream->ended());
  EXPECT_FALSE(stream->error());
  EXPECT_EQ(stream->status(), 200);
  EXPECT_EQ(stream->take(), "");
  EXPECT_TRUE(server.wait_closed(1));
  stream = open_watch(*swapped.client);
  EXPECT_EQ(server.requests().back().client_name, "new");
  EXPECT_FALSE(stream->ended());
}

TEST(CredentialSwap, ACallEndsTheStreamsToo) {
  TestServer server{{pki().server}, respond_or_watch};
  const Swapped swapped{credentials(server)};
  const auto stream = open_watch(*swapped.client);
  swapped.swap(credentials(server));
  ASSERT_TRUE(swapped.client->call(get("/a")));
  EXPECT_TRUE(stream->ended());
  EXPECT_FALSE(stream->error());
  (void)swapped.client->wait(kNever, {});  // the end is news for it
}

TEST(CredentialSwap, AStreamThatHasNoHeadersYetEndsToo) {
  Event asked;
  TestServer server{{pki().server}, [&](Exchange& exchange) {
                      asked.set();
                      exchange.wait_for_client_to_close();
                    }};
  const Swapped swapped{credentials(server)};
  const auto unconnected = swapped.client->open_stream(get("/watch"));
  swapped.swap(credentials(server));
  (void)swapped.client->wait(kNever, {});
  EXPECT_TRUE(unconnected->ended());
  EXPECT_FALSE(unconnected->error());
  const auto silent = swapped.client->open_stream(get("/watch"));
  std::thread swapper{[&] {
    asked.wait();
    swapped.swap(credentials(server));
  }};
  const SteadyTime patience = steady_now() + 10s;
  while (!silent->ended() && steady_now() < patience) {
    (void)swapped.client->wait(steady_now() + 10ms, {});
  }
  swapper.join();
  EXPECT_TRUE(silent->ended());
  EXPECT_FALSE(silent->error());
  EXPECT_EQ(silent->status(), 0);
}

TEST(CredentialSwap, LeavesACallUnderWayAlone) {
  std::function<void()> swap;
  TestServer server{{pki().server, pki().ca.certificate}, [&](Exchange& exchange) {
                      if (exchange.request().path == "/slow") {
                        swap();
                      }
                      exchange.respond(200, exchange.request().client_name);
                    }};
  const Swapped swapped{credentials(server, "old")};
  swap = [&] { swapped.swap(credentials(server, "new")); };
  for (const char* name : {"old", "new"}) {
    const auto response = swapped.client->call(get("/slow"));
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->body, name);
  }
}

TEST(CredentialSwap, KeepsTheOldWhenTheNewUrlIsNone) {
  TestServer server{{pki().server}, respond_or_watch};
  const Credentials good = credentials(server);
  const Swapped swapped{good};
  const auto old_object = swapped.published->get();
  auto object = old_object;
  auto made = make_curl_client([&object] { return object; });
  ASSERT_TRUE(made);
  Client& client = **made;
  const auto stream = open_watch(client);
  ASSERT_TRUE(client.call(get("/a")));

  Credentials bad = good;
  bad.endpoint.url = "ftp://elsewhere";
  object = std::make_shared<const Credentials>(bad);
  for (int i = 0; i < 2; ++i) {
    const auto response = client.call(get("/a"));
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, Code::kInvalid);
    EXPECT_THAT(response.error().message, HasSubstr("ftp://elsewhere"));
  }
  const auto refused = client.open_stream(get("/watch"));
  ASSERT_TRUE(refused->error());
  EXPECT_THAT(refused->error()->message, HasSubstr("ftp://elsewhere"));
  (void)client.wait(steady_now(), {});
  EXPECT_FALSE(stream->ended());

  bad.endpoint = good.endpoint;
  bad.identity = nullptr;
  object = std::make_shared<const Credentials>(bad);
  EXPECT_EQ(client.call(get("/a")).error().code, Code::kInternal);

  object = old_object;
  EXPECT_TRUE(client.call(get("/a")));
  EXPECT_FALSE(stream->ended());
  EXPECT_EQ(server.connections(), 2);

  object = std::make_shared<const Credentials>(good);
  EXPECT_TRUE(client.call(get("/a")));
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(server.connections(), 3);
}

TEST(CredentialSwap, KeepsTheOldIdentityAsLongAsATransferUsesIt) {
  TestServer server{{pki().server}, respond_or_watch};
  Credentials first = credentials(server, "old");
  const std::weak_ptr<const tls::ClientIdentity> identity = first.identity;
  const Swapped swapped{std::move(first)};
  first = {};
  auto connecting = swapped.client->open_stream(get("/watch"));
  swapped.swap(credentials(server, "new"));
  (void)swapped.client->wait(kNever, {});
  EXPECT_FALSE(identity.expired());
  connecting.reset();
  EXPECT_TRUE(identity.expired());
}

TEST(CredentialSwap, SurvivesSwapsByAnotherThreadAllTheTime) {
  TestServer server{{pki().server}, respond_ok};
  const Swapped swapped{credentials(server)};
  const auto one = credentials(server, "one");
  const auto two = credentials(server, "two");
  std::atomic<bool> done = false;
  std::thread swapper{[&] {
    for (int i = 0; !done; ++i) {
      swapped.swap(i % 2 == 0 ? one : two);
      std::this_thread::yield();
    }
  }};
  for (int i = 0; i < 20; ++i) {
    const auto response = swapped.client->call(get("/a"));
    EXPECT_TRUE(response) << response.error().message;
  }
  done = true;
  swapper.join();
}

TEST(MakeCurlClient, RefusesASourceThatGivesNothing) {
  EXPECT_EQ(make_curl_client(CredentialSource{[] { return nullptr; }}).error().code,
            Code::kInternal);
}

}  // namespace credential_swap_test
}  // namespace slurmlet::http
