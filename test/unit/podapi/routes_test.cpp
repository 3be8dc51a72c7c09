#include "podapi/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::podapi {
namespace routes_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

Snapshot snapshot() {
  return {"node7",
          {{"loop", true, ""}, {"apiserver", true, ""}},
          {{"up", "", MetricType::kGauge, {{{}, 1}}}}};
}

TEST(Routes, HealthyIsPlainOk) {
  for (const char* path : {"/healthz", "/readyz"}) {
    const auto response = handle({"GET", path}, snapshot());
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.body, "ok") << path;
    EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
  }
}

TEST(Routes, AFailingCheckFailsReadyzOnly) {
  auto cut_off = snapshot();
  cut_off.checks[1] = {"apiserver", false, "connection refused"};
  EXPECT_EQ(handle({"GET", "/healthz"}, cut_off).status, 200);
  const auto response = handle({"GET", "/readyz"}, cut_off);
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, AllOf(HasSubstr("node7"), HasSubstr("apiserver: connection refused"),
                                   Not(HasSubstr("loop"))));
}

TEST(Routes, WithoutChecksItIsReady) { EXPECT_EQ(handle({"GET", "/readyz"}, {}).status, 200); }

TEST(Routes, StatusIsJsonWhereItIsServed) {
  EXPECT_EQ(handle({"GET", "/status"}, snapshot()).status, 404);
  auto serving = snapshot();
  serving.status_json = [] { return R"({"node":"node7"})"; };
  serving.checks[0].ok = false;
  const auto response = handle({"GET", "/status"}, serving);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, R"({"node":"node7"})");
  EXPECT_EQ(handle({"POST", "/status"}, serving).status, 405);
}

// Anybody with a shell on the node can query the health port; metrics need authorization.
TEST(Routes, MetricsAreNotServedHere) {
  const auto response = handle({"GET", "/metrics"}, snapshot());
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, Not(HasSubstr("up 1")));
}

TEST(Routes, HeadIsAnsweredLikeGet) {
  EXPECT_EQ(handle({"HEAD", "/healthz"}, snapshot()).status, 200);
}

TEST(Routes, RejectsOtherMethodsWithAnAllowHeader) {
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    const auto response = handle({method, "/readyz"}, snapshot());
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_THAT(response.headers, ElementsAre(Pair("Allow", "GET, HEAD")));
  }
}

TEST(Routes, UnknownPathsAreNotFound) {
  for (const char* path : {"/", "", "/healthz/", "/Metrics", "/pods", "/readyz/../healthz"}) {
    EXPECT_EQ(handle({"GET", path}, snapshot()).status, 404) << path;
    EXPECT_EQ(handle({"POST", path}, snapshot()).status, 404) << path;
  }
}

}  // namespace routes_test
}  // namespace slurmlet::podapi
