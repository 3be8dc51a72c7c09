#pragma once

// NodeApi, LeaseApi, PodApi, SiteApi, MachineApi and EventApi over HTTP and JSON (see api.h for
// what each call means; https://kubernetes.io/docs/reference/using-api/api-concepts/ for the
// verbs). Writes name fieldManager=slurmlet, so that `kubectl get --show-managed-fields` shows who
// wrote what.
//
// Each object belongs to the thread of its http::Client and must not outlive it.

#include <string>
#include <utility>

#include "kube/api.h"
#include "kube/object_json.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

// For RestObjectApi.
std::string machine_path(const Machine& machine);
std::string leases_path(const std::string& name_space);

class RestNodeApi final : public NodeApi, private RestCaller {
 public:
  using RestCaller::RestCaller;
  Result<std::string> server_version() override;
  Result<node::ObservedNode> get(const std::string& name) override;
  Result<node::ObservedNode> create(const node::DesiredNode& desired, WallTime now) override;
  Result<node::ObservedNode> patch_status(const std::string& name,
                                          const node::NodePatch& patch) override;
  Result<node::ObservedNode> set_provider_id(const std::string& name, const std::string& uid,
                                             const std::string& provider_id) override;

 private:
  Result<node::ObservedNode> send(const http::Request& request);
};

class RestLeaseApi final : public LeaseApi, private RestCaller {
 public:
  RestLeaseApi(http::Client& client, CallOptions options, std::string name_space = kLeaseNamespace)
      : RestCaller(client, std::move(options)), namespace_(std::move(name_space)) {}
  Result<Lease> get(const std::string& name) override;
  Result<Lease> create(const Lease& lease) override;
  Result<Lease> update(const Lease& lease) override;
  Result<Lease> renew_held(const std::string& name, const std::string& holder,
                           const std::string& renew_time) override;

 private:
  Result<Lease> send(const http::Request& request);
  const std::string namespace_;
};

class RestPodApi final : public PodApi, private RestCaller {
 public:
  using RestCaller::RestCaller;
  Status set_failed(const Pod& pod, const std::string& reason, const std::string& message) override;
  Status remove_now(const Pod& pod) override;
};

class RestSiteApi final : public SiteApi, private RestCaller {
 public:
  // `conditions`: types that get() reads.
  RestSiteApi(http::Client& client, CallOptions options, ConditionTypes conditions = {})
      : RestCaller(client, std::move(options)), conditions_(std::move(conditions)) {}
  Result<SiteNode> get(const std::string& node) override;
  Status annotate(const std::string& node, const std::string& uid,
                  const std::map<std::string, std::optional<std::string>>& changes) override;
  Status remove(const std::string& node, const std::string& uid) override;

 private:
  ConditionTypes conditions_;
};

class RestMachineApi final : public MachineApi, private RestCaller {
 public:
  using RestCaller::RestCaller;
  Result<Machine> get(const Machine& machine) override;
  Status release(const Machine& machine) override;
  Status mark_awake(const Machine& machine) override;

 private:
  Status remove_annotation(const Machine& machine, const char* annotation);
};

class RestEventApi final : public EventApi, private RestCaller {
 public:
  using RestCaller::RestCaller;
  Status create(const Event& event) override;
  Status update(const Event& event) override;
};

}  // namespace slurmlet::kube
