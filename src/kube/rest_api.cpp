#include "kube/rest_api.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/event_json.h"
#include "kube/lease_json.h"
#include "kube/node_json.h"
#include "kube/pod_json.h"
#include "kube/rest_send.h"

namespace slurmlet::kube {

namespace {

constexpr const char* kManager = "?fieldManager=slurmlet";
constexpr const char* kNodes = "/api/v1/nodes";

http::Request get_request(std::string path) {
  return {"GET", std::move(path), "", "", kCallTimeout};
}

http::Request write_request(std::string method, const std::string& path, std::string body,
                            const char* content_type) {
  return {std::move(method), path + kManager, std::move(body), content_type, kCallTimeout};
}

http::Request patch_request(const std::string& path, std::string body) {
  return write_request("PATCH", path, std::move(body), kStrategicMergePatch);
}

std::string node_path(const std::string& name) {
  return std::string(kNodes) + "/" + url_encode(name);
}

std::string leases_path() {
  return std::string("/apis/coordination.k8s.io/v1/namespaces/") + kLeaseNamespace + "/leases";
}

std::string lease_path(const std::string& name) { return leases_path() + "/" + url_encode(name); }

std::string pod_path(const Pod& pod) {
  return "/api/v1/namespaces/" + url_encode(pod.namespace_name) + "/pods/" + url_encode(pod.name);
}

std::string events_path(const Event& event) {
  return "/api/v1/namespaces/" + url_encode(event.namespace_name) + "/events";
}

// A pod may be larger than any answer we take, and nothing of it is of use here.
http::Request without_answer(http::Request request) {
  request.accept =
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json;q=0.9";
  return request;
}

Status send_only(http::Client& client, const CallOptions& options, const http::Request& request) {
  const auto response = rest_call(client, request, options, request.method);
  return response ? Status{} : Status{response.error()};
}

}  // namespace

RestNodeApi::RestNodeApi(http::Client& client, CallOptions options)
    : client_(client), options_(std::move(options)) {}

Result<node::ObservedNode> RestNodeApi::send(const http::Request& request) {
  return send_for<node::ObservedNode>(client_, options_, request, node_from_json);
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

RestLeaseApi::RestLeaseApi(http::Client& client, CallOptions options)
    : client_(client), options_(std::move(options)) {}

Result<Lease> RestLeaseApi::send(const http::Request& request) {
  return send_for<Lease>(client_, options_, request, lease_from_json);
}

Result<Lease> RestLeaseApi::get(const std::string& name) {
  return send(get_request(lease_path(name)));
}

Result<Lease> RestLeaseApi::create(const Lease& lease) {
  Lease fresh = lease;
  fresh.resource_version.clear();  // the server refuses it on objects to be created
  return send(write_request("POST", leases_path(), lease_body(fresh), kJson));
}

Result<Lease> RestLeaseApi::update(const Lease& lease) {
  return send(write_request("PUT", lease_path(lease.name), lease_body(lease), kJson));
}

RestPodApi::RestPodApi(http::Client& client, CallOptions options)
    : client_(client), options_(std::move(options)) {}

Status RestPodApi::set_failed(const Pod& pod, const std::string& reason,
                              const std::string& message) {
  return send_only(client_, options_,
                   without_answer(patch_request(pod_path(pod) + "/status",
                                                pod_failed_body(pod, reason, message))));
}

Status RestPodApi::remove_now(const Pod& pod) {
  return send_only(
      client_, options_,
      without_answer({"DELETE", pod_path(pod), pod_delete_body(pod), kJson, kCallTimeout}));
}

RestEventApi::RestEventApi(http::Client& client, CallOptions options)
    : client_(client), options_(std::move(options)) {}

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
