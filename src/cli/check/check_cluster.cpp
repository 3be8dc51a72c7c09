#include "cli/check/check_cluster.h"

#include <fmt/format.h>

#include <cmath>

#include "base/rfc3339.h"
#include "kube/object_json.h"
#include "node/claim.h"
#include "node/lease_holder.h"

namespace slurmlet::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The Date header has whole seconds, and an answer takes its time.
constexpr Duration kSkewThatCounts = seconds{5};
constexpr Duration kSlowAnswer = seconds{1};

using Stage = RequestFailure::Stage;

Finding server_problem(const ServerSeen& seen) {
  const std::string& why = seen.problem->message;
  const auto error = [&](const std::string& stage, std::string cure) {
    return Finding{kSubjectServer, Severity::kError, seen.url + ": " + stage, why, std::move(cure)};
  };
  switch (seen.problem->request ? seen.problem->request->stage : Stage::kAnswer) {
    case Stage::kName:
      return error("the name cannot be resolved",
                   "check the name, and this machine's DNS (getent hosts NAME)");
    case Stage::kConnection:
      return error("cannot be reached",
                   "check that it is running, the network, the firewall and the address in " +
                       seen.url_place);
    case Stage::kTls:
      return error("TLS fails",
                   "check that the address in " + seen.url_place +
                       " is the API server's (https), and that no proxy answers in its place");
    case Stage::kServerExpired:
      return seen.ca_expired.empty()
                 ? error("its certificate has expired",
                         "renew it (kubeadm certs renew apiserver, on each control plane node), or "
                         "correct this machine's clock if it is ahead")
                 : error("the CA in " + seen.ca_place + " expired " + seen.ca_expired,
                         "put this cluster's present CA there, or correct this machine's clock if "
                         "it is ahead");
    case Stage::kServerNotYetValid:
      return error("its certificate is not yet valid",
                   "correct this machine's clock if it is behind (timedatectl); else the API "
                   "server's");
    case Stage::kServerName:
      return error("its certificate is for other names",
                   "name the server in " + seen.url_place +
                       " as its certificate does (or in tls-server-name of the kubeconfig), or add "
                       "this name to the certificate");
    case Stage::kServerIssuer:
      return error("its certificate is signed by another CA",
                   "put this cluster's CA into " + seen.ca_place);
    case Stage::kCredential:
      return seen.by_bootstrap ? error("rejects the bootstrap token",
                                       "it has expired or was deleted: replace the token named "
                                       "under bootstrap (kubeadm token create)")
                               : error("rejects this node's credential",
                                       "see credential; use one signed by this cluster's CA");
    case Stage::kAnswer:
      break;
  }
  return error("returned an error", "check the API server's log");
}

Finding missing_node(const NodeSeen& seen) {
  if (!seen.gone_with.empty()) {
    return {
        kSubjectNode, Severity::kWarning,
        fmt::format("{} was deleted with its Machine {}", seen.name, seen.gone_with),
        fmt::format("slurmlet does not register it again {} (node.recreateAfter)",
                    seen.gone_until.empty() ? "until the next boot" : "until " + seen.gone_until),
        "power this host off, or reprovision it; to get the Node back without its Machine, set "
        "node.recreateAfter: 0s and reload slurmlet"};
  }
  return {kSubjectNode, Severity::kInfo,
          fmt::format("{} is not registered{}", seen.name,
                      seen.daemon_runs ? " yet" : ": slurmlet registers it once it is running")};
}

void add_lease(const NodeSeen& seen, WallTime now, Findings& out) {
  const kube::Lease& lease = *seen.lease;
  const auto renewed = parse_rfc3339(lease.renew_time);
  const bool foreign = node::is_foreign_holder(lease.holder_identity, seen.holder_identity);
  const bool fresh = renewed && now - *renewed < seconds{lease.duration_seconds};
  const std::string held =
      fmt::format("held by {}, {}", lease.holder_identity,
                  lease.renew_time.empty() ? "never renewed" : "renewed at " + lease.renew_time);
  if (foreign && fresh) {
    out.push_back({kSubjectLease, Severity::kError,
                   fmt::format("{}: another machine runs Node {}", held, seen.name), "",
                   "give one of the two another node name (--nodename)"});
  } else if (foreign) {
    out.push_back({kSubjectLease, Severity::kWarning,
                   held + ": another machine that appears to be gone; slurmlet takes it over"});
  } else if (!seen.node ||
             (!lease.owner_node_uid.empty() && lease.owner_node_uid != seen.node->uid)) {
    out.push_back({kSubjectLease, Severity::kInfo,
                   held + ": left over from a deleted Node; slurmlet takes it over"});
  } else if (!fresh && seen.daemon_runs) {
    out.push_back({kSubjectLease, Severity::kWarning, held, "", "see daemon"});
  } else {
    out.push_back({kSubjectLease, fresh ? Severity::kOk : Severity::kInfo, held});
  }
}

}  // namespace

