#include "podapi/source_budget.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "podapi/port.h"

namespace slurmlet::podapi {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const SteadyTime kStart{hours{1}};

constexpr SourceLimits kLimits{{2, 3}, {3, 4}, {4, 5}, 8};

// Each in a network of its own.
Source host(const std::string& name) { return {name, name}; }
Source host(int number) { return host(std::to_string(number)); }
Source host_in(const std::string& network, int number) {
  return {network + std::to_string(number), network};
}

// How often of `count` times it gets what it asks for.
int granted(SourceBudget& budget, const Source& source, int count, SteadyTime now) {
  int out = 0;
  for (int i = 0; i < count; ++i) {
    out += budget.take(source, now) <= now ? 1 : 0;
  }
  return out;
}

sockaddr_storage address(const std::string& text) {
  sockaddr_storage out{};
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&out);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&out);
  const bool is_v4 = ::inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1;
  out.ss_family = is_v4 ? AF_INET : AF_INET6;
  EXPECT_TRUE(is_v4 || ::inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) << text;
  v4->sin_port = htons(4711);
  return out;
}

TEST(SourceTest, OfWhichNetworkAnAddressIs) {
  const struct {
    std::string address, host, network, named;
  } cases[] = {
      {"192.0.2.7", "192.0.2.7", "192.0.2.0/24", "192.0.2.7:4711"},
      {"::ffff:192.0.2.7", "192.0.2.7", "192.0.2.0/24", "192.0.2.7:4711"},
      {"10.1.2.255", "10.1.2.255", "10.1.2.0/24", "10.1.2.255:4711"},
      {"127.0.0.1", "127.0.0.1", "127.0.0.0/8", "127.0.0.1:4711"},
      {"::ffff:127.200.3.4", "127.200.3.4", "127.0.0.0/8", "127.200.3.4:4711"},
      {"128.0.0.1", "128.0.0.1", "128.0.0.0/24", "128.0.0.1:4711"},
      {"2001:db8:0:1:a:b:c:d", "2001:db8:0:1:a:b:c:d", "2001:db8:0:1::/64",
       "[2001:db8:0:1:a:b:c:d]:4711"},
      {"2001:db8:0:2::1", "2001:db8:0:2::1", "2001:db8:0:2::/64", "[2001:db8:0:2::1]:4711"},
      {"::1", "::1", "::/64", "[::1]:4711"},
  };
  for (const auto& one : cases) {
    const Caller peer = name_peer(address(one.address));
    EXPECT_EQ(peer.source.host, one.host);
    EXPECT_EQ(peer.source.network, one.network) << one.address;
    EXPECT_EQ(peer.address, one.named);
  }
}

TEST(SourceBudgetTest, AnAddressGetsItsBurstAndThenItsRate) {
  SourceBudget budget{kLimits};
  EXPECT_EQ(granted(budget, host("a"), 10, kStart), 3);
  EXPECT_EQ(budget.take(host("a"), kStart), kStart + milliseconds{500});
  EXPECT_GT(budget.take(host("a"), kStart + milliseconds{499}), kStart + milliseconds{499});
  EXPECT_EQ(granted(budget, host("a"), 10, kStart + milliseconds{510}), 1);
  EXPECT_EQ(granted(budget, host("a"), 10, kStart + hours{1}), 3) << "no more than the burst";
}

TEST(SourceBudgetTest, OneAddressLeavesTheOthersTheirs) {
  SourceBudget budget{kLimits};
  EXPECT_EQ(granted(budget, host("a"), 1000, kStart), 3);
  EXPECT_EQ(granted(budget, host("b"), 1, kStart), 1);
}

TEST(SourceBudgetTest, UnknownAddressesShareALimit) {
  SourceBudget budget{kLimits};
  int all = 0;
  for (int i = 0; i < 100; ++i) {
    all += granted(budget, host(i), 1, kStart);
  }
  EXPECT_EQ(all, 5);
  EXPECT_EQ(budget.take(host("new"), kStart), kStart + milliseconds{250});
}

TEST(SourceBudgetTest, TheAddressesOfANetworkLeaveTheOthersTheirs) {
  SourceBudget budget{kLimits};
  int all = 0;
  for (int i = 0; i < 100; ++i) {
    all += granted(budget, host_in("a", i), 1, kStart);
  }
  EXPECT_EQ(all, 4);
  EXPECT_EQ(granted(budget, host("new"), 1, kStart), 1);
  budget.know(host_in("a", 100), kStart);
  EXPECT_EQ(granted(budget, host_in("a", 100), 10, kStart), 3) << "who is known does not share it";
}

TEST(SourceBudgetTest, TellsWhoWasServedLongestAgoHoweverManyAskInVain) {
  SourceBudget budget{kLimits};
  const Source first = host_in("a", 1), second = host_in("a", 2), other = host_in("b", 1);
  EXPECT_EQ(granted(budget, first, 1, kStart), 1);
  EXPECT_EQ(granted(budget, second, 1, kStart + seconds{1}), 1);
  EXPECT_LT(budget.served(first), budget.served(second));
  EXPECT_LT(budget.served(other), budget.served(first)) << "of a network that got nothing yet";
  EXPECT_EQ(granted(budget, other, 1, kStart + seconds{2}), 1);
  EXPECT_LT(budget.served(second), budget.served(other));
  const SteadyTime now = kStart + seconds{3};
  for (int i = 3; i < 1000; ++i) {
    (void)budget.take(host_in("a", i), now);
  }
  EXPECT_LT(budget.served(other), budget.served(host_in("a", 2000)));
}

TEST(SourceBudgetTest, AnAddressThatWasLetThroughGetsInWhateverTheOthersDo) {
  SourceBudget budget{kLimits};
  budget.know(host("friend"), kStart);
  for (int i = 0; i < 100; ++i) {
    (void)budget.take(host(i), kStart);
  }
  EXPECT_EQ(granted(budget, host("friend"), 10, kStart), 3) << "its own limit stays";
}

TEST(SourceBudgetTest, WhoIsRefusedCostsTheOthersNothing) {
  SourceBudget budget{kLimits};
  EXPECT_EQ(granted(budget, host("a"), 1000, kStart), 3);
  EXPECT_EQ(granted(budget, host("b"), 2, kStart), 2) << "three of five are used, not a thousand";
}

TEST(SourceBudgetTest, OfManyWhoAreKnownTheLatestAreAndThereIsRoomForOthers) {
  SourceBudget budget{kLimits};
  for (int i = 0; i < 100; ++i) {
    budget.know(host("friend" + std::to_string(i)), kStart + seconds{i});
  }
  const SteadyTime now = kStart + seconds{100};
  for (int i = 0; i < 1000; ++i) {
    (void)budget.take(host(i), now + milliseconds{i});
  }
  const SteadyTime then = now + milliseconds{999};
  int in = 0;
  for (int i = 0; i < 100; ++i) {
    in += budget.take(host("friend" + std::to_string(i)), then) <= then ? 1 : 0;
  }
  // Half of the eight places; the unknown ones have used what there is.
  EXPECT_EQ(in, 4);
}

}  // namespace
}  // namespace slurmlet::podapi
