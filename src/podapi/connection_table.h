#pragma once

// The Server's open connections, and which of them to evict for another. Internal to the component.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "podapi/server_connection.h"

namespace slurmlet::podapi {

using ConnectionId = std::uint64_t;

struct Entry {
  std::unique_ptr<ServerConnection> connection;
  std::uint32_t watched = 0;         // events watched by epoll(7)
  bool is_known = false;             // from a known address (caller_budget.h)
  SteadyTime handshake_at = kNever;  // of a waiting handshake, kNotTried at first
};
inline constexpr SteadyTime kNotTried{};

using Entries = std::map<ConnectionId, Entry>;  // in order of arrival

std::size_t count_from(const Entries& entries, const std::string& host);

// Chooses among connections from `host`, or all if it is null: one that lingers after its answer,
// else the one idle longest. `for_known`: else the oldest without an authorized request that is
// still in its handshake, sending its head or receiving its rejection; those of known addresses
// last.
std::optional<ConnectionId> choose_to_evict(const Entries& entries, const std::string* host,
                                            bool for_known);

}  // namespace slurmlet::podapi
