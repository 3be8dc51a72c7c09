#include "kube/pace.h"

#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "kube/rest_api.h"

namespace slurmlet::kube {
namespace {

constexpr const char* kAnyNode = R"({"metadata":{"name":"n1","uid":"u","resourceVersion":"5"}})";

class PaceTest : public ::testing::Test {
 protected:
  bool sends(RestNodeApi& nodes) {
    const auto before = client_.requests.size();
    const auto answer = nodes.get("n1");
    const bool sent = client_.requests.size() > before;
    EXPECT_EQ(!answer && answer.error().retry_after.has_value(), !sent);
    return sent;
  }

  fakes::FakeHttpClient client_;
  fakes::FakeClock clock_;
  Pace pace_{clock_, [] { return 0.5; }};
  RestNodeApi nodes_{client_, {.pace = &pace_}};
};

TEST_F(PaceTest, AnOverloadedServerGetsNoFurtherCall) {
  client_.answer(200, kAnyNode);
  EXPECT_TRUE(sends(nodes_));
  for (const int status : {429, 503, 504}) {
    Pace pace{clock_, [] { return 0.5; }};
    RestNodeApi nodes{client_, {.pace = &pace}};
    client_.answer(status, "{}");
    EXPECT_TRUE(sends(nodes)) << status;
    EXPECT_FALSE(sends(nodes)) << status;
  }
  client_.fail({Code::kTimeout, "no answer"});
  EXPECT_TRUE(sends(nodes_));
  EXPECT_FALSE(sends(nodes_));
  clock_.advance(delay_rule(Delay::kOverloaded).cap);
  client_.answer(200, kAnyNode);
  EXPECT_TRUE(sends(nodes_));
}

TEST_F(PaceTest, OtherFailuresDelayNothing) {
  for (const int status : {401, 404, 409, 500, 502}) {
    client_.answer(status, "{}");
    EXPECT_TRUE(sends(nodes_)) << status;
  }
  client_.fail({Code::kUnavailable, "connection refused"});
  EXPECT_TRUE(sends(nodes_));
  client_.answer(200, kAnyNode);
  EXPECT_TRUE(sends(nodes_));
}

TEST_F(PaceTest, PausesGrowUntilAnAnswer) {
  const SteadyTime now = clock_.now().steady;
  Duration last{};
  for (int i = 0; i < 4; ++i) {
    pace_.failed({Code::kTimeout, "no answer"});
    EXPECT_GE(pace_.not_before() - now, last);
    last = pace_.not_before() - now;
  }
  EXPECT_LE(last, delay_rule(Delay::kOverloaded).cap);
  pace_.answered();
  pace_.failed({Code::kTimeout, "no answer"});
  EXPECT_LT(pace_.not_before() - now, last);
  pace_.failed({Code::kTimeout, "no answer", std::chrono::seconds{50}});
  EXPECT_GE(pace_.not_before() - now, std::chrono::seconds{50});
}

}  // namespace
}  // namespace slurmlet::kube
