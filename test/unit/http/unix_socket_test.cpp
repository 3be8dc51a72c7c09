// A server behind a unix socket, as slurmrestd is.

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/unique_fd.h"
#include "fakes/temp_tree.h"
#include "http/client_fixture.h"
#include "http/target.h"

namespace slurmlet::http {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// Answers one request with `body` and keeps its head.
class UnixServer {
 public:
  UnixServer(const std::string& path, std::string body)
      : listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}, body_{std::move(body)} {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread{[this] { serve(); }};
  }
  ~UnixServer() { thread_.join(); }
  UnixServer(const UnixServer&) = delete;
  UnixServer& operator=(const UnixServer&) = delete;

  // Valid once the answer has come.
  const std::string& head() const { return head_; }

 private:
  void serve() {
    const UniqueFd fd{::accept(listener_.get(), nullptr, nullptr)};
    char byte = 0;
    while (!head_.ends_with("\r\n\r\n") && ::read(fd.get(), &byte, 1) == 1) {
      head_ += byte;
    }
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body_.size()) + "\r\n\r\n" + body_;
    EXPECT_EQ(::write(fd.get(), answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
  }

  UniqueFd listener_;
  std::string body_;
  std::string head_;
  std::thread thread_;
};

Endpoint socket_endpoint(const std::string& path) {
  return {.url = "http://localhost",
          .proxy = "",
          .server_name = "",
          .user_agent = "slurmlet/test",
          .unix_socket = path};
}

std::unique_ptr<Client> socket_client(const std::string& path) {
  auto client = make_curl_client(socket_endpoint(path), nullptr, {});
  EXPECT_TRUE(client);
  return std::move(*client);
}

TEST(UnixSocket, CarriesARequest) {
  const fakes::TempTree tree;
  const std::string path = tree.path("s.sock").string();
  UnixServer server{path, "{}"};
  const auto client = socket_client(path);
  const auto response = client->call(get("/slurm/v0.0.38/node/n1"));
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "{}");
  EXPECT_THAT(server.head(), HasSubstr("GET /slurm/v0.0.38/node/n1 HTTP/1.1\r\n"));
  EXPECT_THAT(server.head(), HasSubstr("Host: localhost\r\n"));
}

TEST(UnixSocket, CarriesAStreamOfASibling) {
  const fakes::TempTree tree;
  const std::string path = tree.path("s.sock").string();
  const UnixServer server{path, "answer"};
  const auto first = socket_client(tree.path("other.sock").string());
  const auto made =
      make_sibling(*first, [credentials = std::make_shared<const Credentials>(Credentials{
                                socket_endpoint(path), nullptr, {}})] { return credentials; });
  ASSERT_TRUE(made);
  const auto stream = (*made)->open_stream(get("/node"));
  std::string got;
  while (!stream->ended()) {
    (void)first->wait(steady_now() + 10s, {});
    got += stream->take();
  }
  EXPECT_EQ(got, "answer");
}

TEST(UnixSocket, ThatIsNotThereIsTold) {
  const fakes::TempTree tree;
  const auto response = socket_client(tree.path("none.sock").string())->call(get("/node"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kNotFound);
  EXPECT_EQ(response.error().message,
            "GET unix:" + tree.path("none.sock").string() + ":/node: no such file or directory");
}

TEST(UnixSocket, ThatNobodyListensOnIsUnavailable) {
  const fakes::TempTree tree;
  const std::string path = tree.path("dead.sock").string();
  {
    const UniqueFd dead{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  const auto response = socket_client(path)->call(get("/node"));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("connection refused"));
}

TEST(UnixSocket, ThatWeMayNotUseIsDenied) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may use any; TransportError tells the rule";
  }
  const fakes::TempTree tree;
  const std::string path = tree.path("s.sock").string();
  UnixServer server{path, "{}"};
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const auto refused = socket_client(path)->call(get("/node"));
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(socket_client(path)->call(get("/node")));  // ends the server
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDenied);
}

TEST(UnixSocket, ItsPathMustBeOneThatCanBeConnectedTo) {
  for (const std::string& path : {std::string{"s.sock"}, "/" + std::string(107, 'x')}) {
    const auto target = make_target(socket_endpoint(path));
    ASSERT_FALSE(target) << path;
    EXPECT_EQ(target.error().code, Code::kInvalid);
    EXPECT_THAT(target.error().message, HasSubstr("unix socket " + path));
  }
  const auto longest = make_target(socket_endpoint("/" + std::string(106, 'x')));
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->shown, "unix:/" + std::string(106, 'x'));
}

}  // namespace
}  // namespace slurmlet::http
