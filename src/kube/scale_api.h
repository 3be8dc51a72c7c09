#pragma once

// MachineDeployments of Cluster API: how many Machines they have, and which of these go first.

#include <map>
#include <string>
#include <vector>

#include "kube/api.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

struct MachineDeployment {
  std::string api_version;  // "v1beta2": by which it was read
  std::string namespace_name, name, uid, resource_version;
  std::string cluster;
  std::map<std::string, std::string> annotations;
  std::int64_t replicas = 0;
  bool deleting = false;
};

class ScaleApi {
 public:
  virtual ~ScaleApi() = default;
  // All of them now, from the server.
  virtual Result<std::vector<MachineDeployment>> list() = 0;
  // kConflict: it has changed since it was read.
  virtual Status set_replicas(const MachineDeployment& deployment, std::int64_t replicas) = 0;
  // Sets or removes the annotation by which Cluster API deletes this Machine first. kConflict: the
  // Machine has changed since it was read.
  virtual Status mark(const Machine& machine, bool marked) = 0;
};

class RestScaleApi final : public ScaleApi, private RestCaller {
 public:
  // `cluster`: NAMESPACE/NAME; "" = of all Clusters.
  RestScaleApi(http::Client& client, CallOptions options, std::string cluster)
      : RestCaller(client, std::move(options)), cluster_(std::move(cluster)) {}
  Result<std::vector<MachineDeployment>> list() override;
  Status set_replicas(const MachineDeployment& deployment, std::int64_t replicas) override;
  Status mark(const Machine& machine, bool marked) override;

 private:
  std::string cluster_;
};

}  // namespace slurmlet::kube
