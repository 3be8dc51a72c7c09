#pragma once

// The open connections of the Server, and which of them makes room for another. Internal to the
// room.

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
  std::string host;           // whose it is, without the port
  std::uint32_t watched = 0;  // what epoll(7) watches for
  SteadyTime turn = kNever;   // of a handshake that has to wait: when to ask again
};

using Entries = std::map<ConnectionId, Entry>;  // in the order of their coming

std::size_t count_from(const Entries& entries, const std::string& host);

// Of those from `host`, or of all when it is null: one that has been answered and lingers, else the
// one that has been idle longest, else the oldest that was never let through and still shakes
// hands, sends its head or does not take its refusal. Nothing when all others are being served.
std::optional<ConnectionId> choose_to_evict(const Entries& entries, const std::string* host);

}  // namespace slurmlet::podapi
