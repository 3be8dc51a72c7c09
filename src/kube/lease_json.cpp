#include "kube/lease_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/json_read.h"

namespace slurmlet::kube {

using nlohmann::json;

std::string lease_body(const Lease& lease, const std::string& name_space) {
  json metadata{{"name", lease.name}, {"namespace", name_space}};
  if (!lease.resource_version.empty()) {
    metadata["resourceVersion"] = lease.resource_version;
  }
  if (!lease.owner_node_uid.empty()) {
    metadata["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                {"kind", "Node"},
                                                {"name", lease.owner_node_name},
                                                {"uid", lease.owner_node_uid}}});
  }
  json spec{{"holderIdentity", lease.holder_identity},
            {"leaseDurationSeconds", lease.duration_seconds}};
  if (!lease.renew_time.empty()) {
    spec["renewTime"] = lease.renew_time;
  }
  if (!lease.acquire_time.empty()) {
    spec["acquireTime"] = lease.acquire_time;
  }
  return to_text({{"apiVersion", "coordination.k8s.io/v1"},
                  {"kind", "Lease"},
                  {"metadata", std::move(metadata)},
                  {"spec", std::move(spec)}});
}

Result<Lease> lease_from_json(const json& value) {
  const json& metadata = member(value, "metadata");
  Lease lease;
  lease.name = string_at(metadata, "name");
  if (lease.name.empty()) {
    return Error{Code::kInvalid, "not a Lease: metadata.name is missing"};
  }
  lease.resource_version = string_at(metadata, "resourceVersion");
  for (const json& owner : list_at(metadata, "ownerReferences")) {
    if (string_at(owner, "kind") == "Node") {
      lease.owner_node_name = string_at(owner, "name");
      lease.owner_node_uid = string_at(owner, "uid");
      break;
    }
  }
  const json& spec = member(value, "spec");
  lease.holder_identity = string_at(spec, "holderIdentity");
  lease.renew_time = string_at(spec, "renewTime");
  lease.acquire_time = string_at(spec, "acquireTime");
  const auto duration = int_at(spec, "leaseDurationSeconds").value_or(0);
  const bool plausible = duration > 0 && std::in_range<int>(duration);
  lease.duration_seconds = plausible ? static_cast<int>(duration) : 0;
  return lease;
}

}  // namespace slurmlet::kube
