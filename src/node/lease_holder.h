#pragma once

// Who holds the Lease of our Node: one node, one daemon. A daemon holds it as "NODE/UUID" with the
// UUID of its machine; a holder "NAME" without one (the kubelet, a machine without a UUID) says
// nothing about the machine and is nobody else. Whether another holder is alive is measured by our
// steady clock, since the two machines' clocks may differ: a holder that renews within its lease's
// duration is alive.
//
// When and with which time the Lease is renewed. The node lifecycle controller counts a renewal
// only if renewTime is strictly newer than the last one it saw, so a clock that steps back must not
// show. Pure. (KEP-0009 node heartbeats; kubelet: 40 s lease renewed every 10 s, jitter 4 %.)

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"

namespace slurmlet::node {

// The part of a Lease that decides.
struct LeaseHolder {
  std::string identity;
  std::string renew_time;  // MicroTime as text
  int duration_seconds = 0;
  bool operator==(const LeaseHolder&) const = default;
};

// Whether `identity` says which machine holds the Lease.
bool names_machine(const std::string& identity);

// Whether `identity` is the daemon of another machine than the one that is `ours`.
bool is_foreign_holder(const std::string& identity, const std::string& ours);

// How long a holder may be silent before it counts as dead: its lease's duration and a
// quarter, ten minutes at most.
Duration holder_patience(const LeaseHolder& held);

// A foreign holder as it was last seen to renew.
struct HolderSighting {
  LeaseHolder held;
  SteadyTime since{};
  bool alive = false;  // it has renewed since it was first seen
};

struct HolderRuling {
  enum class Verdict {
    kFree,   // ours, nobody's, or a dead holder's
    kWait,   // a foreign one that may be alive: read it again
    kAlive,  // a foreign one that renews
  };
  Verdict verdict = Verdict::kFree;
  SteadyTime again{};                      // with kWait and kAlive: when to read it again
  std::optional<HolderSighting> sighting;  // to be handed in then
};

// `before` is the sighting of the ruling before, if any. As client-go's leader election: a holder
// is dead when its renewTime has not changed while we watched it for its lease's duration (and a
// quarter); what the time is, by its clock or ours, says nothing.
HolderRuling judge_holder(const LeaseHolder& held, const std::string& ours,
                          const std::optional<HolderSighting>& before, SteadyTime now);

// For people: who holds the Lease of Node `name`, since when, and what to do.
std::string held_by_another(const std::string& name, const LeaseHolder& held);

// `now`, or one microsecond after `last` where the clock has not gone forward.
WallTime next_renew_time(WallTime now, WallTime last);

// From one renewal to the next: a quarter of the lease's duration, up to 4 % later. After one whose
// answer took long up to half of it: an overloaded API server gets fewer, and those that it
// answered together come one by one.
Duration renew_interval(Duration lease_duration, Duration latency, const Random& random);

// After a first renewal that many nodes made within `spread`: by as much of the interval as they
// were not apart, sooner, or they would stay in step for many minutes. Where they were further
// apart than an interval they go on as they came, for the sum of first and second renewals is what
// the API server feels.
Duration renew_out_of_step(Duration lease_duration, Duration spread, const Random& random);

}  // namespace slurmlet::node
