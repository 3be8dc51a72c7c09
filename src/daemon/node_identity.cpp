#include "daemon/node_identity.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "base/host_name.h"
#include "base/text.h"
#include "host/machine.h"
#include "node/labels.h"

namespace slurmlet::daemon {
namespace {

struct NameChoice {
  std::string name;
  std::string source;
};

NameChoice choose_name(const config::Settings& settings,
                       const std::optional<node::Metal3Facts>& metal3,
                       const std::string& hostname) {
  if (!settings.node.name.empty()) {
    return {settings.node.name, "the configuration (--nodename)"};
  }
  if (metal3 && !metal3->node_name.empty()) {
    return {metal3->node_name, "Metal3 metadata in " + metal3->source};
  }
  return {to_lower(hostname), "the host name"};
}

Status check_name(const NameChoice& choice) {
  if (!node::is_rfc1123_subdomain(choice.name)) {
    return Error{Code::kInvalid,
                 fmt::format("\"{}\" ({}) cannot be a node name: it must be a lower-case RFC 1123 "
                             "name; give one with --nodename",
                             choice.name, choice.source)};
  }
  return {};
}

node::NodePolicy make_policy(const config::Settings& settings, const std::string& name) {
  node::NodePolicy policy;
  node::NodeChoices& as_configured = policy;
  as_configured = settings.node;
  policy.node_name = name;
  for (const auto ip : split(settings.node.ip, ',')) {
    if (!trim(ip).empty()) {
      policy.node_ips.emplace_back(trim(ip));
    }
  }
  if (auto taints = node::parse_taints(settings.node.taints)) {  // it has been validated
    policy.taints = *std::move(taints);
  }
  policy.kubelet_port = 0;  // known once the endpoint listens
  policy.slurm_labels.clear();
  for (const auto kind : split(settings.node.slurm_labels, ',')) {
    policy.slurm_labels.emplace(trim(kind));
  }
  policy.publish_job_ids = settings.slurm.publish_job_ids;
  return policy;
}

}  // namespace

std::string metal3_uuid_of(const NodeIdentity& identity) {
  if (!identity.policy.metal3_uuid.empty()) {
    return identity.policy.metal3_uuid;
  }
  return identity.metal3 ? identity.metal3->uuid : "";
}

std::string provider_id_of(const NodeIdentity& identity) {
  if (!identity.policy.provider_id.empty()) {
    return identity.policy.provider_id;
  }
  if (identity.metal3 && !identity.metal3->provider_id.empty()) {
    return identity.metal3->provider_id;
  }
  return identity.remembered_provider_id;
}

Result<NodeIdentity> identify(const config::Settings& settings, StateUse use) {
  NodeIdentity identity;
  metal3::Paths paths;
  paths.instance_data = settings.metal3.instance_data;
  paths.state_dir = settings.state_dir;
  metal3::Resolution resolution = metal3::resolve(paths, use);
  identity.reprovisioned = resolution.reprovisioned;
  identity.metal3 = std::move(resolution.facts);
  identity.metadata = std::move(resolution.metadata);
  identity.notes = std::move(resolution.notes);
  identity.hostname = host_name();
  host::Paths machine;
  machine.state_dir = settings.state_dir;
  identity.system_uuid = host::read_system_uuid(machine);
  identity.boot_id = read_trimmed(machine.proc / "sys/kernel/random/boot_id");

  const NameChoice choice = choose_name(settings, identity.metal3, identity.hostname);
  TRY(check_name(choice));
  identity.name_source = choice.source;
  identity.policy = make_policy(settings, choice.name);
  const auto saved = metal3::load_state(settings.state_dir, use);
  if (saved && *saved && (*saved)->uuid == metal3_uuid_of(identity) &&
      (*saved)->node_name == choice.name) {
    identity.remembered_provider_id = (*saved)->provider_id;
  }
  return identity;
}

std::string holder_identity_of(const NodeIdentity& identity) {
  const std::string& name = identity.policy.node_name;
  return identity.system_uuid.empty() ? name : name + "/" + identity.system_uuid;
}

Status check_credential(const NodeIdentity& identity, const std::string& credential_node) {
  const std::string& name = identity.policy.node_name;
  if (credential_node.empty() || credential_node == name) {
    return {};
  }
  return Error{Code::kInvalid,
               fmt::format("the client certificate is for node \"{0}\", but this node's name is "
                           "\"{1}\" from {2}: set --nodename {0}, or a credential for {1}",
                           credential_node, name, identity.name_source)};
}

Status remember_provider_id(const config::Settings& settings, const NodeIdentity& identity,
                            const std::string& provider_id) {
  const std::string uuid = metal3_uuid_of(identity);
  // Without one nothing would show later whether it is still the same Machine.
  return uuid.empty()
             ? Status{}
             : metal3::save_state(settings.state_dir, {uuid, provider_id, identity.policy.node_name,
                                                       identity.metadata});
}

}  // namespace slurmlet::daemon
