#include "cli/check/check_command.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/plain_text.h"
#include "base/text.h"
#include "cli/check/check_finding.h"
#include "cli/check/check_gather.h"
#include "status/daemon_client.h"

namespace slurmlet::cli {
namespace {

using std::chrono::seconds;

// Together below twenty seconds.
constexpr Duration kDaemonLimit = seconds{2};
constexpr Duration kSlurmLimit = seconds{6};
constexpr Duration kClusterLimit = seconds{8};

void append(Findings&& more, Findings& out) {
  for (auto& one : more) {
    out.push_back(std::move(one));
  }
}

Findings configuration_findings(const Result<config::Settings>& settings) {
  Findings out;
  if (!settings) {
    for (const auto line : split(settings.error().message, '\n')) {
      if (!line.empty()) {
        out.push_back({kSubjectConfiguration, Severity::kError, std::string{line}});
      }
    }
    out.push_back({kSubjectConfiguration, Severity::kInfo,
                   "nothing else was checked: it depends on the configuration"});
    return out;
  }
  out.push_back({kSubjectConfiguration, Severity::kOk,
                 settings->config_file.empty()
                     ? "no file: defaults, apart from flags and environment"
                     : settings->config_file});
  for (const auto& file : settings->drop_ins) {
    out.push_back({kSubjectConfiguration, Severity::kOk, file});
  }
  for (const auto& warning : settings->warnings) {
    out.push_back({kSubjectConfiguration, Severity::kWarning, warning});
  }
  return out;
}

Result<status::DaemonStatus> ask_daemon(const config::Settings& settings) {
  auto client = status::DaemonClient::make(settings);
  return client ? client->ask(kDaemonLimit) : Result<status::DaemonStatus>{client.error()};
}

void add_identity(const config::Settings& settings, const daemon::NodeIdentity& identity,
                  Findings& out) {
  out.push_back({kSubjectNodeName, Severity::kOk,
                 identity.policy.node_name + ", from " + identity.name_source});
  append(metadata_findings(identity, settings.state_dir), out);
}

void add_cluster(const config::Settings& settings, const Credentials& credentials,
                 const daemon::NodePreview& preview, bool daemon_runs, Findings& out) {
  if (!credentials.access) {
    out.push_back({kSubjectServer, Severity::kInfo, "not checked: there is no credential"});
    return;
  }
  const ClusterSeen seen =
      look_at_cluster(settings, credentials, preview, daemon_runs, kClusterLimit);
  out.push_back(server_finding(seen.server));
  if (auto clock = clock_finding(seen.server)) {
    out.push_back(std::move(*clock));
  }
  if (seen.rights) {
    append(rights_findings(*seen.rights, seen.rights_problem, preview.desired.name), out);
  }
  if (seen.node) {
    append(node_findings(*seen.node, preview.desired, preview.at.wall), out);
  }
}

void add_machine(const config::Settings& settings, const daemon::NodePreview& preview,
                 const std::optional<status::DaemonStatus>& daemon, Findings& out) {
  out.push_back(slurmd_finding(preview.facts));
  out.push_back(slurmctld_finding(preview.facts, preview.slurmctld, preview.slurm_conf));
  out.push_back(munge_finding(look_at_munge(preview.slurm_conf)));
  out.push_back(gpu_finding(preview.facts));
  append(port_findings(look_at_ports(settings), daemon), out);
}

// Everything but the configuration. Returns the node's name, "" if it has none.
std::string look(const config::Settings& settings, Findings& out) {
  const SystemClock clock;
  const auto answer = ask_daemon(settings);
  const auto daemon = answer ? std::optional{*answer} : std::nullopt;
  daemon::PreviewOptions options;
  options.limit = kSlurmLimit;
  options.record = [&settings](const std::string& name) { return look_at_record(settings, name); };
  const auto preview = daemon::preview_node(settings, options);
  if (!preview) {
    out.push_back({kSubjectNodeName, Severity::kError, preview.error().message});
    out.push_back(daemon_finding(answer));
    return "";
  }
  add_identity(settings, preview->identity, out);
  const std::string& name = preview->desired.name;
  const Credentials credentials = look_at_credentials(settings, name, clock);
  const WallTime now = clock.now().wall;
  append(credential_findings(credentials.own, now), out);
  if (credentials.bootstrap) {
    append(bootstrap_findings(*credentials.bootstrap), out);
  }
  if (settings.endpoint.port != 0) {
    out.push_back(serving_finding(look_at_serving(settings, daemon), now));
  }
  add_cluster(settings, credentials, *preview, daemon.has_value(), out);
  add_machine(settings, *preview, daemon, out);
  out.push_back(daemon_finding(answer));
  return name;
}

}  // namespace

int run_check(const Result<config::Settings>& settings, const std::string& format, bool unicode) {
  log::set_level(log::Level::kError);
  Findings findings = configuration_findings(settings);
  const std::string node = settings ? look(*settings, findings) : "";
  const std::string text = shown_controls(format == "json" ? findings_json(findings, node)
                                                           : findings_text(findings, unicode));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return findings_exit_code(findings);
}

}  // namespace slurmlet::cli
