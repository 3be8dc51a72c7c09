#include "kube/rest_api.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "kube/object_json.h"
#include "kube/rest_send.h"
#include "kube/review_api.h"
#include "node/vocabulary.h"

namespace slurmlet::kube {

namespace {

constexpr const char* kManager = "?fieldManager=slurmlet";
constexpr const char* kNodes = "/api/v1/nodes";

http::Request get_request(std::string path) { return {"GET", std::move(path)}; }

http::Request write_request(std::string method, const std::string& path, std::string body,
                            const char* content_type) {
  return {std::move(method), path + kManager, std::move(body), content_type};
}

http::Request patch_request(const std::string& path, std::string body) {
  return write_request("PATCH", path, std::move(body), kStrategicMergePatch);
}

std::string node_path(const std::string& name) {
  return std::string(kNodes) + "/" + url_encode(name);
}

std::string lease_path(const std::string& name_space, const std::string& name) {
  return leases_path(name_space) + "/" + url_encode(name);
}

std::string pod_path(const Pod& pod) {
  return "/api/v1/namespaces/" + url_encode(pod.namespace_name) + "/pods/" + url_encode(pod.name);
}

// A pod may be larger than any answer we take, and nothing of it is of use here.
http::Request without_answer(http::Request request) {
  request.accept =
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json;q=0.9";
  return request;
}

std::string events_path(const Event& event) {
  return "/api/v1/namespaces/" + url_encode(event.namespace_name) + "/events";
}

}  // namespace

std::string machine_path(const Machine& machine) {
  return "/apis/cluster.x-k8s.io/" + url_encode(machine.api_version) + "/namespaces/" +
         url_encode(machine.namespace_name) + "/machines/" + url_encode(machine.name);
}

std::string leases_path(const std::string& name_space) {
  return "/apis/coordination.k8s.io/v1/namespaces/" + url_encode(name_space) + "/leases";
}

Result<node::ObservedNode> RestNodeApi::send(const http::Request& request) {
  return send_for<node::ObservedNode>(client_, options_, request, node_from_json);
}

Result<std::string> RestNodeApi::server_version() {
  return kube::server_version(client_, options_);
}

Result<node::ObservedNode> RestNodeApi::get(const std::string& name) {
  return send(get_request(node_path(name)));
}

Result<node::ObservedNode> RestNodeApi::create(const node::DesiredNode& desired, WallTime now) {
  return send(write_request("POST", kNodes, node_create_body(desired, now), kJson));
}

Result<node::ObservedNode> RestNodeApi::patch_status(const std::string& name,
                                                     const node::NodePatch& patch) {
  return send(patch_request(node_path(name) + "/status", node_patch_body(patch)));
}

Result<node::ObservedNode> RestNodeApi::set_provider_id(const std::string& name,
                                                        const std::string& uid,
                                                        const std::string& provider_id) {
  return send(patch_request(node_path(name), provider_id_patch_body(uid, provider_id)));
}

Result<Lease> RestLeaseApi::send(const http::Request& request) {
  return send_for<Lease>(client_, options_, request, lease_from_json);
}

Result<Lease> RestLeaseApi::get(const std::string& name) {
  return send(get_request(lease_path(namespace_, name)));
}

Result<Lease> RestLeaseApi::create(const Lease& lease) {
  Lease fresh = lease;
  fresh.resource_version.clear();  // the server rejects it on objects to be created
  return send(write_request("POST", leases_path(namespace_), lease_body(fresh, namespace_), kJson));
}

Result<Lease> RestLeaseApi::update(const Lease& lease) {
  return send(write_request("PUT", lease_path(namespace_, lease.name),
                            lease_body(lease, namespace_), kJson));
}

Result<Lease> RestLeaseApi::renew_held(const std::string& name, const std::string& holder,
                                       const std::string& renew_time) {
  return send(write_request("PATCH", lease_path(namespace_, name),
                            lease_renewal_body(holder, renew_time), kJsonPatch));
}

Status RestPodApi::set_failed(const Pod& pod, const std::string& reason,
                              const std::string& message) {
  return send_only(client_, options_,
                   without_answer(patch_request(pod_path(pod) + "/status",
                                                pod_failed_body(pod, reason, message))));
}

Status RestPodApi::remove_now(const Pod& pod) {
  return send_only(client_, options_,
                   without_answer({"DELETE", pod_path(pod), pod_delete_body(pod), kJson}));
}

Result<SiteNode> RestSiteApi::get(const std::string& node) {
  return send_for<SiteNode>(
      client_, options_, get_request(node_path(node)),
      [this](const auto& value) { return site_node_from_json(value, conditions_); });
}

Status RestSiteApi::annotate(const std::string& node, const std::string& uid,
                             const std::map<std::string, std::optional<std::string>>& changes) {
  return send_only(client_, options_,
                   without_answer({"PATCH", node_path(node) + "?fieldManager=slurmlet-operator",
                                   annotations_patch_body(uid, changes), kMergePatch}));
}

Status RestSiteApi::remove(const std::string& node, const std::string& uid) {
  return send_only(client_, options_,
                   without_answer({"DELETE", node_path(node), node_delete_body(uid), kJson}));
}

Result<Machine> RestMachineApi::get(const Machine& machine) {
  auto now = TRY(
      send_for<Machine>(client_, options_, get_request(machine_path(machine)), machine_from_json));
  now.api_version = machine.api_version;
  return now.uid == machine.uid
             ? Result<Machine>{std::move(now)}
             : Error{Code::kNotFound, "another Machine has the name " + machine.name};
}

Status RestMachineApi::release(const Machine& machine) {
  return remove_annotation(machine, node::vocabulary::kMachineHook);
}

Status RestMachineApi::mark_awake(const Machine& machine) {
  return remove_annotation(machine, node::vocabulary::kSkipRemediation);
}

Status RestMachineApi::remove_annotation(const Machine& machine, const char* annotation) {
  return send_only(
      client_, options_,
      without_answer({"PATCH", machine_path(machine) + "?fieldManager=slurmlet-operator",
                      machine_without_body(machine, annotation), kMergePatch}));
}

Status RestEventApi::create(const Event& event) {
  return send_only(client_, options_,
                   write_request("POST", events_path(event), event_body(event), kJson));
}

Status RestEventApi::update(const Event& event) {
  return send_only(
      client_, options_,
      patch_request(events_path(event) + "/" + url_encode(event.name), event_patch_body(event)));
}

}  // namespace slurmlet::kube
