// What RestDump asks of slurmrestd, and what it makes of the answers.

#include "slurm/sources/rest_dump.h"

#include "rest_dump_fixture.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RestWholeDumpTest : public RestDumpTest {
 protected:
  // A good one of 24.11, which is remembered.
  void dump_whole() {
    ASSERT_TRUE(start());
    find_version(42);
    answer(200, fixture("dump/24.11.rest.out"));
    const auto result = dump();
    ASSERT_TRUE(result && *result && (*result)->records);
  }
  std::string last_path() const { return paths().back(); }
};

// MIXED is only told from ALLOCATED where no flags are given.
TEST_F(RestWholeDumpTest, FindsTheVersionAndAsksForAllNodesWithoutFlags) {
  make_dump();
  ASSERT_TRUE(start(true));
  find_version(38);
  EXPECT_TRUE(dump_->running());
  answer(200, fixture("dump/22.05.rest.out"));
  clock_.advance(seconds{2});
  const auto result = dump();
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->records->size(), 3U);
  EXPECT_EQ((*result)->took, seconds{2});
  EXPECT_FALSE(dump_->running());
  EXPECT_EQ(last_path(), "/slurm/v0.0.38/nodes/");
  EXPECT_GT(http_->stream_requests.back().notify_at, 100'000U);
  // It does not say when that was: ours is another clock.
  ASSERT_TRUE(start(true));
  EXPECT_EQ(last_path(), "/slurm/v0.0.38/nodes/");
}

TEST_F(RestWholeDumpTest, ABodyIsReadWhileItComes) {
  make_dump();
  ASSERT_TRUE(start());
  find_version(42);
  const std::string body = fixture("dump/24.11.rest.out");
  http_->stream().status = 200;
  http_->stream().feed(body.substr(0, 3000));
  EXPECT_FALSE(dump());
  http_->stream().feed(body.substr(3000));
  EXPECT_FALSE(dump());
  http_->stream().end();
  const auto result = dump();
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->records->size(), 3U);
}

TEST_F(RestWholeDumpTest, NothingHasChanged) {
  make_dump();
  dump_whole();
  ASSERT_TRUE(start(true));
  EXPECT_THAT(last_path(), StartsWith("/slurm/v0.0.42/nodes/?update_time=1795"));
  answer(304, "");
  auto result = dump();
  ASSERT_TRUE(result && *result);
  EXPECT_FALSE((*result)->records);
  ASSERT_TRUE(start(false));  // who knows nothing any more wants all
  EXPECT_EQ(last_path(), "/slurm/v0.0.42/nodes/");
  answer(304, "");
  result = dump();
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result) << "nobody asked for that";
}

// "Unable to query partitions": nodes have changed and partitions have not.
TEST_F(RestWholeDumpTest, WhereTheTimeIsNotTakenAllIsAskedWithinTheDump) {
  for (const int status : {500, 400}) {
    make_dump();
    dump_whole();
    ASSERT_TRUE(start(true));
    answer(status,
           R"({"errors":[{"error_number":-1,"error":"Unspecified error"}],"meta":{"plugin":)"
           R"({"data_parser":"data_parser/v0.0.42"}}})");
    EXPECT_FALSE(dump()) << status;
    EXPECT_EQ(last_path(), "/slurm/v0.0.42/nodes/");
    answer(200, fixture("dump/24.11.rest.out"));
    const auto result = dump();
    ASSERT_TRUE(result && *result) << status;
    EXPECT_TRUE((*result)->records);
  }
}

TEST_F(RestWholeDumpTest, AnUpgradeAsksForAll) {
  make_dump();
  dump_whole();
  ASSERT_TRUE(start(true));
  not_served();
  EXPECT_FALSE(dump());
  EXPECT_EQ(last_path(), "/slurm/v0.0.45/nodes/");
}

// slurmctld's clock was ahead, or ours goes back: "unchanged since" would hide what changes.
TEST_F(RestWholeDumpTest, ATimeOfTheFutureIsNotAskedFor) {
  make_dump();
  dump_whole();
  clock_.step_wall(-std::chrono::hours{24 * 365 * 30});
  ASSERT_TRUE(start(true));
  EXPECT_EQ(last_path(), "/slurm/v0.0.42/nodes/");
}

