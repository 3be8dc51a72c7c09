#include "podapi/connection_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace slurmlet::podapi {
namespace {

Source in(const std::string& network, int number) {
  return {network + std::to_string(number), network};
}

// Of connections that have sent half a head, in the order of their coming: which makes room.
TEST(ConnectionTableTest, TheOldestOfThoseWhoHaveMostMakesRoom) {
  const struct {
    const char* what;
    std::vector<Source> from;
    ConnectionId chosen;
  } cases[] = {
      {"one each", {in("a", 1), in("b", 1), in("c", 1)}, 1},
      {"of the network with most", {in("a", 1), in("b", 1), in("b", 2)}, 2},
      {"however many addresses that has",
       {in("a", 1), in("a", 1), in("b", 1), in("b", 2), in("b", 3)},
       3},
      {"in it, of the address with most", {in("a", 1), in("b", 1), in("b", 2), in("b", 2)}, 3},
  };
  const ServerOptions options;
  for (const auto& one : cases) {
    Entries entries;
    for (const Source& source : one.from) {
      Caller caller;
      caller.source = source;
      entries[entries.size() + 1].connection =
          std::make_unique<ServerConnection>(UniqueFd{}, caller, options, SteadyTime{});
    }
    EXPECT_EQ(choose_to_evict(entries, nullptr), one.chosen) << one.what;
    const std::string host = one.from.front().host;
    EXPECT_EQ(choose_to_evict(entries, &host), 1U) << one.what;
    // Those of known addresses are the last of them.
    for (auto& [id, entry] : entries) {
      entry.is_known = id != entries.size();
    }
    EXPECT_EQ(choose_to_evict(entries, nullptr), entries.size()) << one.what;
    // Those who were let through stay, and do not count as connections of their network.
    for (auto& [id, entry] : entries) {
      entry.connection->let_through = id != 1;
    }
    EXPECT_EQ(choose_to_evict(entries, nullptr), 1U) << one.what;
  }
}

}  // namespace
}  // namespace slurmlet::podapi
