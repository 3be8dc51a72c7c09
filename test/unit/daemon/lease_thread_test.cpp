#include "daemon/lease_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;

// Behind a load balancer the connection that goes on may be the one to the server that is ill.
TEST(LeaseThread, FromTheSecondFailureOnItLeavesTheServerThatAnsweredIt) {
  fakes::FakeClock clock;
  status::ServiceReport service{status::Notifier{}, std::nullopt};
  Shared shared{service, clock};
  shared.lease.node_uid.set("uid-1");
  auto client = std::make_unique<fakes::FakeHttpClient>();
  client->responder = [](const http::Request&) {
    http::Response response;
    response.status = 503;
    return response;
  };
  std::vector<int> closures;  // after each step
  std::promise<void> stepped;
  client->on_wait = [&, http = client.get()](SteadyTime until) {
    if (closures.size() < 3) {
      closures.push_back(http->idle_closures);
      if (closures.size() == 3) {
        stepped.set_value();  // and time stands still: no call while the test stops the thread
        return;
      }
      clock.advance(std::max(until - clock.now().steady, Duration::zero()));
    }
  };
  LeaseThread thread{std::move(client), {"n1", "n1", seconds{40}}, shared};
  ASSERT_EQ(stepped.get_future().wait_for(seconds{10}), std::future_status::ready);
  (void)thread.stop();
  EXPECT_EQ(closures, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace slurmlet::daemon
