// LeaseThread: how long a renewal may take. When it is due is tested in sync/lease_sync_test.cpp.

#include "daemon/lease_thread.h"

#include <gtest/gtest.h>

#include <future>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::seconds;

Duration time_for_a_renewal(seconds lease_duration) {
  status::ServiceReport service{status::Notifier{}, std::nullopt};
  fakes::FakeClock clock;
  Shared shared{service, clock};
  shared.lease.set_uid("uid-1");
  std::promise<Duration> timeout;
  auto client = std::make_unique<fakes::FakeHttpClient>();
  client->responder = [&timeout, asked = false](const http::Request& request) mutable {
    if (!std::exchange(asked, true)) {
      timeout.set_value(request.timeout);
    }
    http::Response overloaded;
    overloaded.status = 503;
    return overloaded;
  };
  const LeaseThread thread{
      std::move(client), {.node_name = "n1", .duration = lease_duration}, shared};
  return timeout.get_future().get();
}

// Longer than an API server queues a request (15 s), and once more before the Lease is over.
TEST(LeaseThreadTest, ARenewalHasHalfTheLeaseAndAtMostTwentySeconds) {
  EXPECT_EQ(time_for_a_renewal(seconds{40}), seconds{20});
  EXPECT_EQ(time_for_a_renewal(seconds{300}), seconds{20});
  EXPECT_EQ(time_for_a_renewal(seconds{10}), seconds{5});
}

}  // namespace
}  // namespace slurmlet::daemon
