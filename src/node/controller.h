#pragma once

#include <string>

namespace slurmlet::node {

// A slurmctld as `scontrol ping` shows it. One that is UP may be a standby.
struct Controller {
  std::string host;  // of SlurmctldHost
  bool up = false;
  bool operator==(const Controller&) const = default;
};

}  // namespace slurmlet::node
