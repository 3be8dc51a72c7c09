#pragma once

// Where the names of servers lead: the addresses that the resolver gave last, the one that a
// connection was last made to before the others. libcurl is handed them and asks no resolver, so
// one that is silent or fails stops nobody who was connected before, and no thread waits for it.
// They are looked up anew beside, in a thread that ends with the answer. Thread-safe. Internal to
// the component.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"

namespace slurmlet::http {

class KnownAddresses {
 public:
  // Another look-up of a name not before.
  static constexpr Duration kAgain = std::chrono::seconds{30};
  // Numeric addresses, best first; none when there is no answer. May block; called in a thread.
  using Resolve = std::function<std::vector<std::string>(const std::string& name)>;

  explicit KnownAddresses(Resolve resolve);

  // "192.0.2.1,[2001:db8::1]" as CURLOPT_RESOLVE has it; "" while none is known: libcurl resolves
  // the name then.
  std::string of(const std::string& name) const;
  // A connection was made to this address of it.
  void worked(const std::string& name, const std::string& address);
  // Asks the resolver again, unless it was asked a moment ago or has not answered yet. What it
  // gives is in use from then on.
  void look_up(const std::string& name, SteadyTime now);

 private:
  struct State;
  std::shared_ptr<State> state_;  // a look-up may outlive us
};

// Those of this process, by getaddrinfo(3).
KnownAddresses& known_addresses();

}  // namespace slurmlet::http
