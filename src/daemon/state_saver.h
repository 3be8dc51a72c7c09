#pragma once

// What is to be remembered in the state directory. It may hang: a write is waited for half a second
// and goes on beside the loop, and of what comes meanwhile the newest is written next, with step().
// Errors are logged. One thread.

#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "base/side_call.h"

namespace slurmlet::daemon {

class StateSaver {
 public:
  // Writes a file, aside; must own what it uses.
  using Write = std::function<Status()>;

  // `lost`: what a failure means, for the log ("providerID not saved"). Of writes with the same
  // only the newest counts.
  void save(const std::string& lost, Write write);
  void step();
  // At the end of the process: waits that long for what is under way.
  void flush(Duration patience);

 private:
  bool take(Duration patience);

  std::map<std::string, Write> waiting_;  // by `lost`
  std::string under_way_;                 // its `lost`
  SideCall<Status> call_;
};

}  // namespace slurmlet::daemon
