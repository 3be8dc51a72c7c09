#include "operator/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/command.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "check/api_server.h"
#include "check/finding.h"
#include "check/service_unit.h"
#include "credentials/access.h"
#include "daemon/slurm_source.h"
#include "kube/certificate_api.h"
#include "kube/rest_api.h"
#include "operator/leader.h"
#include "operator/site/dumped_nodes.h"
#include "operator/slurm_runner.h"
#include "slurm/answers/privileges.h"
#include "slurm/answers/squeue.h"
#include "slurm/answers/values.h"

namespace slurmlet::op {
namespace {

using check::Check;
using check::Finding;
using check::Findings;

kube::CallOptions limited() { return {nullptr, {}, std::chrono::seconds{5}}; }

Finding lease_finding(http::Client& client, const Options& options, const std::string& cluster) {
  const std::string name = options.leader_namespace + "/" + leader_lease(cluster);
  const auto lease =
      kube::RestLeaseApi{client, limited(), options.leader_namespace}.get(leader_lease(cluster));
  if (!lease) {
    return lease.error().code == Code::kNotFound
               ? check::info(name + ": no operator has led yet")
               : check::error(name + " cannot be read", "", lease.error().reason());
  }
  if (lease->holder_identity.empty()) {
    return check::info(name + ": no operator leads");
  }
  const auto renewed = parse_rfc3339(lease->renew_time);
  const bool fresh = renewed && SystemClock{}.now().wall - *renewed <
                                    std::chrono::seconds{lease->duration_seconds};
  std::string found = fmt::format("{}: {} {}, renewed at {}", name, lease->holder_identity,
                                  fresh ? "leads" : "led and has stopped", lease->renew_time);
  return fresh ? check::ok(std::move(found)) : check::warning(std::move(found));
}

Result<CommandOutput> run_with_token(const Options& options, CommandSpec spec) {
  const SystemClock clock;
  TokenFile token{options.slurm_jwt_file, clock};
  if (!options.slurm_jwt_file.empty()) {
    TRY(add_token(token, spec));
  }
  return run_command(spec);
}

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
    return check::error("does not report its nodes",
                        (by_rest ? "check slurmrestd at " + options.slurm_rest_url
                                 : std::string{"scontrol show node, as this user"}) +
                            "; docs/reference/conditions.md has causes and fixes",
                        dump.error().message);
  }
  if (std::string why = foreign_cluster(cluster, dump->cluster); !why.empty()) {
    return check::error("belongs to another cluster", "fix slurmRestURL or slurmConf",
                        std::move(why));
  }
  return check::ok(fmt::format("{} in {}{}", counted(dump->records->size(), "node"),
                               check::milliseconds_text(dump->took),
                               by_rest ? " by slurmrestd " + options.slurm_rest_url : ""));
}

Finding jobs_finding(const Options& options) {
  const auto output = run_with_token(options, slurm::squeue_query(slurm_client(options)));
  const auto jobs = output ? slurm::read_squeue(*output, {}) : output.error();
  if (!jobs) {
    return check::error("could not be listed", "", jobs.error().message);
  }
  const auto count = std::count(output->out.begin(), output->out.end(), '\n');
  return check::ok(fmt::format("{} in {}", count == 0 ? "none" : std::to_string(count),
                               check::milliseconds_text(output->took)));
}

// PrivateData may hide other users' nodes and jobs from squeue and the dump.
Finding privileges_finding(const Options& options) {
  const auto config = run_with_token(options, slurm::config_query(slurm_client(options)));
  const auto privacy =
      config ? slurm::read_privacy(*config) : Result<slurm::PrivacyConfig>{config.error()};
  if (!privacy) {
    return check::error("are not known", "", privacy.error().message);
  }
  const SystemClock clock;
  const auto self = slurm_identity(options.slurm_jwt_file, clock);
  const std::string who = self.name.empty() ? "the user of slurmJwtFile" : "user " + self.name;
  if (slurm::shows_all(*privacy, self)) {
    return check::ok("Slurm shows all nodes and jobs to " + who);
  }
  if (!self.name.empty()) {
    const auto level =
        run_with_token(options, slurm::admin_level_query(slurm_client(options), self.name));
    if (level && slurm::is_operator(*level)) {
      return check::ok("Slurm shows all nodes and jobs to operator " + who);
    }
  }
  return check::error(
      "are missing: no Machine is released, or scaled",
      fmt::format("run it as {}, or: sacctmgr modify user {} set AdminLevel=Administrator",
                  privacy->slurm_user, self.name.empty() ? "USER" : self.name),
      slurm::hidden_text(*privacy, self));
}

// An API server, the names of its rows, and their fix.
struct Place {
  const char* server;
  const char* rights;
  const char* flag;
  const char* fix;  // of rights
};
constexpr Place kOwn{"API server", "rights", "--kubeconfig", "kubectl apply -k deploy/operator"};
constexpr Place kManagement{"management", "rights there", "--management-kubeconfig",
                            "in that cluster: kubectl apply -k deploy/operator/management"};
