#pragma once

// What is to be remembered in the state directory. It may hang: what cannot be written within half
// a second is tried again with each step(), and the newest content of a file is what counts. Errors
// are logged. One thread.

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

  // `lost`: what a failure means, for the log ("providerID not saved"); what it names is one file.
  void save(const std::string& lost, Write write);
  void step();

 private:
  struct Waiting {
    Write write;
    bool is_told = false;
  };
  std::map<std::string, Waiting> waiting_;  // by `lost`
  SideCall<Status> call_;
};

}  // namespace slurmlet::daemon
