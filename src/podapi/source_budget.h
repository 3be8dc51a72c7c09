#pragma once

// How often unauthenticated clients get something that costs: a TLS handshake, a review by the API
// server. Three limits: for each address, for each network, and for all together; addresses from
// which a request was let through have only the first. So neither one client nor many of them keep
// this machine or the API server busy or the others out. Bounded memory; internal to the component;
// not thread-safe.

#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/token_bucket.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

class SourceBudget {
 public:
  explicit SourceBudget(const SourceLimits& limits);

  // `now`: this one gets it, and is counted. Else when to ask again.
  SteadyTime take(const Source& source, SteadyTime now);
  // When its network, and when its address, last got it; long ago if never. Who is served in this
  // order shares with the other networks, and within its own with the other addresses.
  std::pair<SteadyTime, SteadyTime> served(const Source& source) const;
  // A request from this address was let through.
  void know(const Source& source, SteadyTime now);
  bool knows(const Source& source) const;

 private:
  struct Account {
    TokenBucket bucket;
    SteadyTime seen;
    SteadyTime served = {};
    bool is_known = false;
  };
  using Accounts = std::map<std::string, Account>;
  Account& account(Accounts& accounts, const std::string& name, const Rate& rate, SteadyTime now);

  SourceLimits limits_;
  Accounts hosts_, networks_;
  std::size_t known_ = 0;  // of the hosts
  TokenBucket unknown_;
};

}  // namespace slurmlet::podapi
