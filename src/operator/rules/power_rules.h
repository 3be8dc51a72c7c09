#pragma once

// Which hosts of Metal3 are switched off and on for Slurm's power saving, and what a Node says
// while its host sleeps. A host goes off only while slurmctld shows that it powers down all Slurm
// nodes of that host, and that no job is on them. A sleeping Machine is excepted from remediation
// until its Node is Ready again, or Slurm has given up waiting for it. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/node.h"
#include "operator/rules/site.h"

namespace slurmlet::op {

enum class PowerAction : std::uint8_t { kSuspend, kResume };

struct PowerMachine {
  std::string key;          // NAMESPACE/NAME
  std::string provider_id;  // metal3://NAMESPACE/HOST/METAL3MACHINE
  bool deleting = false;
  bool has_node = false;
  std::string unclear;                  // why it may not be the Slurm node's
  std::vector<const SlurmNode*> slurm;  // all of its host, in a dump from now
};

// A BareMetalHost, and the Metal3Machine that must be its consumer.
struct PowerHost {
  std::string namespace_name, name, consumer;
  bool operator==(const PowerHost&) const = default;
};

// By Slurm's power saving: about to be, or done.
bool is_powering_down(const node::SlurmState& state);
bool is_powering_up(const node::SlurmState& state);

// The host of a Slurm node, which these Machines have; kConflict: it may not be switched.
Result<PowerHost> rule_power(PowerAction action, const std::vector<PowerMachine>& machines);

// Condition of a Node whose host sleeps.
inline constexpr const char* kAsleep = "SlurmNodeAsleep";

// Of a marked Machine's Node, by a dump that began after the mark was seen; nothing: it is awake.
std::optional<node::Condition> rule_sleep(const KubeNode& node, const SlurmNode& slurm);

}  // namespace slurmlet::op