Finding server_finding(const ServerSeen& seen) {
  if (seen.problem) {
    return server_problem(seen);
  }
  const std::string who = seen.user.empty() ? "" : " as " + seen.user;
  const bool slow = seen.took > kSlowAnswer;
  return {kSubjectServer, slow ? Severity::kWarning : Severity::kOk,
          fmt::format("{} {} answered in {}{}", seen.url, seen.version,
                      milliseconds_text(seen.took), who),
          "", slow ? "check the network, name resolution and the API server's load" : ""};
}

std::optional<Finding> clock_finding(const ServerSeen& seen) {
  if (!seen.skew) {
    return std::nullopt;
  }
  const auto off = std::chrono::round<seconds>(*seen.skew).count();
  if (*seen.skew<kSkewThatCounts&& * seen.skew> - kSkewThatCounts) {
    return Finding{kSubjectClock, Severity::kOk, "agrees with the API server's"};
  }
  return Finding{
      kSubjectClock, Severity::kWarning,
      fmt::format("{} s {} the API server's", std::abs(off), off > 0 ? "ahead of" : "behind"), "",
      "correct it (chronyc tracking, timedatectl): certificates and munge depend on it"};
}

std::vector<kube::OwnRight> needed_rights(const RightsWanted& wanted) {
  const std::string& name = wanted.node_name;
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
      {"list", "", "pods", "", "", "", own_pods},
      {"watch", "", "pods", "", "", "", own_pods},
      {"delete", "", "pods", "", "", "", ""},
      {"patch", "", "pods", "status", "", "", ""},
      {"create", "", "events", "", "", "", ""},
      {"patch", "", "events", "", "", "", ""}};
  if (wanted.certificates) {
    for (const char* verb : {"create", "get", "list", "watch"}) {
      out.push_back({verb, "certificates.k8s.io", "certificatesigningrequests", "", "", "", ""});
    }
  }
  if (wanted.endpoint) {
    out.push_back({"create", "authentication.k8s.io", "tokenreviews", "", "", "", ""});
    out.push_back({"create", "authorization.k8s.io", "subjectaccessreviews", "", "", "", ""});
  }
  return out;
}

Findings rights_findings(const std::vector<RightSeen>& seen, const std::optional<Error>& problem,
                         const std::string& node_name) {
  std::string missing;
  std::string reason;
  long denied = 0;
  for (const auto& one : seen) {
    if (!one.allowed) {
      ++denied;
      missing += (missing.empty() ? "" : "; ") + kube::describe(one.right);
      reason = reason.empty() ? one.reason : reason;
    }
  }
  Findings out;
  if (denied > 0) {
    out.push_back(
        {kSubjectRights, Severity::kError,
         fmt::format("{} of {} missing: {}", denied, seen.size(), missing), reason,
         fmt::format(
             "use a credential for system:node:{} with the group system:nodes, if the API "
             "server uses the Node authorizer; otherwise grant these permissions to its user",
             node_name)});
  } else if (!problem) {
    out.push_back(
        {kSubjectRights, Severity::kOk, fmt::format("all {} that slurmlet needs", seen.size())});
  }
  if (problem) {
    out.push_back(
        {kSubjectRights, Severity::kWarning, "not all could be checked", problem->message});
  }
  return out;
}

Findings node_findings(const NodeSeen& seen, const node::DesiredNode& wanted, WallTime now) {
  Findings out;
  if (seen.problem) {
    out.push_back(
        {kSubjectNode, Severity::kError, "cannot be read", seen.problem->message, "see rights"});
    return out;
  }
  if (!seen.node) {
    out.push_back(missing_node(seen));
  } else if (const auto foreign = node::foreign_claim(*seen.node, wanted)) {
    out.push_back({kSubjectNode, Severity::kError, *foreign});
  } else {
    out.push_back(
        {kSubjectNode, seen.node->deleting ? Severity::kWarning : Severity::kOk,
         fmt::format("{} exists and is this machine's, uid {}{}", seen.name, seen.node->uid,
                     seen.node->deleting ? "; it is being deleted" : "")});
    for (const auto& taint : node::missing_taints(*seen.node, wanted)) {
      const std::string what = fmt::format("{}={}:{}", taint.key, taint.value, taint.effect);
      out.push_back({kSubjectNode, Severity::kWarning,
                     "lacks the taint " + what + ", so pods may be bound to it (and are rejected)",
                     "", fmt::format("kubectl taint node {} {}", seen.name, what)});
    }
  }
  if (seen.lease) {
    add_lease(seen, now, out);
  }
  return out;
}

}  // namespace slurmlet::cli
