#include "operator/uninstall_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"
#include "node/vocabulary.h"
#include "operator/slurm_runner.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;
using nlohmann::json;

constexpr Duration kTurn = std::chrono::milliseconds{500};

std::vector<std::string> own_annotations(const json& metadata) {
  const json& annotations = kube::member(metadata, "annotations");
  std::vector<std::string> out;
  for (const char* key : {names::kMachineHook, names::kDrainPolicy}) {
    if (annotations.is_object() && annotations.contains(key)) {
      out.emplace_back(key);
    }
  }
  return out;
}

json without(const std::vector<std::string>& annotations) {
  json out = json::object();
  for (const std::string& key : annotations) {
    out[key] = nullptr;
  }
  return out;
}

json as_read(const std::string& uid, const std::string& resource_version) {
  json out;
  out["uid"] = uid;
  out["resourceVersion"] = resource_version;
  return out;
}

// Of Cluster API; "": there is none. By the lists of groups and kinds: the path of one that is not
// served is answered 404, as by any load balancer.
Result<std::string> machine_version(kube::RestObjectApi& api) {
  const auto groups = TRY(api.get("/apis"));
  for (const json& group : kube::list_at(groups, "groups")) {
    if (kube::string_at(group, "name") == "cluster.x-k8s.io") {
      return kube::string_at(kube::member(group, "preferredVersion"), "version");
    }
  }
  return std::string{};
}

// Calls `done` with `what` if it was written. An object that is gone, or has changed since it was
// read, is no error: the next look shows it.
Status report_removal(const Status& written, const std::string& what,
                      const std::function<void(const std::string&)>& done) {
  if (written) {
    done(what);
    return {};
  }
  const Code code = written.error().code;
  return code == Code::kNotFound || code == Code::kConflict ? Status{} : written;
}

}  // namespace

UninstallSite::UninstallSite(const Options& options, const std::string& cluster,
                             http::Client& client, http::Client& machine_client, const Clock& clock,
                             std::function<bool()> keep_lead)
    : options_(options),
      client_(client),
      clock_(clock),
      keep_lead_(std::move(keep_lead)),
      site_api_(client, {}),
      machine_api_(machine_client, {}),
      reader_(options, cluster, client, machine_client, clock, [this] { (void)keep_lead_(); }),
      changes_(
          slurm_client(options), slurm_runner(options.slurm_jwt_file, clock),
          [](const NodeChange&) { return true; }, clock, system_random()) {}

Status UninstallSite::list_templates() {
  templates_.clear();
  const std::string version = TRY(machine_version(machine_api_));
  if (version.empty()) {
    return {};
  }
  const std::string base = "/apis/cluster.x-k8s.io/" + version;
  const auto kinds = TRY(machine_api_.get(base));
  const auto slash = options_.machine_cluster.find('/');
  const std::string name_space =
      slash == std::string::npos
          ? ""
          : "/namespaces/" + url_encode(options_.machine_cluster.substr(0, slash));
  for (const auto& [kind, plural] :
       {std::pair{"MachineDeployment", "machinedeployments"}, {"MachineSet", "machinesets"}}) {
    const json& served = kube::list_at(kinds, "resources");
    if (std::none_of(served.begin(), served.end(), [wanted = plural](const json& one) {
          return kube::string_at(one, "name") == wanted;
        })) {
      continue;
    }
    const auto items = TRY(machine_api_.list(base + name_space + "/" + plural));
    for (const json& item : items) {
      const json& metadata = kube::member(item, "metadata");
      const json& of_template =
          kube::member(kube::member(kube::member(item, "spec"), "template"), "metadata");
      MachineTemplate one{kind,
                          kube::string_at(metadata, "namespace"),
                          kube::string_at(metadata, "name"),
                          kube::string_at(metadata, "uid"),
                          kube::string_at(metadata, "resourceVersion"),
                          kube::string_at(kube::member(item, "spec"), "clusterName"),
                          "",
                          own_annotations(of_template)};
      one.path = base + "/namespaces/" + url_encode(one.namespace_name) + "/" + plural + "/" +
                 url_encode(one.name);
      if (slash == std::string::npos || one.cluster == options_.machine_cluster.substr(slash + 1)) {
        templates_.push_back(std::move(one));
      }
    }
  }
  return {};
}

Result<UninstallPlan> UninstallSite::look(bool is_shared) {
  TRY(reader_.list_nodes());
  TRY(reader_.list_machines());
  TRY(list_templates());
  TRY(reader_.dump());  // last, since changes of Slurm must follow it within seconds
  return plan_uninstall({reader_.view(), reader_.machines(), templates_, is_shared});
}

Status UninstallSite::change_slurm(const std::vector<NodeChange>& changes,
                                   const std::function<void(const std::string&)>& done) {
  changes_.decide(changes, reader_.dumped().began(), clock_.now().steady);
  while (changes_.has_waiting() && clock_.now().steady - reader_.dumped().began() <= kFresh) {
    std::vector<NodeChanges::Done> ended;
    const SteadyTime next = changes_.step(clock_.now().steady, keep_lead_(), ended);
    for (const auto& one : ended) {
      if (!one.failure.empty()) {
        return Error{Code::kInternal,
                     "Slurm node " + one.change.slurm_node + " was not changed: " + one.failure};
      }
      done(describe(one.change, reader_.dumped().nodes()));
    }
    if (changes_.has_waiting()) {
      (void)client_.wait(std::min(next, clock_.now().steady + kTurn), changes_.wake_fds());
    }
  }
  return {};
}

Status UninstallSite::take_back(const UninstallPlan& plan,
                                const std::function<void(const std::string&)>& done) {
  if (!plan.slurm.empty()) {
    return change_slurm(plan.slurm, done);  // the next look shows whether all is changed
  }
  for (const MachineTemplate& one : plan.templates) {
    json body;
    body["metadata"] = as_read(one.uid, one.resource_version);
    body["spec"]["template"]["metadata"]["annotations"] = without(one.annotations);
    TRY(report_removal(machine_api_.merge(one.path, body), describe(one), done));
  }
  for (const kube::Machine& machine : plan.machines) {
    (void)keep_lead_();
    json body;
    body["metadata"] = as_read(machine.uid, machine.resource_version);
    body["metadata"]["annotations"] = without(own_annotations(machine));
    TRY(report_removal(machine_api_.merge(kube::machine_path(machine), body), describe(machine),
                       done));
  }
  for (const NodeAnnotations& node : plan.nodes) {
    if (!keep_lead_()) {
      return Error{Code::kConflict, "another operator leads now; stop it first"};
    }
    std::map<std::string, std::optional<std::string>> changes;
    for (const std::string& key : node.annotations) {
      changes.emplace(key, std::nullopt);
    }
    TRY(report_removal(site_api_.annotate(node.node, node.uid, changes), describe(node), done));
  }
  return {};
}

}  // namespace slurmlet::op
