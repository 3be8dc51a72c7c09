#include "cli/check/check_command.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "check/api_server.h"
#include "check/finding.h"
#include "check/service_unit.h"
#include "cli/check/check_credentials.h"
#include "cli/check/check_machine.h"
#include "cli/check/check_node.h"
#include "kube/cluster_info.h"
#include "kube/rest_api.h"
#include "status/daemon_client.h"

namespace slurmlet::cli {
namespace {

using check::Check;
using check::Findings;
using std::chrono::seconds;

// Together below twenty seconds.
constexpr Duration kDaemonLimit = seconds{2};
constexpr Duration kSlurmLimit = seconds{6};
constexpr Duration kClusterLimit = seconds{8};
constexpr Duration kLongestCall = seconds{3};

Findings configuration_findings(const Result<config::Settings>& settings) {
  Findings out;
  if (!settings) {
    for (const auto line : split(settings.error().message, '\n')) {
      if (!line.empty()) {
        out.push_back(check::error(std::string{line}));
      }
    }
    out.push_back(check::info("nothing else was checked: it depends on the configuration"));
    return out;
  }
  out.push_back(check::ok(settings->config_file.empty()
                              ? "no file: defaults, apart from flags and environment"
                              : settings->config_file));
  for (const auto& file : settings->drop_ins) {
    out.push_back(check::ok(file));
  }
  for (const auto& warning : settings->warnings) {
    out.push_back(check::warning(warning));
  }
  return out;
}

// That the unit's user must be able to read; systemd hands over its credentials itself.
std::vector<std::string> files_to_read(const config::Settings& settings) {
  const auto& kubernetes = settings.kubernetes;
  const auto& endpoint = settings.endpoint;
  std::vector<std::string> out{settings.config_file,
                               kubernetes.kubeconfig,
                               kubernetes.ca_file,
                               kubernetes.certificate_file,
                               kubernetes.key_file,
                               kubernetes.token_file,
                               kubernetes.bootstrap_kubeconfig,
                               kubernetes.bootstrap_token_file,
                               endpoint.certificate_file,
                               endpoint.key_file,
                               endpoint.client_ca_file,
                               settings.slurm.conf};
  out.insert(out.end(), settings.drop_ins.begin(), settings.drop_ins.end());
  std::erase_if(out, [](const std::string& path) { return contains(path, "/credstore/"); });
  return out;
}

Result<status::DaemonStatus> query_daemon(const config::Settings& settings) {
  auto client = status::DaemonClient::make(settings);
  return client ? client->query(kDaemonLimit) : Result<status::DaemonStatus>{client.error()};
}

// slurmlet-operator's annotation on the Node: "" where it has none, nothing if it cannot be read.
std::optional<std::string> read_record(const config::Settings& settings,
                                       const std::string& node_name) {
  const auto access = credentials::ApiAccess::open(settings, SystemClock{});
  const auto client = access ? access->connect() : access.error();
  if (!client) {
    return std::nullopt;
  }
  const auto node = kube::RestNodeApi{**client, {nullptr, {}, kLongestCall}}.get(node_name);
  return node ? std::optional{node::record_of(*node)} : std::nullopt;
}

// The checks, and what they learn from one another.
class Checks {
 public:
  explicit Checks(const config::Settings& settings) : settings_(settings) {}

  Findings all() {
    daemon::PreviewOptions options;
    options.limit = kSlurmLimit;
    options.record = [this](const std::string& name) { return read_record(settings_, name); };
    preview_ = daemon::preview_node(settings_, options);
    auto rows = preview_ ? table() : without_name();
    rows.insert(rows.begin(), {check::kConfiguration, [this] {
                                 return check::unreadable(unit_, files_to_read(settings_));
                               }});
    return check::run(rows);
  }
  std::string node() const { return preview_ ? preview_->desired.name : ""; }

 private:
  std::vector<Check> without_name() {
    return {{"node name", [this] { return Findings{check::error(preview_.error().message)}; }},
            {"daemon", [this] { return Findings{daemon_finding(answer_, unit_)}; }}};
  }

