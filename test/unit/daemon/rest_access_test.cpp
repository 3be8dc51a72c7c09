#include "daemon/rest_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <semaphore>
#include <thread>

#include "fakes/fake_clock.h"
#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::daemon {
namespace {

using testing::HasSubstr;

class RestAccessTest : public testing::Test {
 protected:
  RestAccessTest() { ::unsetenv("SLURM_JWT"); }
  ~RestAccessTest() override { ::unsetenv("SLURM_JWT"); }

  RestAccess make(const std::string& url) { return {settings_, url, clock_}; }
  static std::string ca(const std::string& name) {
    return tls::make_self_signed({.common_name = name, .is_ca = true}).certificate;
  }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  config::SlurmSettings settings_;
};

TEST_F(RestAccessTest, ASocketNeedsNeitherCaNorToken) {
  ::setenv("SLURM_JWT", "for-sinfo", 1);
  RestAccess access = make("unix:/run/slurmrestd.socket");
  ASSERT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials()->endpoint.unix_socket, "/run/slurmrestd.socket");
  EXPECT_EQ(access.credentials()->endpoint.url, "http://localhost");
  EXPECT_FALSE(access.credentials()->token);  // never Authorization
  EXPECT_EQ(access.token().text, "");
}

TEST_F(RestAccessTest, APortTakesTheTokenOfTheEnvironment) {
  ::setenv("SLURM_JWT", "a.b.c", 1);
  RestAccess access = make("http://127.0.0.1:6820");
  ASSERT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials()->endpoint.url, "http://127.0.0.1:6820");
  EXPECT_EQ(access.credentials()->endpoint.unix_socket, "");
  EXPECT_EQ(access.token().text, "a.b.c");
  EXPECT_EQ(access.token().where, "SLURM_JWT");
}

TEST_F(RestAccessTest, LocalhostIsOneAddress) {
  RestAccess access = make("http://localhost:6820");
  ASSERT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials()->endpoint.url, "http://127.0.0.1:6820");
}

TEST_F(RestAccessTest, AConfiguredTokenFileWinsAndIsReadAgain) {
  ::setenv("SLURM_JWT", "of.the.environment", 1);
  tree_.file("jwt", "first\n");
  settings_.jwt_file = tree_.path("jwt").string();
  for (const char* url : {"unix:/s", "https://head:6820"}) {
    tree_.file("jwt", "first\n");
    RestAccess access = make(url);
    EXPECT_EQ(access.token().text, "first");
    EXPECT_EQ(access.token().where, settings_.jwt_file);
    tree_.file("jwt", "second one\n").file("jwt", "another\n");
    clock_.advance(TokenFile::kCheckInterval);
    EXPECT_EQ(access.token().text, "another");
    EXPECT_FALSE(access.token().problem);
  }
}

TEST_F(RestAccessTest, AMissingTokenFileIsAProblemUntilItIsThere) {
  settings_.jwt_file = tree_.path("jwt").string();
  RestAccess access = make("https://head:6820");
  ASSERT_TRUE(access.token().problem);
  EXPECT_THAT(access.token().problem->message, HasSubstr(settings_.jwt_file));
  tree_.file("jwt", "there");
  clock_.advance(TokenFile::kCheckInterval);
  EXPECT_EQ(access.token().text, "there");
  EXPECT_FALSE(access.token().problem);
}

TEST_F(RestAccessTest, AReplacedCaMakesOtherCredentialsAndTheSameOneDoesNot) {
  tree_.file("ca.pem", ca("first"));
  settings_.rest_ca_file = tree_.path("ca.pem").string();
  RestAccess access = make("https://head:6820");
  ASSERT_TRUE(access.refresh());
  const auto first = access.credentials();
  ASSERT_TRUE(first->identity);
  ASSERT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), first);
  tree_.file("ca.new", ca("second"));
  std::filesystem::last_write_time(
      tree_.path("ca.new"),
      std::filesystem::last_write_time(tree_.path("ca.pem")) + std::chrono::seconds{1});
  std::filesystem::rename(tree_.path("ca.new"), tree_.path("ca.pem"));
  ASSERT_TRUE(access.refresh());
  EXPECT_NE(access.credentials(), first);
}

TEST_F(RestAccessTest, AUselessCaLeavesTheOldOneInUse) {
  tree_.file("ca.pem", ca("first"));
  settings_.rest_ca_file = tree_.path("ca.pem").string();
  RestAccess access = make("https://head:6820");
  ASSERT_TRUE(access.refresh());
  const auto first = access.credentials();
  const auto time = std::filesystem::last_write_time(tree_.path("ca.pem"));
  tree_.file("ca.pem", "no certificate");
  std::filesystem::last_write_time(tree_.path("ca.pem"), time + std::chrono::seconds{1});
  EXPECT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), first);
  tree_.remove("ca.pem");
  EXPECT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), first);
}

