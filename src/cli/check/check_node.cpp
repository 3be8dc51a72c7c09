#include "cli/check/check_node.h"

#include <fmt/format.h>

#include <utility>

#include "base/rfc3339.h"
#include "daemon/state_dir.h"
#include "kube/object_json.h"
#include "kube/rest_api.h"
#include "node/claim.h"
#include "node/lease_holder.h"

namespace slurmlet::cli {
namespace {

using check::Finding;
using check::Findings;
using std::chrono::seconds;

// The Machine that the Node went with, or will be found to have gone with, unless it comes back
// now.
void read_deletion(const config::Settings& settings, const credentials::ApiAccess& access,
                   const daemon::NodePreview& preview, NodeSeen& out) {
  const auto record = daemon::load_deletion_record(
      {settings.state_dir, preview.facts.machine.boot_id, preview.desired.name,
       daemon::metal3_uuid_of(preview.identity), daemon::provider_id_of(preview.identity),
       access.credential_identity()},
      preview.at.steady);
  if (!record || !*record) {
    return;
  }
  if (const auto after = settings.node.recreate_after) {
    const Duration left =
        (*record)->gone_at.value_or(preview.at.steady) + *after - preview.at.steady;
    if (left <= Duration{0}) {
      return;
    }
    out.deleted_until =
        rfc3339(preview.at.wall + std::chrono::duration_cast<WallTime::duration>(left));
  }
  out.deleted_with = (*record)->machine;
}

Finding missing_node(const NodeSeen& seen) {
  if (seen.deleted_with.empty()) {
    return check::info(
        fmt::format("{} is not registered{}", seen.name,
                    seen.daemon_runs ? " yet" : ": slurmlet registers it once it is running"));
  }
  return check::warning(
      fmt::format("{} was deleted with its Machine {}", seen.name, seen.deleted_with),
      "power this host off, or reprovision it; to get the Node back without its Machine, set "
      "node.recreateAfter: 0s and restart slurmlet",
      fmt::format(
          "slurmlet does not register it again {} (node.recreateAfter)",
          seen.deleted_until.empty() ? "until the next boot" : "until " + seen.deleted_until));
}

template <typename T>
void take(Result<T> read, std::optional<T>& out, std::optional<Error>& problem) {
  if (read) {
    out = *std::move(read);
  } else if (read.error().code != Code::kNotFound) {
    problem = read.error();
  }
}

}  // namespace

std::vector<kube::OwnRight> needed_rights(const std::string& name, bool endpoint,
                                          bool certificates) {
  const std::string own_node = "metadata.name=" + name;
  const std::string own_pods = "spec.nodeName=" + name;
  constexpr const char* kLeases = "coordination.k8s.io";
  std::vector<kube::OwnRight> out{
      {"get", "", "nodes", "", name, "", ""},
      // The API server takes the name out of a selector by metadata.name.
      {"list", "", "nodes", "", name, "", own_node},
      {"watch", "", "nodes", "", name, "", own_node},
      {"create", "", "nodes", "", "", "", ""},
      {"patch", "", "nodes", "", name, "", ""},
      {"patch", "", "nodes", "status", name, "", ""},
      {"get", kLeases, "leases", "", name, kube::kLeaseNamespace, ""},
      {"create", kLeases, "leases", "", "", kube::kLeaseNamespace, ""},
      {"update", kLeases, "leases", "", name, kube::kLeaseNamespace, ""},
      {"patch", kLeases, "leases", "", name, kube::kLeaseNamespace, ""},
      {"list", "", "pods", "", "", "", own_pods},
      {"watch", "", "pods", "", "", "", own_pods},
      {"delete", "", "pods", "", "", "", ""},
      {"patch", "", "pods", "status", "", "", ""},
      {"create", "", "events", "", "", "", ""},
      {"patch", "", "events", "", "", "", ""}};
  if (certificates) {
    for (const char* verb : {"create", "get", "list", "watch"}) {
      out.push_back({verb, "certificates.k8s.io", "certificatesigningrequests", "", "", "", ""});
    }
  }
  if (endpoint) {
    out.push_back({"create", "authentication.k8s.io", "tokenreviews", "", "", "", ""});
    out.push_back({"create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", ""});
  }
  return out;
}

NodeSeen read_node(http::Client& client, const kube::CallOptions& options,
                   const config::Settings& settings, const credentials::ApiAccess& access,
                   const daemon::NodePreview& preview) {
  NodeSeen out;
  out.name = preview.desired.name;
  const std::string& uuid = preview.facts.machine.system_uuid;
  out.holder_identity = uuid.empty() ? out.name : out.name + "/" + uuid;
  take(kube::RestNodeApi{client, options}.get(out.name), out.node, out.problem);
  take(kube::RestLeaseApi{client, options}.get(out.name), out.lease, out.problem);
  read_deletion(settings, access, preview, out);
  return out;
}

Findings node_findings(const NodeSeen& seen, const node::DesiredNode& wanted) {
  if (seen.problem) {
    return {check::error("cannot be read", "", seen.problem->reason())};
  }
  if (!seen.node) {
    return {missing_node(seen)};
  }
  if (const auto foreign = node::foreign_claim(*seen.node, wanted)) {
    return {check::error(*foreign)};
  }
  const std::string mine =
      fmt::format("{} exists and is this machine's, uid {}", seen.name, seen.node->uid);
  Findings out{seen.node->deleting ? check::warning(mine + "; it is being deleted")
                                   : check::ok(mine)};
  for (const auto& taint : node::missing_taints(*seen.node, wanted)) {
    const std::string what = fmt::format("{}={}:{}", taint.key, taint.value, taint.effect);
    out.push_back(check::warning(
        "lacks the taint " + what + ", so pods may be bound to it (and are rejected)",
        fmt::format("kubectl taint node {} {}", seen.name, what)));
  }
  return out;
}

Findings lease_findings(const NodeSeen& seen, WallTime now) {
  if (!seen.lease || seen.problem) {
    return {};
  }
  const kube::Lease& lease = *seen.lease;
  const auto renewed = parse_rfc3339(lease.renew_time);
  const bool foreign = node::is_foreign_holder(lease.holder_identity, seen.holder_identity);
  const bool fresh = renewed && now - *renewed < seconds{lease.duration_seconds};
  const std::string held =
      fmt::format("held by {}, {}", lease.holder_identity,
                  lease.renew_time.empty() ? "never renewed" : "renewed at " + lease.renew_time);
  if (foreign && fresh) {
    return {check::error(fmt::format("{}: another machine runs Node {}", held, seen.name),
                         "give one of the two another node name (--nodename)")};
  }
  if (foreign) {
    return {
        check::warning(held + ": another machine that appears to be gone; slurmlet takes it over")};
  }
  if (fresh && seen.node &&
      (lease.owner_node_uid.empty() || lease.owner_node_uid == seen.node->uid)) {
    return {check::ok(held)};
  }
  return {fresh || !seen.daemon_runs ? check::info(held + "; slurmlet renews it once it is running")
                                     : check::warning(held, "see daemon")};
}

}  // namespace slurmlet::cli
