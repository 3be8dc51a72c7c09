#include "podapi/connection_table.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace slurmlet::podapi {
namespace {

using State = ServerConnection::State;

// The lower, the sooner it goes.
enum class Rank { kLingering, kIdle, kStranger, kKnown, kServed, kStays };

Rank rank(const Entry& entry) {
  const ServerConnection& connection = *entry.connection;
  const Rank in_doubt = entry.is_known ? Rank::kKnown : Rank::kStranger;
  switch (connection.state()) {
    case State::kLingering:
      return Rank::kLingering;
    case State::kNew:
    case State::kHandshaking:
      return in_doubt;
    case State::kReading:
      if (connection.is_idle()) {
        return Rank::kIdle;
      }
      // On a plain port anybody on this machine is let through.
      return !connection.let_through ? in_doubt
             : connection.is_plain() ? Rank::kServed
                                     : Rank::kStays;
    case State::kWriting:
      return connection.let_through ? Rank::kStays : in_doubt;
    default:
      return Rank::kStays;
  }
}

const Source& source_of(const Entry& entry) { return entry.connection->caller().source; }

}  // namespace

std::size_t count_from(const Entries& entries, const std::string& host) {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [&](const auto& entry) { return source_of(entry.second).host == host; }));
}

std::optional<ConnectionId> choose_to_evict(const Entries& entries, const std::string* host) {
  std::unordered_map<std::string_view, int> strangers;  // of each network and each address
  for (const auto& [id, entry] : entries) {
    if (rank(entry) == Rank::kStranger) {
      ++strangers[source_of(entry).network];
      ++strangers[source_of(entry).host];
    }
  }
  std::optional<ConnectionId> chosen;
  std::tuple lowest{Rank::kStays, SteadyTime{}, 0, 0};
  for (const auto& [id, entry] : entries) {
    const Rank present = rank(entry);
    const Source& source = source_of(entry);
    // Who has been idle longest is timed out first.
    const std::tuple order{present,
                           present == Rank::kIdle ? entry.connection->deadline() : SteadyTime{},
                           present == Rank::kStranger ? -strangers[source.network] : 0,
                           present == Rank::kStranger ? -strangers[source.host] : 0};
    if (order < lowest && (!host || source.host == *host)) {
      chosen = id;
      lowest = order;
    }
  }
  return chosen;
}

}  // namespace slurmlet::podapi
