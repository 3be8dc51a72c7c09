#include "operator/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "base/command.h"
#include "base/log.h"
#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/check/check_cluster.h"
#include "cli/check/check_finding.h"
#include "cli/check/check_gather.h"
#include "config/sources.h"
#include "credentials/access.h"
#include "daemon/slurm_source.h"
#include "kube/certificate_api.h"
#include "kube/rest_api.h"
#include "operator/dumped_nodes.h"
#include "operator/leader.h"
#include "operator/slurm_runner.h"
#include "slurm/answers/privileges.h"
#include "slurm/answers/squeue.h"
#include "slurm/answers/values.h"

namespace slurmlet::op {
namespace {

using cli::Finding;
using cli::Severity;

constexpr int kUnauthorized = 401;
constexpr const char* kJobs = "jobs";

kube::CallOptions limited() { return {nullptr, {}, std::chrono::seconds{5}}; }

// One of the two API servers, in the words of what is found.
struct Place {
  const char* server;
  const char* rights;
  const char* flag;
  const char* cure;  // of rights
};
constexpr Place kOwn{cli::kSubjectServer, cli::kSubjectRights, "--kubeconfig",
                     "kubectl apply -k deploy/operator"};
constexpr Place kManagement{"management", "rights there", "--management-kubeconfig",
                            "in that cluster: kubectl apply -k deploy/operator/management"};

Finding server_finding(http::Client& client, cli::ServerSeen seen, const Place& place) {
  cli::ask_server(client, limited(), seen);
  const auto& problem = seen.problem;
  if (problem && problem->request && problem->request->http_status == kUnauthorized) {
    return {place.server, Severity::kError, seen.url + ": rejects the credential",
            problem->reason(), fmt::format("give it a valid one ({})", place.flag)};
  }
  Finding out = cli::server_finding(seen);
  out.subject = place.server;
  return out;
}

Finding rights_finding(http::Client& client, const std::vector<kube::OwnRight>& needed,
                       const Place& place) {
  std::string missing;
  for (const auto& right : needed) {
    const auto review = kube::review_own_right(client, limited(), right);
    if (!review) {
      return {place.rights, Severity::kWarning, "not all could be checked", review.error().message};
    }
    if (!review->allowed) {
      missing += (missing.empty() ? "" : "; ") + kube::describe(right);
    }
  }
  if (!missing.empty()) {
    return {place.rights, Severity::kError, "missing: " + missing, "", place.cure};
  }
  return {place.rights, Severity::kOk, fmt::format("all {} that it needs", needed.size())};
}

Finding lease_finding(http::Client& client, const Options& options, const std::string& cluster) {
  const std::string name = options.leader_namespace + "/" + leader_lease(cluster);
  const auto lease =
      kube::RestLeaseApi{client, limited(), options.leader_namespace}.get(leader_lease(cluster));
  if (!lease) {
    return lease.error().code == Code::kNotFound
               ? Finding{cli::kSubjectLease, Severity::kInfo, name + ": no operator has led yet"}
               : Finding{cli::kSubjectLease, Severity::kError, name + " cannot be read",
                         lease.error().reason()};
  }
  if (lease->holder_identity.empty()) {
    return {cli::kSubjectLease, Severity::kInfo, name + ": no operator leads"};
  }
  const auto renewed = parse_rfc3339(lease->renew_time);
  const bool fresh = renewed && SystemClock{}.now().wall - *renewed <
                                    std::chrono::seconds{lease->duration_seconds};
  return {cli::kSubjectLease, fresh ? Severity::kOk : Severity::kWarning,
          fmt::format("{}: {} {}, renewed at {}", name, lease->holder_identity,
                      fresh ? "leads" : "led and has stopped", lease->renew_time)};
}

// As the operator runs it, with its token.
Result<CommandOutput> run_with_token(const Options& options, CommandSpec spec) {
  const SystemClock clock;
  TokenFile token{options.slurm_jwt_file, clock};
  if (!options.slurm_jwt_file.empty()) {
    TRY(add_token(token, spec));
  }
  return run_command(spec);
}

// As the operator makes it.
Result<slurm::DumpSource::Answer> dump_once(const Options& options) {
  const SystemClock clock;
  const auto client = TRY(daemon::make_waiting_client());
  const auto source = dump_source(options, *client, clock);
  TRY(source->start(clock.now(), false));
  while (true) {
    if (auto answer = source->poll(clock.now())) {
      return *std::move(answer);
    }
    (void)client->wait(source->deadline(), source->wake_fds());
  }
}

Finding dump_finding(const Options& options, const std::string& cluster) {
  const bool by_rest = options.slurm_source == Options::Source::kRest;
  const auto dump = dump_once(options);
  if (!dump) {
    return {cli::kSubjectSlurmctld, Severity::kError, "does not report its nodes",
            dump.error().message,
            (by_rest ? "look at slurmrestd at " + options.slurm_rest_url
                     : std::string{"scontrol show node, as this user"}) +
                "; docs/conditions.md has causes and fixes"};
  }
  if (std::string why = foreign_cluster(cluster, dump->cluster); !why.empty()) {
    return {cli::kSubjectSlurmctld, Severity::kError, "belongs to another cluster", std::move(why),
            "fix slurmRestURL or slurmConf"};
  }
  return {cli::kSubjectSlurmctld, Severity::kOk,
          fmt::format("{} in {}{}", counted(dump->records->size(), "node"),
                      cli::milliseconds_text(dump->took),
                      by_rest ? " by slurmrestd " + options.slurm_rest_url : "")};
}

Finding jobs_finding(const Options& options) {
  const auto failed = [](const std::string& why) {
    return Finding{kJobs, Severity::kError, "could not be listed", why,
                   "squeue must work for this user: without it no Machine is released"};
  };
  const auto output = run_with_token(options, slurm::squeue_query(slurm_client(options)));
  if (!output) {
    return failed(output.error().message);
  }
  if (const auto jobs = slurm::read_squeue(*output, {}); !jobs) {
    return failed(jobs.error().message);
  }
  const auto count = std::count(output->out.begin(), output->out.end(), '\n');
  return {kJobs, Severity::kOk,
          fmt::format("{} in {}", count == 0 ? "none" : std::to_string(count),
                      cli::milliseconds_text(output->took))};
}

// Whether squeue and the dump leave out what is not this user's.
Finding privileges_finding(const Options& options) {
  constexpr const char* kPrivileges = "privileges";
  const auto config = run_with_token(options, slurm::config_query(slurm_client(options)));
  const auto privacy =
      config ? slurm::read_privacy(*config) : Result<slurm::PrivacyConfig>{config.error()};
  if (!privacy) {
    return {kPrivileges, Severity::kError, "are not known", privacy.error().message,
            "scontrol show config must work for this user"};
  }
  const SystemClock clock;
  const auto self = slurm_identity(options.slurm_jwt_file, clock);
  const std::string who = self.name.empty() ? "the user of slurmJwtFile" : "user " + self.name;
  if (slurm::shows_all(*privacy, self)) {
    return {kPrivileges, Severity::kOk, "Slurm shows all nodes and jobs to " + who};
  }
  if (!self.name.empty()) {
    const auto level =
        run_with_token(options, slurm::admin_level_query(slurm_client(options), self.name));
    if (level && slurm::is_operator(*level)) {
      return {kPrivileges, Severity::kOk, "Slurm shows all nodes and jobs to operator " + who};
    }
  }
  return {kPrivileges, Severity::kError, "are missing: no Machine is released",
          slurm::hidden_text(*privacy, self),
          fmt::format("run it as {}, or: sacctmgr modify user {} set AdminLevel=Administrator",
                      privacy->slurm_user, self.name.empty() ? "USER" : self.name)};
}

// What only acts: whether it can be started.
void add_programs(const Options& options, cli::Findings& out) {
  std::vector<const char*> programs{"scancel"};
  if (options.slurm_source == Options::Source::kRest) {  // else the dump has shown it
    programs.push_back("scontrol");
  }
  for (const char* program : programs) {
    const auto output =
        run_command(slurm::slurm_command(slurm_client(options), {program, "--version"}));
    if (!output || !output->succeeded()) {
      out.push_back({program, Severity::kError, "does not run",
                     output ? slurm::excerpt(output->err) : output.error().message,
                     "install Slurm's client programs, all of one release"});
    }
  }
}

// The server of these settings, and whether it takes us; then what `more` finds there.
void add_cluster(const Result<config::Settings>& api, const Place& place,
                 const std::vector<kube::OwnRight>& needed, cli::Findings& out,
                 const std::function<void(http::Client&)>& more) {
  const auto problem = [&](const Error& error) {
    out.push_back({cli::kSubjectCredential, Severity::kError, error.message});
  };
  if (!api) {
    return problem(api.error());
  }
  const SystemClock clock;
  const auto access = credentials::ApiAccess::open(*api, clock);
  if (!access) {
    return problem(access.error());
  }
  const auto client = access->connect();
  if (!client) {
    return problem(client.error());
  }
  cli::ServerSeen seen = cli::server_of(*access, api->kubernetes);
  if (api->kubernetes.kubeconfig.empty()) {  // in a pod
    seen.url_place = "KUBERNETES_SERVICE_HOST";
  }
  out.push_back(server_finding(**client, std::move(seen), place));
  if (out.back().severity == Severity::kError) {
    return;
  }
  out.push_back(rights_finding(**client, needed, place));
  more(**client);
}

std::string machine_namespace(const Options& options) {
  return options.machine_cluster.substr(0, options.machine_cluster.find('/'));
}

void add_machine_rights(const Options& options, std::vector<kube::OwnRight>& out) {
  for (const char* verb : {"get", "list", "watch", "patch"}) {
    out.push_back({verb, "cluster.x-k8s.io", "machines", "", "", machine_namespace(options), ""});
  }
}

void add_event_rights(const std::string& name_space, std::vector<kube::OwnRight>& out) {
  for (const char* verb : {"create", "patch"}) {
    out.push_back({verb, "", "events", "", "", name_space, ""});
  }
}

void add_certificate_rights(const Options& options, std::vector<kube::OwnRight>& out) {
  constexpr const char* kGroup = "certificates.k8s.io";
  std::vector<std::string> signers;
  if (options.approve_serving) {
    signers.emplace_back(kube::kServingSigner);
  }
  if (!options.bootstrap_group.empty()) {
    signers.emplace_back(kube::kClientSigner);
  }
  if (signers.empty()) {
    return;
  }
  for (const char* verb : {"list", "watch"}) {
    out.push_back({verb, kGroup, "certificatesigningrequests", "", "", "", ""});
  }
  out.push_back({"patch", kGroup, "certificatesigningrequests", "approval", "", "", ""});
  for (const auto& signer : signers) {
    out.push_back({"approve", kGroup, "signers", "", signer, "", ""});
  }
}

}  // namespace

std::vector<kube::OwnRight> needed_rights(const Options& options) {
  const std::string& name_space = options.leader_namespace;
  constexpr const char* kLeases = "coordination.k8s.io";
  std::vector<kube::OwnRight> out;
  for (const char* verb : {"get", "list", "watch", "patch", "delete"}) {
    out.push_back({verb, "", "nodes", "", "", "", ""});
  }
  add_event_rights("", out);
  if (options.management_kubeconfig.empty()) {  // else they are of another credential
    add_machine_rights(options, out);
  }
  add_certificate_rights(options, out);
  out.push_back({"get", kLeases, "leases", "", "", "kube-node-lease", ""});
  if (options.leader_elect) {
    for (const char* verb : {"create", "get", "update"}) {
      out.push_back({verb, kLeases, "leases", "", "", name_space, ""});
    }
  }
  return out;
}

std::vector<kube::OwnRight> needed_machine_rights(const Options& options) {
  std::vector<kube::OwnRight> out;
  add_machine_rights(options, out);
  add_event_rights(machine_namespace(options), out);
  return out;
}

int run_check(const Options& options, const CheckSettings& settings) {
  log::set_level(log::Level::kError);
  cli::Findings findings;
  add_cluster(settings.api, kOwn, needed_rights(options), findings, [&](http::Client& client) {
    if (options.leader_elect && settings.cluster) {
      findings.push_back(lease_finding(client, options, *settings.cluster));
    }
  });
  if (settings.management) {
    add_cluster(*settings.management, kManagement, needed_machine_rights(options), findings,
                [](http::Client&) {});
  }
  const auto& cluster = settings.cluster;
  findings.push_back(cluster ? Finding{"slurm.conf", Severity::kOk, "ClusterName " + *cluster}
                             : Finding{"slurm.conf", Severity::kError, cluster.error().message});
  if (cluster) {  // Slurm's programs look elsewhere for a slurm.conf, each for many seconds
    findings.push_back(dump_finding(options, *cluster));
    findings.push_back(privileges_finding(options));
    findings.push_back(jobs_finding(options));
    add_programs(options, findings);
  }
  const bool unicode = cli::is_utf8_locale(config::process_environment());
  const std::string text = shown_controls(cli::findings_text(findings, unicode));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return cli::findings_exit_code(findings);
}

}  // namespace slurmlet::op
