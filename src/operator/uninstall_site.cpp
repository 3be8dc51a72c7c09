#include "operator/uninstall_site.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"
#include "kube/watch.h"
#include "node/vocabulary.h"
#include "operator/slurm_runner.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;
using nlohmann::json;

constexpr Duration kListTime = std::chrono::seconds{60};
constexpr Duration kTurn = std::chrono::milliseconds{500};

// All objects of a watch, by its first list. kNotFound: the server has no such kind.
template <class T>
Result<std::vector<T>> list_once(kube::Watch<T>& watch, http::Client& client, const Clock& clock) {
  const SteadyTime until = clock.now().steady + kListTime;
  while (clock.now().steady < until) {
    std::vector<kube::WatchEvent<T>> events;
    const SteadyTime next = watch.step(clock.now(), events);
    for (auto& event : events) {
      if (event.type != kube::WatchEvent<T>::Type::kReplaced) {
        continue;
      }
      if (const auto& missing = watch.unreadable(); !missing.empty()) {
        return Error{Code::kInvalid, missing.front() + " cannot be read"};
      }
      return std::move(event.objects);
    }
    if (const auto error = watch.last_error()) {
      return *error;
    }
    (void)client.wait(std::min(next, until), {});
  }
  return Error{Code::kTimeout, "the API server did not list its objects in time"};
}

std::vector<std::string> our_annotations(const json& metadata) {
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
      machine_client_(machine_client),
      clock_(clock),
      keep_lead_(std::move(keep_lead)),
      site_api_(client, {}),
      machine_api_(machine_client, {}),
      dump_({slurm_client(options), options.interval, cluster}, dump_source(options, client, clock),
            system_random()),
      changes_(
          slurm_client(options), slurm_runner(options.slurm_jwt_file, clock),
          [](const NodeChange&) { return true; }, clock, system_random()),
      nodes_(cluster) {}

Status UninstallSite::dump() {
  dump_.forget();
  const auto before = dump_.counters();
  while (dump_.counters().dumps == before.dumps && dump_.counters().failures == before.failures) {
    const SteadyTime next = dump_.step(clock_.now(), true, false);
    (void)keep_lead_();
    (void)client_.wait(std::min(next, clock_.now().steady + kTurn), dump_.wake_fds());
  }
  const std::string problem = dump_.problem(clock_.now().wall);
  hosts_ = HostIndex{dump_.nodes()};
  return problem.empty() ? Status{} : Error{Code::kUnavailable, problem};
}

Status UninstallSite::list_nodes() {
  const auto watch = kube::watch_site_nodes(client_, {}, system_random());
  const auto listed = TRY(list_once(*watch, client_, clock_));
  nodes_.forget();
  for (const kube::SiteNode& node : listed) {
    nodes_.put(node);
  }
  return {};
}

Status UninstallSite::list_machines() {
  const auto watch =
      kube::watch_machines(machine_client_, options_.machine_cluster, {}, system_random());
  machines_.clear();
  auto found = list_once(*watch, machine_client_, clock_);
  if (!found) {
    return found.error().code == Code::kNotFound ? Status{} : found.error();
  }
  for (kube::Machine& machine : *found) {
    const std::string key = key_of(machine);
    machines_.emplace(key, std::move(machine));
  }
  return {};
}

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
                          our_annotations(of_template)};
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
  TRY(list_nodes());
  TRY(list_machines());
  TRY(list_templates());
  TRY(dump());  // last, since changes of Slurm must follow it within seconds
  return plan_uninstall({{nodes_, dump_, hosts_}, machines_, templates_, is_shared});
}

Status UninstallSite::change_slurm(const std::vector<NodeChange>& changes,
                                   const std::function<void(const std::string&)>& done) {
  changes_.decide(changes, dump_.began(), clock_.now().steady);
  while (changes_.has_waiting() && clock_.now().steady - dump_.began() <= kFresh) {
    std::vector<NodeChanges::Done> ended;
    const SteadyTime next = changes_.step(clock_.now().steady, keep_lead_(), ended);
    for (const auto& one : ended) {
      if (!one.failure.empty()) {
        return Error{Code::kInternal,
                     "Slurm node " + one.change.slurm_node + " was not changed: " + one.failure};
      }
      done(describe(one.change, dump_.nodes()));
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
    body["metadata"]["annotations"] = without(marks_of(machine));
    TRY(report_removal(machine_api_.merge(kube::machine_path(machine), body), describe(machine),
                       done));
  }
  for (const NodeMarks& node : plan.nodes) {
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