  std::vector<Check> table() {
    const daemon::NodePreview& seen = *preview_;
    return {
        {"node name",
         [&] { return Findings{check::ok(node() + ", from " + seen.identity.name_source)}; }},
        {"metal3 metadata", [&] { return metadata_findings(seen.identity, settings_.state_dir); }},
        {"credential", [&] { return credential_findings(settings_, node(), clock_, credential_); }},
        {"bootstrap", [&] { return bootstrap_findings(settings_, node(), clock_, credential_); }},
        {"serving cert", [&] { return serving(); }},
        {"API server", [&] { return server(); }},
        {"clock", [&] { return check::clock_findings(server_); }},
        {"rights", [&] { return rights(); },
         "use a credential for system:node:" + node() +
             " with the group system:nodes, if the API server uses the Node authorizer; otherwise "
             "grant these permissions to its user"},
        {"node", [&] { return registered(); }, "see rights"},
        {"lease", [&] { return lease_findings(node_, seen.at.wall); }},
        {"slurmd", [&] { return Findings{slurmd_finding(seen.facts.slurmd)}; },
         "systemctl status slurmd; systemctl start slurmd"},
        {"slurmctld",
         [&] { return Findings{slurmctld_finding(seen.facts, seen.slurmctld, seen.slurm_conf)}; },
         "scontrol ping; sdiag"},
        {"GPUs", [&] { return Findings{gpu_finding(seen.facts)}; },
         "check dmesg and the vendor's tools (nvidia-smi), or correct Gres= in slurm.conf"},
        {"ports", [&] { return port_findings(settings_, daemon_); },
         "stop that process or unit, or set the port in brackets to a free one"},
        {"daemon", [&] { return Findings{daemon_finding(answer_, unit_)}; },
         "systemctl status slurmlet; journalctl -u slurmlet"},
    };
  }

  Findings serving() {
    return settings_.endpoint.port == 0
               ? Findings{}
               : Findings{serving_finding(settings_, daemon_, clock_.now().wall)};
  }

  Findings server() {
    if (!credential_.access) {
      return {check::info("not checked: there is no credential")};
    }
    config::KubernetesSettings used = settings_.kubernetes;
    if (credential_.by_bootstrap) {
      used.kubeconfig = used.bootstrap_kubeconfig;
    }
    check::ServerNames words = check::server_names(*credential_.access, used);
    if (credential_.by_bootstrap) {
      words.credential = "the bootstrap token";
      words.credential_fix =
          std::string{"it has expired or was deleted: replace the token named under bootstrap ("} +
          kube::kNewToken + ")";
    }
    auto client = credential_.access->connect();
    if (client) {
      client_ = *std::move(client);
      options_.deadline = clock_.now().steady + kClusterLimit;
      server_ = check::ask_server(*client_, options_);
    } else {
      server_.problem = client.error();
    }
    return {check::server_finding(words, server_)};
  }

  // Whether the node's own credential was accepted.
  bool is_in() const { return client_ && !server_.problem && !credential_.by_bootstrap; }

  Findings rights() {
    if (!is_in()) {
      return {};
    }
    const auto& endpoint = settings_.endpoint;
    const bool certificates =
        settings_.kubernetes.has_bootstrap() ||
        (endpoint.port != 0 && endpoint.server_tls_bootstrap && endpoint.certificate_file.empty());
    return check::rights_findings(*client_, options_,
                                  needed_rights(node(), endpoint.port != 0, certificates));
  }

  Findings registered() {
    if (!is_in()) {
      return {};
    }
    node_ = read_node(*client_, options_, settings_, *credential_.access, *preview_);
    node_.daemon_runs = daemon_.has_value();
    return node_findings(node_, preview_->desired);
  }

  const config::Settings& settings_;
  const SystemClock clock_;
  const check::ServiceUnit unit_ = check::read_unit("slurmlet.service").value_or({});
  const Result<status::DaemonStatus> answer_ = query_daemon(settings_);
  const std::optional<status::DaemonStatus> daemon_ =
      answer_ ? std::optional{*answer_} : std::nullopt;
  Result<daemon::NodePreview> preview_ = Error{};
  CredentialInUse credential_;
  std::unique_ptr<http::Client> client_;  // with that credential
  kube::CallOptions options_{nullptr, {}, kLongestCall};
  check::ServerAnswer server_;
  NodeSeen node_;
};

}  // namespace

int run_check(const Result<config::Settings>& settings, const std::string& format) {
  log::set_level(log::Level::kError);
  Findings findings =
      check::run({{check::kConfiguration, [&] { return configuration_findings(settings); }}});
  std::string node;
  if (settings) {
    Checks checks{*settings};
    const Findings more = checks.all();
    findings.insert(findings.end(), more.begin(), more.end());
    node = checks.node();
  }
  return check::report(findings, format == "json" ? check::findings_json(findings, node)
                                                  : check::findings_text(findings));
}

}  // namespace slurmlet::cli
