#pragma once

// How many TLS handshakes are begun, which are by far the most expensive thing that an
// unauthenticated client can ask for. Two limits: for each address, and for all addresses together
// from which nobody was let through yet, so that neither one client nor many of them keep this
// machine's CPUs busy or the others out. Bounded memory; internal to the room; not thread-safe.

#include <map>
#include <string>

#include "base/clock.h"
#include "podapi/server.h"
#include "podapi/token_bucket.h"

namespace slurmlet::podapi {

class HandshakeBudget {
 public:
  explicit HandshakeBudget(const HandshakeLimits& limits);

  // `now`: one more may begin for this address, and is counted. Else when to ask again.
  SteadyTime take(const std::string& host, SteadyTime now);
  // A request from this address was let through.
  void know(const std::string& host, SteadyTime now);

 private:
  struct Address {
    TokenBucket bucket;
    SteadyTime seen;
    bool is_known = false;
  };
  Address& address(const std::string& host, SteadyTime now);
  std::map<std::string, Address>::iterator seen_longest_ago(bool known);

  HandshakeLimits limits_;
  std::map<std::string, Address> addresses_;
  std::size_t known_ = 0;  // of them
  TokenBucket unknown_;
};

}  // namespace slurmlet::podapi
