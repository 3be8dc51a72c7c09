#include "cli/print_node.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "credentials/access.h"
#include "daemon/node_preview.h"
#include "kube/object_json.h"
#include "kube/rest_api.h"
#include "node/claim.h"
#include "yaml/emit.h"

namespace slurmlet::cli {
namespace {

using PatchMap = std::map<std::string, std::optional<std::string>>;
using StringMap = std::map<std::string, std::string>;

// The lines of one field, below its name.
class Field {
 public:
  explicit Field(std::string name) : name_(std::move(name)) {}
  void remove(const std::string& what) { lines_ += "-   " + what + "\n"; }
  void add(const std::string& what) { lines_ += "+   " + what + "\n"; }
  std::string text() const { return lines_.empty() ? "" : "  " + name_ + ":\n" + lines_; }

 private:
  std::string name_;
  std::string lines_;
};

std::string map_text(const char* name, const StringMap& live, const PatchMap& patch) {
  Field field{name};
  for (const auto& [key, value] : patch) {
    const auto found = live.find(key);
    if (found != live.end()) {
      field.remove(key + ": " + found->second);
    }
    if (value) {
      field.add(key + ": " + *value);
    }
  }
  return field.text();
}

std::string condition_line(const node::Condition& condition) {
  return fmt::format("{}: {} {} \"{}\"", condition.type, condition.status, condition.reason,
                     condition.message);
}

std::string conditions_text(const node::ObservedNode& live, const node::NodePatch& patch) {
  Field field{"status.conditions"};
  const auto remove_all = [&](const std::string& type) {
    for (const auto& one : live.conditions) {
      if (one.condition.type == type) {
        field.remove(condition_line(one.condition));
      }
    }
  };
  std::set<std::string> removed = patch.removed_conditions;
  for (const auto& wanted : patch.conditions) {
    if (wanted.differs) {
      remove_all(wanted.condition.type);
      removed.erase(wanted.condition.type);
      field.add(condition_line(wanted.condition));
    }
  }
  for (const auto& type : removed) {
    remove_all(type);
  }
  return field.text();
}

std::string addresses_text(const node::ObservedNode& live, const node::NodePatch& patch) {
  Field field{"status.addresses"};
  if (patch.addresses) {
    for (const auto& address : live.addresses) {
      field.remove(address.type + ": " + address.address);
    }
    for (const auto& address : *patch.addresses) {
      field.add(address.type + ": " + address.address);
    }
  }
  return field.text();
}

std::string info_text(const node::ObservedNode& live, const node::NodePatch& patch) {
  if (!patch.node_info) {
    return "";
  }
  Field field{"status.nodeInfo"};
  for (const auto& [name, text] : node::kNodeInfoFields) {
    const std::string& before = live.node_info.*text;
    const std::string& after = (*patch.node_info).*text;
    if (before != after) {
      field.remove(fmt::format("{}: {}", name, before));
      field.add(fmt::format("{}: {}", name, after));
    }
  }
  return field.text();
}

std::string spec_text(const node::ObservedNode& live, const node::DesiredNode& wanted) {
  std::string out;
  if (live.provider_id != wanted.provider_id && !wanted.provider_id.empty()) {
    Field field{"spec"};
    if (!live.provider_id.empty()) {
      field.remove("providerID: " + live.provider_id);
    }
    field.add("providerID: " + wanted.provider_id);
    out += field.text();
  }
  Field taints{"spec.taints (only an administrator can add them: kubectl taint node)"};
  for (const auto& taint : node::missing_taints(live, wanted)) {
    taints.add(fmt::format("{}={}:{}", taint.key, taint.value, taint.effect));
  }
  return out + taints.text();
}

}  // namespace

std::string diff_text(const node::ObservedNode& live, const node::DesiredNode& wanted,
                      WallTime now) {
  std::string changes;
  if (const auto foreign = node::foreign_claim(live, wanted)) {
    changes = "! slurmlet would change nothing: " + *foreign + "\n";
  }
  const node::NodePatch patch = node::node_diff(live, wanted, now);
  changes += map_text("metadata.labels", live.labels, patch.labels);
  changes += map_text("metadata.annotations", live.annotations, patch.annotations);
  changes += spec_text(live, wanted);
  changes += map_text("status.capacity", live.capacity, patch.capacity);
  changes += map_text("status.allocatable", live.allocatable, patch.allocatable);
  changes += conditions_text(live, patch);
  changes += addresses_text(live, patch);
  changes += info_text(live, patch);
  if (patch.kubelet_port) {
    Field field{"status.daemonEndpoints.kubeletEndpoint"};
    field.remove(fmt::format("Port: {}", live.kubelet_port));
    field.add(fmt::format("Port: {}", *patch.kubelet_port));
    changes += field.text();
  }
  if (changes.empty()) {
    return "";
  }
  return fmt::format("--- Node {} in the cluster\n+++ Node {} desired by slurmlet\n{}", live.name,
                     wanted.name, changes);
}

std::string missing_text(const node::DesiredNode& wanted) {
  return fmt::format("+++ Node {0}: the API server has none; `slurmlet print-node` shows it\n",
                     wanted.name);
}

Result<std::string> print_node(const config::Settings& settings, const std::string& format) {
  const auto preview = TRY(daemon::preview_node(settings, {}));
  const std::string json = kube::node_create_body(preview.desired, preview.at.wall);
  if (format == "json") {
    return json + "\n";
  }
  return yaml::emit(nlohmann::ordered_json::parse(json));
}

Result<std::string> diff_node(const config::Settings& settings) {
  const SystemClock clock;
  const auto access = TRY(credentials::ApiAccess::open(settings, clock));
  const auto client = TRY(access.connect());
  daemon::PreviewOptions options;
  options.route = access.route_source();
  kube::RestNodeApi api{*client, {}};
  options.record = [&api](const std::string& name) {
    const auto node = api.get(name);
    return node ? std::optional{node::record_of(*node)} : std::nullopt;
  };
  const auto preview = TRY(daemon::preview_node(settings, options));
  const auto live = api.get(preview.desired.name);
  if (!live) {
    return live.error().code == Code::kNotFound ? Result<std::string>{missing_text(preview.desired)}
                                                : live.error();
  }
  return diff_text(*live, preview.desired, preview.at.wall);
}

}  // namespace slurmlet::cli
