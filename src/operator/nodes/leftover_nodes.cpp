#include "operator/nodes/leftover_nodes.h"

#include <set>

#include "base/log.h"
#include "base/plain_text.h"
#include "base/text.h"

namespace slurmlet::op {
namespace {

constexpr Duration kLeftoverInterval = std::chrono::minutes{1};
constexpr Duration kNextNodes = std::chrono::seconds{1};
constexpr int kChecksPerPass = 2;  // each takes up to three blocking calls

// "ns" of metal3://ns/host/machine; "" of any other providerID, such as metal3://UID.
std::string metal3_namespace(std::string_view provider_id) {
  constexpr std::string_view kScheme = "metal3://";
  if (!provider_id.starts_with(kScheme)) {
    return "";
  }
  provider_id.remove_prefix(kScheme.size());
  const auto parts = split(provider_id, '/');
  return parts.size() == 3 ? std::string{parts.front()} : "";
}

}  // namespace

std::map<std::string, std::string> left_over(const std::map<std::string, KubeNode>& nodes,
                                             const Machines& machines) {
  std::set<std::string> clusters, namespaces, of_machines, provider_ids;
  for (const auto& [key, machine] : machines) {
    of_machines.insert(machine.node);
    provider_ids.insert(machine.provider_id);
    if (!machine.deleted_at) {
      clusters.insert(machine.namespace_name + "/" + machine.cluster);
      namespaces.insert(machine.namespace_name);
    }
  }
  std::map<std::string, std::string> out;
  for (const auto& [name, node] : nodes) {
    if (node.belongs != Belongs::kHere || node.deleting || of_machines.contains(name)) {
      continue;
    }
    if (!node.machine.empty()) {
      if (clusters.contains(node.cluster) && !machines.contains(node.machine)) {
        out[name] = "its Machine " + node.machine + " is gone";
      }
    } else if (namespaces.contains(metal3_namespace(node.provider_id)) &&
               !provider_ids.contains(node.provider_id)) {
      out[name] = "no Machine has its providerID " + plain_text(node.provider_id);
    }
  }
  return out;
}

SteadyTime LeftoverNodes::step(Now now, const std::map<std::string, KubeNode>& nodes,
                               const Machines* machines) {
  if (machines == nullptr) {
    suspects_.clear();
    return kNever;
  }
  if (now.steady < next_) {
    return next_;
  }
  next_ = now.steady + kLeftoverInterval;
  const auto found = left_over(nodes, *machines);
  std::erase_if(suspects_, [&](const auto& entry) { return !found.contains(entry.first); });
  int calls = kChecksPerPass;
  for (const auto& [name, why] : found) {
    const auto known = suspects_.find(name);
    if (known != suspects_.end() && now.steady < known->second.next) {
      continue;
    }
    if (--calls < 0) {
      next_ = now.steady + kNextNodes;
      break;
    }
    if (!context_.may_act() || !check(nodes.at(name), why, now)) {
      break;  // no lead, or no answer: try again in a minute
    }
  }
  return next_;
}

bool LeftoverNodes::check(const KubeNode& node, const std::string& why, Now now) {
  const auto lease = context_.leases.get(node.name);
  if (!lease && lease.error().code != Code::kNotFound) {
    return failed("the Lease of Node " + node.name + " was not read", lease.error());
  }
  Suspect& suspect = suspects_[node.name];
  if (suspect.uid != node.uid) {
    suspect = {node.uid, {}, {}};
  }
  const auto seen = suspect.lease.observe(lease, now.steady);
  suspect.next = suspect.lease.known_at();
  return seen != LeaseWatch::Seen::kNotRenewed || remove(node, why, now);
}

bool LeftoverNodes::remove(const KubeNode& node, const std::string& why, Now now) {
  const std::string text = "left over: " + why + ", and its Lease is not renewed";
  suspects_.at(node.name).next = now.steady + kLeaseWatched;  // retried if it fails
  if (dry_run_) {
    log::info("Node " + node.name + " would be deleted, " + text);
    return true;
  }
  const auto fresh = context_.site.get(node.name);
  if (!fresh && fresh.error().code != Code::kNotFound) {
    return failed("Node " + node.name + " was not read", fresh.error());
  }
  if (!fresh || fresh->uid != node.uid || fresh->provider_id != node.provider_id) {
    return true;  // the watch will report the change
  }
  if (!context_.may_act()) {
    return false;
  }
  const Status done = context_.site.remove(node.name, node.uid);
  if (!done && done.error().code != Code::kNotFound) {
    return failed("Node " + node.name + " was not deleted", done.error());
  }
  problem_.clear();
  ++deleted_;
  log::info("Node " + node.name + " is deleted, " + text);
  context_.events.emit({"Node", "", node.name, node.uid}, false, "LeftoverNodeDeleted",
                       "deleted, " + text, why, now);
  return true;
}

bool LeftoverNodes::failed(const std::string& what, const Error& error) {
  ++failures_;
  if (std::exchange(problem_, what) != what) {
    log::warning(what + ": " + error.message);
  }
  return !error.unanswered();
}

}  // namespace slurmlet::op
