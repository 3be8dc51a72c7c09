#pragma once

// The open connections of the Server, and which of them makes room for another. Internal to the
// component.

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
  std::uint32_t watched = 0;  // what epoll(7) watches for
  bool is_known = false;      // another was let through from its address
  SteadyTime turn = kNever;   // of a handshake that waits: when to ask, kNotAsked at first
};
inline constexpr SteadyTime kNotAsked{};

using Entries = std::map<ConnectionId, Entry>;  // in the order of their coming

std::size_t count_from(const Entries& entries, const std::string& host);

// Of those from `host`, or of all when it is null: one that has been answered and lingers, else the
// one that has been idle longest. `for_known`: else the oldest that was never let through and still
// shakes hands, sends its head or does not take its refusal, those of known addresses last. Nothing
// where all others stay.
std::optional<ConnectionId> choose_to_evict(const Entries& entries, const std::string* host,
                                            bool for_known);

}  // namespace slurmlet::podapi
