#pragma once

// The main thread's state after a step, for /metrics, /readyz and the kubelet endpoint. Plain
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
  std::string block_reason;              // why this machine may not have the Node; "" = it may
  bool deleted_with_machine = false;     // blocked since its Machine was deleted
  std::string metal3_uuid, provider_id;  // desired; "" = none
  std::string api_server;                // its URL
  std::optional<Error> api_error;        // why the last write of the Node failed,
  SteadyTime api_error_since;            // and since when
  std::string node_drift;      // why the Node differs from the desired one; "" = it does not
  bool bootstrapping = false;  // no credential yet, so Slurm is not queried
  node::Condition ready;       // desired; type "" before the first step
  node::HostFacts facts;
  slurm::PollCounters slurmctld;
  credentials::CertificateReport certificates;
  std::uint64_t pods_rejected = 0;
  std::uint64_t pods_finished = 0;
  std::uint64_t pods_waiting = 0;
  std::uint64_t pods_unreadable = 0;  // Pods too large to read
  bool pods_seen = true;              // whether new ones are seen, if registered
  std::uint64_t events_dropped = 0;
};

}  // namespace slurmlet::status
