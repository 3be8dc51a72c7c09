#include "podapi/connection_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace slurmlet::podapi {
namespace {

// Connections with half a head sent, in order of arrival.
Entries half_open(const std::vector<const char*>& hosts, const ServerOptions& options) {
  Entries entries;
  for (const char* host : hosts) {
    Caller caller;
    caller.host = host;
    entries[entries.size() + 1].connection =
        std::make_unique<ServerConnection>(UniqueFd{}, caller, options, SteadyTime{});
  }
  return entries;
}

TEST(ConnectionTableTest, TheOldestUnauthenticatedIsEvictedForAKnownAddress) {
  const ServerOptions options;
  Entries entries = half_open({"a", "b", "c"}, options);
  EXPECT_FALSE(choose_to_evict(entries, nullptr, false)) << "unauthenticated clients evict nobody";
  EXPECT_EQ(choose_to_evict(entries, nullptr, true), 1U);
  const std::string host = "b";
  EXPECT_EQ(choose_to_evict(entries, &host, true), 2U);
  entries[1].is_known = true;
  EXPECT_EQ(choose_to_evict(entries, nullptr, true), 2U);
  entries[2].is_known = entries[3].is_known = true;
  EXPECT_EQ(choose_to_evict(entries, nullptr, true), 1U) << "those of known addresses last";
}

}  // namespace
}  // namespace slurmlet::podapi
