#include "host/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Captured on a machine with two uplinks, where the metric decides.
constexpr const char* kRoute =
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
    "eno1\t00000000\t0102A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\n"
    "eno2\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
    "eno1\t0002A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
constexpr const char* kIpv6Route =
    "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 "
    "00000000000000000000000000000000 00000100 00000001 00000000 00000001     eno1\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
    "fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eno1\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
    "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

LocalAddress on(const std::string& interface, const std::string& address) {
  LocalAddress local;
  local.interface = interface;
  local.address = address;
  local.ipv6 = address.find(':') != std::string::npos;
  return local;
}

TEST(DefaultInterfaces, TakesTheUsableDefaultRouteOfLowestMetric) {
  const auto found = default_interfaces(kRoute, kIpv6Route);
  EXPECT_EQ(found.ipv4, "eno2");
  EXPECT_EQ(found.ipv6, "eno1");
}

TEST(DefaultInterfaces, RejectRoutesAndInvalidLinesAreNotDefaultRoutes) {
  const auto found = default_interfaces(
      "Iface\tDestination\n*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\nxx\n",
      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
      "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\nzz 00\n");
  EXPECT_EQ(found.ipv4, "");
  EXPECT_EQ(found.ipv6, "");
}

TEST(OrderAddresses, DefaultRouteFirstThenIpv4AndEachOnce) {
  EXPECT_THAT(order_addresses({on("ib0", "10.1.0.7"), on("eno1", "fd00::7"),
                               on("eno1", "192.168.2.7"), on("ib0", "fd01::7")},
                              {"eno1", "eno1"}),
              ElementsAre("192.168.2.7", "fd00::7", "10.1.0.7", "fd01::7"));
  // The kernel's order without a default route.
  EXPECT_THAT(order_addresses({on("b", "10.0.0.2"), on("a", "10.0.0.1"), on("c", "10.0.0.1")}, {}),
              ElementsAre("10.0.0.2", "10.0.0.1"));
}

TEST(OrderAddresses, LeavesOutWhatOthersCannotReach) {
  for (const char* address : {"127.0.0.1", "169.254.3.4", "0.0.0.0", "224.0.0.1", "::1",
                              "fe80::fc:ff:fe00:1", "ff02::1", "::ffff:10.0.0.1", "nonsense"}) {
    EXPECT_THAT(order_addresses({on("eno1", address)}, {"eno1", "eno1"}), IsEmpty()) << address;
  }
  LocalAddress down = on("eno1", "10.0.0.1");
  down.interface_up = false;
  LocalAddress on_loopback = on("lo", "10.99.0.1");
  on_loopback.loopback = true;
  LocalAddress temporary = on("eno1", "fd00::1234");
  temporary.transient = true;
  EXPECT_THAT(order_addresses({down, on_loopback, temporary}, {"eno1", "eno1"}), IsEmpty());
}

TEST(OrderAddresses, ContainerBridgesCountOnlyWithTheDefaultRoute) {
  const std::vector<LocalAddress> all = {on("docker0", "172.17.0.1"), on("br-lan", "10.0.0.1")};
  EXPECT_THAT(order_addresses(all, {"br-lan", ""}), ElementsAre("10.0.0.1"));
  EXPECT_THAT(order_addresses(all, {}), IsEmpty());
}

}  // namespace
}  // namespace slurmlet::host
