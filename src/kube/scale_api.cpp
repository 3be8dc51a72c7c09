#include "kube/scale_api.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "kube/json_read.h"
#include "kube/rest_api.h"
#include "kube/rest_send.h"
#include "node/vocabulary.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;

MachineDeployment deployment_of(const json& value, const char* version) {
  const json& metadata = member(value, "metadata");
  MachineDeployment out;
  out.api_version = version;
  out.namespace_name = string_at(metadata, "namespace");
  out.name = string_at(metadata, "name");
  out.uid = string_at(metadata, "uid");
  out.resource_version = string_at(metadata, "resourceVersion");
  out.annotations = string_map_at(metadata, "annotations");
  out.deleting = find(metadata, "deletionTimestamp") != nullptr;
  const json& spec = member(value, "spec");
  out.cluster = string_at(spec, "clusterName");
  out.replicas = int_at(spec, "replicas").value_or(1);  // Cluster API's default
  return out;
}

std::string collection(const std::string& version, const std::string& name_space) {
  return "/apis/cluster.x-k8s.io/" + version +
         (name_space.empty() ? "" : "/namespaces/" + url_encode(name_space)) +
         "/machinedeployments";
}

}  // namespace

Result<std::vector<MachineDeployment>> RestScaleApi::list() {
  const auto slash = cluster_.find('/');
  const std::string name_space = cluster_.empty() ? "" : cluster_.substr(0, slash);
  const std::string label =
      "cluster.x-k8s.io/cluster-name" + (cluster_.empty() ? "" : "=" + cluster_.substr(slash + 1));
  Error missing{Code::kNotFound, "the server has no MachineDeployments"};
  for (const char* version : {"v1beta2", "v1beta1"}) {
    const http::Request request{
        "GET", collection(version, name_space) + "?labelSelector=" + url_encode(label)};
    const auto response = rest_call(client_, request, options_, "LIST");
    if (!response && response.error().code == Code::kNotFound) {
      missing = response.error();
      continue;
    }
    if (!response) {
      return response.error();
    }
    const auto answer = TRY(answer_json(request, *response));
    std::vector<MachineDeployment> out;
    for (const json& item : list_at(answer, "items")) {
      out.push_back(deployment_of(item, version));
    }
    return out;
  }
  return missing;
}

Status RestScaleApi::set_replicas(const MachineDeployment& deployment, std::int64_t replicas) {
  const json body{{"metadata", {{"resourceVersion", deployment.resource_version}}},
                  {"spec", {{"replicas", replicas}}}};
  return send_only(client_, options_,
                   {"PATCH",
                    collection(deployment.api_version, deployment.namespace_name) + "/" +
                        url_encode(deployment.name) + "/scale?fieldManager=slurmlet-operator",
                    to_text(body), kMergePatch});
}

Status RestScaleApi::mark(const Machine& machine, bool marked) {
  const json body{{"metadata",
                   {{"uid", machine.uid},
                    {"resourceVersion", machine.resource_version},
                    {"annotations",
                     {{node::vocabulary::kDeleteMachine,
                       marked ? json(node::vocabulary::kDeleteMachineBy) : json(nullptr)}}}}}};
  return send_only(client_, options_,
                   {"PATCH", machine_path(machine) + "?fieldManager=slurmlet-operator",
                    to_text(body), kMergePatch});
}

}  // namespace slurmlet::kube
