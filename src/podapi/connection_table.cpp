#include "podapi/connection_table.h"

#include <algorithm>

namespace slurmlet::podapi {
namespace {

using State = ServerConnection::State;

// The lower, the sooner it goes.
enum class Rank { kLingering, kIdle, kStranger, kStays };

Rank rank(const ServerConnection& connection) {
  switch (connection.state()) {
    case State::kLingering:
      return Rank::kLingering;
    case State::kNew:
    case State::kHandshaking:
      return Rank::kStranger;
    case State::kReading:
      if (connection.is_idle()) {
        return Rank::kIdle;
      }
      [[fallthrough]];
    case State::kWriting:
      return connection.let_through ? Rank::kStays : Rank::kStranger;
    default:
      return Rank::kStays;
  }
}

}  // namespace

std::size_t count_from(const Entries& entries, const std::string& host) {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [&](const auto& entry) { return entry.second.host == host; }));
}

std::optional<ConnectionId> choose_to_evict(const Entries& entries, const std::string* host) {
  std::optional<ConnectionId> chosen;
  Rank lowest = Rank::kStays;
  SteadyTime idle_until{};
  for (const auto& [id, entry] : entries) {
    const Rank present = rank(*entry.connection);
    // Who has been idle longest is timed out first.
    const SteadyTime until = entry.connection->deadline();
    const bool sooner =
        present < lowest || (present == lowest && present == Rank::kIdle && until < idle_until);
    if (sooner && (!host || entry.host == *host)) {
      chosen = id;
      lowest = present;
      idle_until = until;
    }
  }
  return chosen;
}

}  // namespace slurmlet::podapi
