#pragma once

// What the main thread knows after a turn, for /metrics, /readyz and the kubelet endpoint. Plain
// values.

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "credentials/certificate_sync.h"
#include "node/facts.h"
#include "node/node.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::status {

struct Report {
  std::string node_name;
  bool registered = false;
  std::string refusal;                   // "" unless this machine may not have the Node
  bool went_with_machine = false;        // that is why: its Machine was deleted
  std::string metal3_uuid, provider_id;  // as wanted; "" = none
  std::string api_server;                // its URL
  std::optional<Error> api_error;        // why the Node was not written, until it is,
  SteadyTime api_error_since;            // and since when
  std::string node_difference;           // why the Node is not as wanted; "" = no such reason
  bool bootstrapping = false;  // no credential of its own yet: nothing of Slurm is known then
  node::Condition ready;       // as this machine has it; type "" before the first turn
  node::HostFacts facts;
  slurm::PollCounters slurmctld;
  credentials::CertificateReport certificates;
  std::uint64_t pods_rejected = 0;
  std::uint64_t pods_finished = 0;
  std::uint64_t pods_waiting = 0;
  std::uint64_t pods_unreadable = 0;  // too large
  bool pods_seen = true;              // new ones; means something while registered
  std::uint64_t events_dropped = 0;
};

}  // namespace slurmlet::status
