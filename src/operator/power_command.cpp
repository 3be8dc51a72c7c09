#include "operator/power_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/print.h"
#include "base/text.h"
#include "kube/json_read.h"
#include "kube/object_api.h"
#include "kube/rest_api.h"
#include "node/vocabulary.h"
#include "operator/local_settings.h"
#include "operator/site_reader.h"
#include "slurm/answers/hostlist.h"

namespace slurmlet::op {
namespace {

namespace names = node::vocabulary;
using nlohmann::json;

// The controllers of Machines and hosts write them as well.
constexpr int kTries = 5;
// A long list takes a while, in which Slurm may want a host up again.
constexpr Duration kDumpIsGood = std::chrono::seconds{10};

std::string host_path(const PowerHost& host) {
  return "/apis/metal3.io/v1alpha1/namespaces/" + url_encode(host.namespace_name) +
         "/baremetalhosts/" + url_encode(host.name);
}

// By all that releases a Machine, too (machine_place.h).
std::map<std::string, std::vector<PowerMachine>> by_slurm_node(SiteReader& site) {
  std::map<std::string, std::size_t> claims;
  const SiteView view = site.view();
  const auto name_of = [&](const kube::Machine& machine) {
    const KubeNode* node = node_of(machine, view.nodes);
    return node == nullptr ? machine.node : node->name;
  };
  for (const auto& [key, machine] : site.machines()) {
    ++claims[name_of(machine)];
  }
  std::map<std::string, std::vector<PowerMachine>> out;
  for (const auto& [key, machine] : site.machines()) {
    const MachinePlace place = find_place(machine, view, claims[name_of(machine)]);
    if (place.is_elsewhere) {
      continue;
    }
    for (const SlurmNode* slurm : place.slurm) {
      out[slurm->name].push_back({key, machine.provider_id, machine.deleted_at.has_value(),
                                  place.has_node, place.unclear, place.slurm});
    }
  }
  return out;
}

class Power {
 public:
  Power(PowerAction action, http::Client& machine_client)
      : action_(action), api_(machine_client, {}) {}

  // Idempotent.
  Status switch_host(const PowerHost& host, const std::string& machine_path) {
    if (action_ == PowerAction::kSuspend) {
      TRY(annotate(machine_path, names::kSkipRemediation, names::kSleeping,
                   [](const json&) { return Status{}; }));
    }
    return annotate(host_path(host), names::kPowerOff,
                    action_ == PowerAction::kSuspend ? json(R"({"mode":"soft"})") : json(nullptr),
                    [&](const json& object) { return is_consumer(host, object); });
  }

 private:
  static Status is_consumer(const PowerHost& host, const json& object) {
    const json& consumer = kube::member(kube::member(object, "spec"), "consumerRef");
    return kube::string_at(consumer, "kind") == "Metal3Machine" &&
                   kube::string_at(consumer, "name") == host.consumer
               ? Status{}
               : Error{Code::kConflict,
                       fmt::format("BareMetalHost {}/{} is not of Metal3Machine {}",
                                   host.namespace_name, host.name, host.consumer)};
  }

  // Sets it, or removes it (null), on the object as it was read and found to be right.
  template <class IsRight>
  Status annotate(const std::string& path, const char* key, const json& value,
                  const IsRight& is_right) {
    Status written;
    for (int i = 0; i < kTries; ++i) {
      const auto object = TRY(api_.get(path));
      TRY(is_right(object));
      const json& metadata = kube::member(object, "metadata");
      const json& annotations = kube::member(metadata, "annotations");
      const bool is_there = annotations.is_object() && annotations.contains(key);
      if (is_there != value.is_null()) {
        return {};
      }
      json body;
      body["metadata"] = {{"uid", kube::string_at(metadata, "uid")},
                          {"resourceVersion", kube::string_at(metadata, "resourceVersion")},
                          {"annotations", {{key, value}}}};
      written = api_.merge(path, body);
      if (written || written.error().code != Code::kConflict) {
        return written;
      }
    }
    return written;
  }

  PowerAction action_;
  kube::RestObjectApi api_;
};

// The nodes that could not be switched, and why.
Result<std::map<std::string, std::string>> power(const CommandLine& command) {
  Options options = command.options;
  const auto wanted = TRY(slurm::expand_hostlist(command.power.hosts));
  const auto cluster = TRY(cluster_name(options.slurm_conf));
  const SystemClock clock;
  const auto server = TRY(connect_api(options.kubeconfig, clock));
  const auto management =
      TRY(connect_management(*server.client, options.management_kubeconfig, clock));
  http::Client& machine_client = management ? *management->client : *server.client;
  SiteReader site{options, cluster, *server.client, machine_client, clock};
  TRY(site.list_nodes());
  TRY(site.list_machines());
  TRY(site.dump());
  SteadyTime dumped = clock.now().steady;
  auto machines = by_slurm_node(site);
  Power switches{command.power.action, machine_client};
  std::map<std::string, std::string> failed;
  for (const std::string& name : wanted) {
    if (clock.now().steady - dumped > kDumpIsGood) {
      TRY(site.dump());
      dumped = clock.now().steady;
      machines = by_slurm_node(site);
    }
    const auto& own = machines[name];
    const auto host = rule_power(command.power.action, own);
    Status done = host ? Status{} : host.error();
    if (done && !options.dry_run) {
      done = switches.switch_host(*host, kube::machine_path(site.machines().at(own.front().key)));
    }
    if (!done) {
      failed[name] = done.error().message;
    } else {
      say(fmt::format("{}: BareMetalHost {}/{} {} switched {}", name, host->namespace_name,
                      host->name, options.dry_run ? "would be" : "is",
                      command.power.action == PowerAction::kSuspend ? "off" : "on"));
    }
  }
  return failed;
}

}  // namespace

int run_power(const CommandLine& command) {
  log::set_level(log::Level::kError);
  const auto failed = power(command);
  if (!failed) {
    log::error_lines(failed.error().message);
    return 1;
  }
  for (const auto& [name, why] : *failed) {
    log::error_lines(name + ": " + why);
  }
  return failed->empty() ? 0 : 1;
}

}  // namespace slurmlet::op
