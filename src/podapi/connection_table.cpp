#include "podapi/connection_table.h"

#include <algorithm>
#include <utility>

namespace slurmlet::podapi {
namespace {

using State = ServerConnection::State;

// The lowest is evicted first.
enum class Rank { kLingering, kIdle, kUnauthenticated, kKnown, kStays };

Rank rank(const Entry& entry) {
  const ServerConnection& connection = *entry.connection;
  const State state = connection.state();
  if (state == State::kLingering) {
    return Rank::kLingering;
  }
  if (connection.is_idle()) {
    return Rank::kIdle;
  }
  const bool is_sent = state == State::kNew || state == State::kHandshaking ||
                       state == State::kReading || state == State::kWriting;
  // A plain port authorizes everybody, so an incomplete head counts as unauthenticated there.
  const bool is_served =
      connection.let_through && !(connection.is_plain() && state == State::kReading);
  if (!is_sent || is_served) {
    return Rank::kStays;
  }
  return entry.is_known || connection.let_through ? Rank::kKnown : Rank::kUnauthenticated;
}

const std::string& host_of(const Entry& entry) { return entry.connection->caller().host; }

}  // namespace

std::size_t count_from(const Entries& entries, const std::string& host) {
  return static_cast<std::size_t>(
      std::count_if(entries.begin(), entries.end(),
                    [&](const auto& one) { return host_of(one.second) == host; }));
}

std::optional<ConnectionId> choose_to_evict(const Entries& entries, const std::string* host,
                                            bool for_known) {
  std::optional<ConnectionId> chosen;
  std::pair lowest{for_known ? Rank::kStays : Rank::kUnauthenticated, SteadyTime{}};
  for (const auto& [id, entry] : entries) {
    const Rank present = rank(entry);
    // Of idle ones, the earliest deadline has been idle longest.
    const std::pair order{present,
                          present == Rank::kIdle ? entry.connection->deadline() : SteadyTime{}};
    if (order < lowest && (!host || host_of(entry) == *host)) {
      chosen = id;
      lowest = order;
    }
  }
  return chosen;
}

}  // namespace slurmlet::podapi
