#include <algorithm>
#include <utility>

#include "base/rfc3339.h"
#include "cli/check/check_gather.h"
#include "daemon/state_dir.h"
#include "kube/rest_api.h"
#include "tls/certificates.h"

namespace slurmlet::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLongestCall = seconds{3};

void ask_rights(http::Client& client, const kube::CallOptions& options, const RightsWanted& wanted,
                ClusterSeen& out) {
  out.rights.emplace();
  for (auto& right : needed_rights(wanted)) {
    const auto review = kube::review_own_right(client, options, right);
    if (!review) {
      out.rights_problem = review.error();
      return;
    }
    out.rights->push_back({std::move(right), review->allowed, review->reason});
  }
}

NodeSeen ask_node(http::Client& client, const kube::CallOptions& options, const std::string& name) {
  NodeSeen out;
  out.name = name;
  auto node = kube::RestNodeApi{client, options}.get(name);
  if (node) {
    out.node = std::move(*node);
  } else if (node.error().code != Code::kNotFound) {
    out.problem = node.error();
    return out;
  }
  auto lease = kube::RestLeaseApi{client, options}.get(name);
  if (lease) {
    out.lease = std::move(*lease);
  } else if (lease.error().code != Code::kNotFound) {
    out.problem = lease.error();
  }
  return out;
}

// The Machine that the Node went with, or will be found to have gone with, unless it comes back
// now.
void look_at_end(const config::Settings& settings, const credentials::ApiAccess& access,
                 const daemon::NodePreview& preview, NodeSeen& out) {
  const auto end = daemon::load_node_end(
      {settings.state_dir, preview.facts.machine.boot_id, preview.desired.name,
       daemon::metal3_uuid_of(preview.identity), daemon::provider_id_of(preview.identity),
       access.credential_identity()},
      preview.at.steady);
  if (!end || !*end) {
    return;
  }
  if (const auto after = settings.node.recreate_after) {
    const Duration left = (*end)->gone_at.value_or(preview.at.steady) + *after - preview.at.steady;
    if (left <= Duration{0}) {
      return;
    }
    out.gone_until = rfc3339(preview.at.wall + left);
  }
  out.gone_with = (*end)->machine;
}

// When the last of the CAs expired, if all have: "at 2026-…".
std::string expired_ca(const std::string& pem, WallTime now) {
  const auto bundle = tls::certificates_with_pins(pem, "");
  WallTime last = WallTime::min();
  for (const auto& one : bundle ? *bundle : std::vector<tls::PinnedCertificate>{}) {
    const auto read = tls::read_certificate(one.pem, "");
    last = std::max(last, read ? read->not_after : now);
  }
  return bundle && last < now ? "at " + rfc3339(last) : "";
}

}  // namespace

ServerSeen server_of(const credentials::ApiAccess& access,
                     const config::KubernetesSettings& kubernetes) {
  ServerSeen out;
  out.url = access.server();
  out.ca_expired = expired_ca(access.ca_pem(), SystemClock{}.now().wall);
  if (!kubernetes.kubeconfig.empty()) {
    out.url_place = kubernetes.kubeconfig;
    out.ca_place = kubernetes.kubeconfig + " (certificate-authority)";
  } else {
    out.url_place = "kubernetes.server";
    out.ca_place = kubernetes.ca_file.empty() ? "kubernetes.caData" : kubernetes.ca_file;
  }
  return out;
}

void ask_server(http::Client& client, kube::CallOptions options, ServerSeen& out) {
  std::optional<WallTime> date;  // of the last answer
  options.on_server_date = [&date](WallTime told) { date = told; };
  const auto before = SystemClock{}.now();
  const auto version = kube::server_version(client, options);
  const auto after = SystemClock{}.now();
  out.took = after.steady - before.steady;
  if (date) {
    const WallTime middle = before.wall + (after.wall - before.wall) / 2;
    out.skew = middle - (*date + milliseconds{500});
  }
  if (!version) {
    out.problem = version.error();
    return;
  }
  out.version = *version;
  if (const auto user = kube::who_am_i(client, options)) {
    out.user = user->name;
  } else if (user.error().request && user.error().request->http_status == 401) {
    out.problem = user.error();  // whoever it is may ask for the version
  }
}

ClusterSeen look_at_cluster(const config::Settings& settings, const Credentials& credentials,
                            const daemon::NodePreview& preview, bool daemon_runs, Duration limit) {
  ClusterSeen out;
  const credentials::ApiAccess& access = *credentials.access;
  config::KubernetesSettings used = settings.kubernetes;
  if (credentials.by_bootstrap) {
    used.kubeconfig = used.bootstrap_kubeconfig;
  }
  out.server = server_of(access, used);
  out.server.by_bootstrap = credentials.by_bootstrap;
  const auto connected = access.connect();
  if (!connected) {
    out.server.problem = connected.error();
    return out;
  }
  http::Client& client = **connected;
  const kube::CallOptions options{
      nullptr, {}, kLongestCall, std::chrono::steady_clock::now() + limit};
  ask_server(client, options, out.server);
  if (out.server.problem || credentials.by_bootstrap) {
    return out;
  }
  const std::string& name = preview.desired.name;
  const bool endpoint = settings.endpoint.port != 0;
  const bool certificates =
      credentials.own.has_bootstrap || (endpoint && settings.endpoint.server_tls_bootstrap &&
                                        settings.endpoint.certificate_file.empty());
  ask_rights(client, options, {name, endpoint, certificates}, out);
  out.node = ask_node(client, options, name);
  out.node->daemon_runs = daemon_runs;
  look_at_end(settings, access, preview, *out.node);
  const std::string& uuid = preview.facts.machine.system_uuid;
  out.node->holder_identity = uuid.empty() ? name : name + "/" + uuid;
  return out;
}

std::optional<std::string> look_at_record(const config::Settings& settings,
                                          const std::string& node_name) {
  const SystemClock clock;
  const Credentials credentials = look_at_credentials(settings, node_name, clock);
  const auto connected =
      credentials.access && !credentials.by_bootstrap
          ? credentials.access->connect()
          : Result<std::unique_ptr<http::Client>>{Error{Code::kDenied, "no credential"}};
  if (!connected) {
    return std::nullopt;
  }
  const auto node = kube::RestNodeApi{**connected, {nullptr, {}, kLongestCall}}.get(node_name);
  return node ? std::optional{node::record_of(*node)} : std::nullopt;
}

}  // namespace slurmlet::cli
