#pragma once

// The site as an administrator's commands see it, fresh with each call: Nodes, Machines and
// slurmctld's nodes. Blocks. One thread, that of the clients.

#include <functional>
#include <string>

#include "http/client.h"
#include "operator/machines/machine_place.h"
#include "operator/options.h"
#include "operator/site/dumped_nodes.h"
#include "operator/site/site_nodes.h"

namespace slurmlet::op {

class SiteReader {
 public:
  // Calls `meanwhile` twice a second while it waits for slurmctld. All arguments must outlive it.
  SiteReader(
      const Options& options, const std::string& cluster, http::Client& client,
      http::Client& machine_client, const Clock& clock, std::function<void()> meanwhile = [] {});

  Status list_nodes();
  Status list_machines();
  Status dump();

  SiteView view() { return {nodes_, dump_, hosts_}; }
  const DumpedNodes& dumped() const { return dump_; }
  const Machines& machines() const { return machines_; }

 private:
  const Options& options_;
  http::Client& client_;
  http::Client& machine_client_;
  const Clock& clock_;
  std::function<void()> meanwhile_;
  DumpedNodes dump_;
  SiteNodes nodes_;
  HostIndex hosts_;
  Machines machines_;
};

}  // namespace slurmlet::op