constexpr const char* kScaleFix =
    "in the Machines' cluster: deploy/operator/rbac-autoscaling.yaml, as "
    "docs/how-to/autoscaling.md says";

// A connection with these settings; a problem with them is a finding of "credential".
class Server {
 public:
  Server(const Result<config::Settings>& api, const Place& place) : place_(place) {
    const SystemClock clock;
    const auto access = api ? credentials::ApiAccess::open(*api, clock)
                            : Result<credentials::ApiAccess>{api.error()};
    auto client = access ? access->connect() : access.error();
    if (!client) {
      problem_ = check::error(client.error().message);
      return;
    }
    client_ = *std::move(client);
    names_ = check::server_names(*access, api->kubernetes);
    if (api->kubernetes.kubeconfig.empty()) {  // running in a pod
      names_.url_place = "KUBERNETES_SERVICE_HOST";
    }
    names_.credential = "the credential";
    names_.credential_fix = fmt::format("give it a valid one ({})", place.flag);
  }

  void add_rows(const std::vector<kube::OwnRight>& needed, std::vector<Check>& out) {
    if (problem_) {
      out.push_back({"credential", [this] { return Findings{*problem_}; }});
      return;
    }
    out.push_back({place_.server, [this] {
                     answer_ = check::ask_server(*client_, limited());
                     return Findings{check::server_finding(names_, answer_)};
                   }});
    add_rights(place_.rights, needed, place_.fix, out);
  }
  void add_rights(const char* name, const std::vector<kube::OwnRight>& needed, const char* fix,
                  std::vector<Check>& out) {
    if (!problem_) {
      out.push_back({name,
                     [this, needed] {
                       return client() == nullptr
                                  ? Findings{}
                                  : check::rights_findings(*client_, limited(), needed);
                     },
                     fix});
    }
  }
  // Null if the server rejected the credential.
  http::Client* client() const { return answer_.problem ? nullptr : client_.get(); }

 private:
  Place place_;
  std::optional<Finding> problem_;
  std::unique_ptr<http::Client> client_;
  check::ServerNames names_;
  check::ServerAnswer answer_{Error{}, {}, {}, {}, {}};
};

void add_slurm_rows(const Options& options, const Result<std::string>& cluster,
                    std::vector<Check>& out) {
  out.push_back({"slurm.conf", [&] {
                   return Findings{cluster ? check::ok("ClusterName " + *cluster)
                                           : check::error(cluster.error().message)};
                 }});
  if (!cluster) {  // without one each Slurm program searches for many seconds
    return;
  }
  out.push_back({"slurmctld", [&] { return Findings{dump_finding(options, *cluster)}; }});
  out.push_back({"privileges", [&] { return Findings{privileges_finding(options)}; },
                 "scontrol show config must work for this user"});
  out.push_back({"jobs", [&] { return Findings{jobs_finding(options)}; },
                 "squeue must work for this user: without it no Machine is released"});
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

// On the server of the Machines.
std::vector<kube::OwnRight> needed_machine_rights(const Options& options) {
  std::vector<kube::OwnRight> out;
  add_machine_rights(options, out);
  add_event_rights(machine_namespace(options), out);
  return out;
}

std::vector<kube::OwnRight> needed_scale_rights(const Options& options) {
  const std::string name_space = machine_namespace(options);
  constexpr const char* kGroup = "cluster.x-k8s.io";
  return {{"list", kGroup, "machinedeployments", "", "", name_space, ""},
          {"patch", kGroup, "machinedeployments", "scale", "", name_space, ""}};
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
  if (options.management_kubeconfig.empty()) {  // otherwise another credential needs them
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

int run_check(const Options& options, const CheckSettings& settings) {
  log::set_level(log::Level::kError);
  const check::ServiceUnit unit = check::read_unit("slurmlet-operator.service").value_or({});
  std::vector<Check> checks{{"files", [&] { return check::unreadable(unit, settings.files); }}};
  Server own{settings.api, kOwn};
  own.add_rows(needed_rights(options), checks);
  if (options.leader_elect && settings.cluster) {
    checks.push_back({"lease", [&] {
                        return own.client() == nullptr
                                   ? Findings{}
                                   : Findings{
                                         lease_finding(*own.client(), options, *settings.cluster)};
                      }});
  }
  std::optional<Server> management;
  if (settings.management) {
    management.emplace(*settings.management, kManagement);
    management->add_rows(needed_machine_rights(options), checks);
  }
  if (options.autoscale) {
    (management ? *management : own)
        .add_rights("autoscale", needed_scale_rights(options), kScaleFix, checks);
  }
  add_slurm_rows(options, settings.cluster, checks);
  checks.push_back({"service",
                    [&] {
                      return unit.enabled && !unit.active
                                 ? Findings{check::error(unit.name + " is enabled and not running")}
                                 : Findings{};
                    },
                    "systemctl status slurmlet-operator; journalctl -u slurmlet-operator"});
  const Findings findings = check::run(checks);
  return check::report(findings, check::findings_text(findings));
}

}  // namespace slurmlet::op
