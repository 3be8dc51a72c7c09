#include "operator/slurm_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <thread>

#include "fakes/fake_clock.h"
#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"
#include "tls/test_certificates.h"

namespace slurmlet::op {
namespace {

using testing::HasSubstr;

class RestAccessTest : public testing::Test {
 protected:
  RestAccess make(const std::string& url) {
    options_.slurm_rest_url = url;
    return {options_, clock_};
  }
  static std::string ca(const std::string& name) {
    return tls::make_self_signed({.common_name = name, .is_ca = true}).certificate;
  }

  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  Options options_;
};

TEST_F(RestAccessTest, ASocketNeedsNeitherCaNorToken) {
  RestAccess access = make("unix:/run/slurmrestd.socket");
  ASSERT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials()->endpoint.unix_socket, "/run/slurmrestd.socket");
  EXPECT_EQ(access.credentials()->endpoint.url, "http://localhost");
  EXPECT_FALSE(access.credentials()->token);  // never Authorization
  EXPECT_EQ(access.token().text, "");
}

TEST_F(RestAccessTest, ATokenFileIsReadAgain) {
  options_.slurm_jwt_file = tree_.path("jwt").string();
  for (const char* url : {"unix:/s", "https://head:6820"}) {
    tree_.remove("jwt");
    RestAccess access = make(url);
    ASSERT_TRUE(access.token().problem);
    EXPECT_THAT(access.token().problem->message, HasSubstr(options_.slurm_jwt_file));
    for (const char* text : {"first", "another"}) {
      tree_.file("jwt", std::string{text} + "\n");
      clock_.advance(TokenFile::kCheckInterval);
      EXPECT_EQ(access.token().text, text);
      EXPECT_FALSE(access.token().problem);
    }
    EXPECT_EQ(access.token().where, options_.slurm_jwt_file);
  }
}

TEST_F(RestAccessTest, TheCaFileIsReadAgainAndAnInvalidOneLeavesTheOldInUse) {
  options_.slurm_rest_ca_file = tree_.path("ca.pem").string();
  RestAccess access = make("https://head:6820");
  const Status missing = access.refresh();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr(options_.slurm_rest_ca_file));
  const auto after = [&](const std::string& text) {
    static std::filesystem::file_time_type time = std::filesystem::file_time_type::clock::now();
    tree_.file("ca.pem", text);
    std::filesystem::last_write_time(tree_.path("ca.pem"), time += std::chrono::seconds{1});
    EXPECT_TRUE(access.refresh());
    return access.credentials();
  };
  const auto first = after(ca("first"));
  ASSERT_TRUE(first->identity);
  ASSERT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), first);
  EXPECT_EQ(after("no certificate"), first);
  const auto second = after(ca("second"));
  EXPECT_NE(second, first);
  tree_.remove("ca.pem");
  EXPECT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), second);
}

TEST_F(RestAccessTest, AHangingCaFileIsNamedAndLeavesTheOldOneInUse) {
  tree_.file("ca.pem", ca("first"));
  options_.slurm_rest_ca_file = tree_.path("ca.pem").string();
  RestAccess access = make("https://head:6820");
  const std::string problem = options_.slurm_rest_ca_file + " does not answer";
  {
    fakes::HangingFile hanging{options_.slurm_rest_ca_file};
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
  const fakes::HangingFile hanging{options_.slurm_rest_ca_file};
  testing::internal::CaptureStderr();
  EXPECT_TRUE(access.refresh());
  EXPECT_TRUE(access.refresh());
  EXPECT_EQ(access.credentials(), first);
  const std::string log = testing::internal::GetCapturedStderr();
  const auto said = log.find(problem + "; the old one stays in use");
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("does not answer", said + problem.size()), std::string::npos) << log;
}

}  // namespace
}  // namespace slurmlet::op