TEST_F(RestAccessTest, ACaFileThatHangsIsNamedAndLeavesTheOldOneInUse) {
  tree_.file("ca.pem", ca("first"));
  settings_.rest_ca_file = tree_.path("ca.pem").string();
  RestAccess access = make("https://head:6820");
  const std::string problem = settings_.rest_ca_file + " does not answer";
  {
    fakes::HangingFile hanging{settings_.rest_ca_file};
    EXPECT_FALSE(access.refresh());
    hanging.wait();
    const Status late = access.refresh();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error(), (Error{Code::kTimeout, problem}));
  }
  while (!access.refresh()) {
    std::this_thread::yield();
  }
  const auto first = access.credentials();
  const fakes::HangingFile hanging{settings_.rest_ca_file};
  testing::internal::CaptureStderr();
  EXPECT_TRUE(access.refresh());
  EXPECT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), first);
  const std::string log = testing::internal::GetCapturedStderr();
  const auto said = log.find(problem + "; the old one stays in use");
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("does not answer", said + problem.size()), std::string::npos) << log;
}

TEST_F(RestAccessTest, WithoutAnyCaThereIsNothingToGoOnWithUntilOneComes) {
  settings_.rest_ca_file = tree_.path("ca.pem").string();
  RestAccess access = make("https://head:6820");
  const Status missing = access.refresh();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr(settings_.rest_ca_file));
  tree_.file("ca.pem", ca("late"));
  EXPECT_TRUE(access.refresh());
  EXPECT_TRUE(access.credentials()->identity);
}

TEST(RestListener, OnlySystemUsersAndOurOwnAreTrusted) {
  const auto line = [](const std::string& address, uid_t uid) {
    return " 0: " + address + ":1AA4 0:0 0A 0:0 00:0 0 " + std::to_string(uid) +
           " 0 4711 1 0 100 0 0 10 0\n";
  };
  const std::string v4 = "0100007F", all = "00000000", second = "0200007F";
  const std::string v6 = "00000000000000000000000001000000", all6(32, '0');
  const uid_t user = ::geteuid() == 1234 ? 4321 : 1234;
  const struct {
    const char* url;
    std::string tcp, tcp6;
    std::string problem;  // "" = none
    std::optional<uid_t> server_user = {};
  } rows[] = {
      {"http://127.0.0.1:6820", line(v4, 64), "", ""},
      {"http://127.0.0.1:6820", line(all, 0), "", ""},
      {"http://127.0.0.1:6820", line(v4, ::geteuid()), "", ""},
      {"http://127.0.0.1:6820", line(v4, user), "", "uid " + std::to_string(user)},
      {"http://127.0.0.1:6820", line(v4, 1000), "", "uid 1000"},
      {"http://127.0.0.1:6820", line(v4, 999), "", ""},
      {"http://127.0.0.1:6820", "", line(all6, user), "not trusted"},
      {"http://127.0.0.1:6820", line(v4, 999), line(v6, user), ""},  // that is another address
      {"http://127.0.0.1:6820", line(second, user), "", "nothing listens"},
      {"http://127.0.0.1:6820", "", "", "nothing listens"},
      {"http://127.0.0.1:6821", line(v4, 999), "", "nothing listens"},
      {"http://[::1]:6820", line(v4, 999), line(v6, user), "not trusted"},
      {"http://[::1]:6820", line(v4, user), line(v6, 999), ""},
      {"http://localhost:6820", line(v4, 999), "", ""},
      {"http://localhost:6820", "", line(v6, 999), "nothing listens"},
      {"http://localhost:6820", line(v4, 999), line(v6, user), ""},  // 127.0.0.1 is meant
      {"http://127.0.0.1", line(v4, 999), "", "nothing listens"},    // port 80
      {"http://127.0.0.1:6820", line(v4, 61234), "", "", 61234},
      {"http://127.0.0.1:6820", line(v4, 0), "", "", 61234},
      {"http://127.0.0.1:6820", line(v4, 999), "", "not slurmrestd's user", 61234},
      {"https://head:6820", "", "", ""},
      {"unix:/run/slurmrestd.socket", "", "", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.url + row.tcp + row.tcp6);
    fakes::TempTree proc;
    proc.file("net/tcp", row.tcp).file("net/tcp6", row.tcp6);
    const Status trusted = check_rest_listener(row.url, row.server_user, proc.root().string());
    EXPECT_EQ(trusted.has_value(), row.problem.empty());
    if (!trusted) {
      EXPECT_THAT(trusted.error().message, HasSubstr(row.problem));
    }
  }
  fakes::TempTree no_proc;
  EXPECT_FALSE(check_rest_listener("http://127.0.0.1:6820", {}, no_proc.root().string()));
}

// Nobody listens there, so that is what a connection that looks says.
TEST_F(RestAccessTest, AConnectionLooksAtTheListenerOfPlainHttp) {
  auto first = http::make_curl_client({.url = "http://localhost"}, nullptr, {});
  ASSERT_TRUE(first);
  const auto problem_of = [&](const std::string& url, const std::string& user) {
    settings_.rest_server_user = user;
    const Status found = rest_connection(settings_, url, **first, clock_).check_listener();
    return found ? "" : found.error().message;
  };
  EXPECT_EQ(problem_of("http://127.0.0.1:1", ""), "nothing listens there");
  EXPECT_EQ(problem_of("http://127.0.0.1:1", "root"), "nothing listens there");
  EXPECT_EQ(problem_of("http://127.0.0.1:1", "4242"), "nothing listens there");
  EXPECT_EQ(problem_of("http://127.0.0.1:1", "no-such-user"), "nothing listens there");
  EXPECT_EQ(problem_of("https://head:6820", ""), "");
}

}  // namespace
}  // namespace slurmlet::daemon
