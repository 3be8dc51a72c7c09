#include <gtest/gtest.h>

#include <algorithm>

#include "host/addresses.h"

namespace slurmlet::host {
namespace {

TEST(RouteSource, IsEmptyForLoopbackServers) {
  EXPECT_EQ(route_source("127.0.0.1", "6443"), "");
  EXPECT_EQ(route_source("localhost", "6443"), "");
  EXPECT_EQ(route_source("::1", "6443"), "");
}

TEST(RouteSource, IsEmptyForUnresolvedNames) {
  EXPECT_EQ(route_source("", "6443"), "");
  EXPECT_EQ(route_source("not a host name", "6443"), "");
  EXPECT_EQ(route_source("[", "6443"), "");
}

// 192.0.2.0/24 and 2001:db8::/32 are documentation networks, which only the default route reaches.
TEST(RouteSource, IsAnAddressOfThisMachine) {
  const auto ours = read_addresses({});
  for (const char* server : {"192.0.2.1", "2001:db8::1"}) {
    const std::string source = route_source(server, "6443");
    if (!source.empty()) {
      EXPECT_NE(std::find(ours.begin(), ours.end(), source), ours.end()) << server << source;
    }
  }
}

TEST(RouteSource, TowardsAnOwnAddressIsThatAddress) {
  for (const std::string& own : read_addresses({})) {
    EXPECT_EQ(route_source(own, "6443"), own);
  }
}

}  // namespace
}  // namespace slurmlet::host