TEST(UpdateTime, IsInTheWordsOfTheVersion) {
  EXPECT_EQ(update_time(38, 5), "5");
  EXPECT_EQ(update_time(39, 5), "uts5");
  EXPECT_EQ(update_time(40, 5), "uts5");
  EXPECT_EQ(update_time(41, 5), "uts5");
  EXPECT_EQ(update_time(42, 5), "5");
}

TEST_F(RestWholeDumpTest, WhatIsNoWholeListIsNoDump) {
  const std::string good = fixture("dump/24.11.rest.out");
  const struct {
    int status;
    std::string body;
    const char* why;
    Code code = Code::kUnavailable;
  } kRows[] = {
      {200, good.substr(0, good.size() - 40), ""},
      {200, good.substr(0, 3000), ""},
      {200, "", ""},
      {200, "<html>sign in</html>", ""},
      {200, "{}", ""},
      {200, R"({"nodes":[1]})", "not a list of nodes"},
      {200, R"({"nodes":[{"name":"../x"}]})", "not a list of nodes"},
      {200, R"({"nodes":[]})", "PrivateData", Code::kNotFound},
      {200,
       R"({"nodes":[{"name":"n1","state":["IDLE"]}],"errors":[{"error_number":1800,"error":"x"}]})",
       "ControllerUnreachable: "},
      {502, R"({"errors":[{"error_number":1800,"error":"Unable to contact slurm controller"}]})",
       "ControllerUnreachable: Unable to contact slurm controller"},
      {500, R"({"errors":[{"error":"Unspecified error","errno":-1}]})", "ControllerUnreachable: "},
      {503, "<html>away</html>", ""},
      {429, "<html>slowly</html>", "slurmrestd unavailable: "},
      {302, "", "redirected"},
      {401, "", "slurmJwtFile"}};
  for (const auto& row : kRows) {
    make_dump();
    ASSERT_TRUE(start());
    answer(row.status, row.body);
    const auto result = dump();
    ASSERT_TRUE(result) << row.body;
    ASSERT_FALSE(*result) << row.body;
    EXPECT_EQ(result->error().code, row.code) << row.body;
    EXPECT_THAT(result->error().message, AllOf(HasSubstr(row.why), Not(HasSubstr("slurm."))))
        << row.status << " " << row.body;
    EXPECT_FALSE(dump_->running());
  }
}

TEST_F(RestWholeDumpTest, OneThatIsSlowOrBrokenOffEnds) {
  make_dump();
  ASSERT_TRUE(start());
  http_->stream().status = 200;
  http_->stream().feed("{\"nodes\":[");
  EXPECT_FALSE(dump());
  clock_.advance(seconds{15});
  auto result = dump();
  ASSERT_TRUE(result && !*result);
  EXPECT_THAT(result->error().message,
              AllOf(Not(StartsWith("Controller")), HasSubstr("within slurmCommandTimeout")));
  EXPECT_TRUE(http_->stream().closed);

  ASSERT_TRUE(start());
  http_->stream().status = 200;
  http_->stream().feed(fixture("dump/24.11.rest.out"));
  http_->stream().break_off({Code::kUnavailable, "transfer closed with 5 bytes to read"});
  result = dump();
  ASSERT_TRUE(result && !*result);
  EXPECT_THAT(result->error().message, HasSubstr("in the middle of its answer"));
}

TEST_F(RestWholeDumpTest, ATokenThatIsMissingIsNamedBeforeAnybodyIsAsked) {
  make_dump("https://h:1");
  token_.problem = Error{Code::kNotFound, "token file /etc/jwt: No such file or directory"};
  token_.where = "/etc/jwt";
  const Status started = dump_->start(clock_.now(), false);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("/etc/jwt"));
  EXPECT_FALSE(dump_->running());
}

}  // namespace
}  // namespace slurmlet::slurm
