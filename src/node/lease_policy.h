#pragma once

// When and with which time the Lease is renewed. The node lifecycle controller counts a renewal
// only if renewTime is strictly newer than the last one it saw, so a clock that steps back must not
// show. Pure. (KEP-0009 node heartbeats; kubelet: 40 s lease renewed every 10 s, jitter 4 %.)

#include "base/clock.h"
#include "base/delay.h"

namespace slurmlet::node {

// `now`, or one microsecond after `last` where the clock has not gone forward.
WallTime next_renew_time(WallTime now, WallTime last);

// A quarter of the lease's duration, up to 4 % later.
Duration renew_interval(Duration lease_duration, const Random& random);

// After a first renewal that many nodes made within `spread`: by as much of the interval as they
// were not apart, sooner, or they would stay in step for many minutes. Where they were further
// apart than an interval they go on as they came, for the sum of first and second renewals is what
// the API server feels.
Duration renew_out_of_step(Duration lease_duration, Duration spread, const Random& random);

}  // namespace slurmlet::node
