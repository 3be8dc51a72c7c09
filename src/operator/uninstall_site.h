#pragma once

// The site as uninstall sees it, fresh with each look, and what it takes back there. Blocks. One
// thread, that of the clients.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kube/object_api.h"
#include "kube/rest_api.h"
#include "operator/options.h"
#include "operator/site/node_changes.h"
#include "operator/site_reader.h"
#include "operator/uninstall_rules.h"

namespace slurmlet::op {

class UninstallSite {
 public:
  // `keep_lead` renews the leader's Lease and returns whether this process may act. All arguments
  // must outlive it.
  UninstallSite(const Options& options, const std::string& cluster, http::Client& client,
                http::Client& machine_client, const Clock& clock, std::function<bool()> keep_lead);

  // Lists Nodes, Machines and their templates, and dumps Slurm. `is_shared`: uninstall_rules.h.
  Result<UninstallPlan> look(bool is_shared);
  const SlurmNodes& slurm_nodes() const { return reader_.dumped().nodes(); }

  // Takes back what look() has just planned, and calls `done` for each removal. What has
  // changed meanwhile is left to the next look; an Error ends it.
  Status take_back(const UninstallPlan& plan, const std::function<void(const std::string&)>& done);

 private:
  Status list_templates();
  Status change_slurm(const std::vector<NodeChange>& changes,
                      const std::function<void(const std::string&)>& done);

  const Options& options_;
  http::Client& client_;
  const Clock& clock_;
  std::function<bool()> keep_lead_;
  kube::RestSiteApi site_api_;
  kube::RestObjectApi machine_api_;
  SiteReader reader_;
  NodeChanges changes_;
  std::vector<MachineTemplate> templates_;
};

}  // namespace slurmlet::op
