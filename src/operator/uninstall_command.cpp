#include "operator/uninstall_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/print.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "check/service_unit.h"
#include "kube/json_read.h"
#include "kube/rest_api.h"
#include "operator/init_command.h"
#include "operator/leader.h"
#include "operator/local_settings.h"
#include "operator/manifests.h"
#include "operator/token_secrets.h"
#include "operator/uninstall_site.h"

namespace slurmlet::op {
namespace {

constexpr int kRounds = 30;
// A Lease that is not renewed is free after Leader::kLease.
constexpr Duration kLeadTime = std::chrono::seconds{25};
constexpr const char* kLeasePrefix = "slurmlet-operator-";

Status blocked(const UninstallPlan& plan) {
  return plan.blockers.empty() ? Status{} : Error{Code::kConflict, join(plan.blockers, "\n")};
}

std::string name_of(const nlohmann::json& object) {
  return kube::string_at(kube::member(object, "metadata"), "name");
}

// An object that is left, in the order of deletion.
struct Left {
  std::string what, path;
};

class Uninstall {
 public:
  Uninstall(const CommandLine& command, std::string cluster, ApiConnection server,
            std::optional<ApiConnection> management, const Clock& clock)
      : options_(command.options),
        flags_(command.admin),
        clock_(clock),
        server_(std::move(server)),
        management_(std::move(management)),
        objects_(*server_.client, {}),
        leases_(*server_.client, {}, options_.leader_namespace),
        lease_name_(leader_lease(cluster)),
        leader_(leases_, lease_name_, leader_identity(), system_random(), clock),
        site_(options_, cluster, *server_.client,
              management_ ? *management_->client : *server_.client, clock,
              [this] { return keep_lead(); }) {}

  // What stays is named; kConflict where nothing may begin.
  Status run();
  Status preview();
  bool has_stopped_service() const { return stopped_; }
  const std::vector<std::string>& kept() const { return kept_; }

 private:
  bool keep_lead();
  Status look_around();
  Status stop_service();
  Status take_lead();
  Status take_back();
  Result<UninstallPlan> look();
  Result<std::vector<Left>> left_objects();
  Status remove_left();
  Status remove_namespace();

  Options options_;
  AdminFlags flags_;
  const Clock& clock_;
  ApiConnection server_;
  std::optional<ApiConnection> management_;
  kube::RestObjectApi objects_;
  kube::RestLeaseApi leases_;
  const std::string lease_name_;
  Leader leader_;
  UninstallSite site_;
  bool elects_ = false;              // there is a place for a Lease
  bool leads_ = false;               // it is ours to keep
  std::vector<std::string> others_;  // Leases of other Slurm clusters' operators
  check::ServiceUnit unit_;
  bool stopped_ = false;
  std::vector<std::string> kept_;
};

bool Uninstall::keep_lead() {
  if (leads_) {
    (void)leader_.step(clock_.now());
  }
  return !leads_ || leader_.leads(clock_.now().steady);
}

// Fails where an operator on another host leads.
Status Uninstall::look_around() {
  const auto leases = TRY(objects_.list(kube::leases_path(options_.leader_namespace)));
  for (const auto& lease : leases) {
    const std::string name = name_of(lease);
    if (name.starts_with(kLeasePrefix) && name != lease_name_) {
      others_.push_back(name);
    }
  }
  const bool has_namespace =
      TRY(objects_.exists("/api/v1/namespaces/" + url_encode(options_.leader_namespace)));
  elects_ = options_.leader_elect && has_namespace;
  unit_ = flags_.no_service ? check::ServiceUnit{} : TRY(check::read_unit(kService));
  const auto lease = leases_.get(lease_name_);
  if (!lease) {
    return lease.error().code == Code::kNotFound ? Status{} : lease.error();
  }
  const auto renewed = parse_rfc3339(lease->renew_time);
  const bool is_fresh =
      renewed && clock_.now().wall - *renewed < std::chrono::seconds{lease->duration_seconds};
  const std::string host = host_of_leader(lease->holder_identity);
  if (!lease->holder_identity.empty() && is_fresh && host != host_name()) {
    return Error{Code::kConflict,
                 fmt::format("slurmlet-operator on {} leads (Lease {}/{}): stop it first, and each "
                             "other of Slurm cluster's operators",
                             host, options_.leader_namespace, lease_name_)};
  }
  return {};
}

Status Uninstall::stop_service() {
  if (unit_.enabled || unit_.active) {
    TRY(check::systemctl({"disable", "--now", "--quiet", kService}));
    stopped_ = true;
    say(std::string{kService} + ": stopped and disabled");
  }
  return {};
}

// So that no operator acts meanwhile.
Status Uninstall::take_lead() {
  const SteadyTime until = clock_.now().steady + kLeadTime;
  while (elects_ && !leads_ && clock_.now().steady < until) {
    const SteadyTime next = leader_.step(clock_.now());
    leads_ = leader_.leads(clock_.now().steady);
    if (!leads_) {
      (void)server_.client->wait(std::min(next, until), {});
    }
  }
  if (!elects_ || leads_) {
    return {};
  }
  return Error{Code::kConflict,
               leader_.problem().empty()
                   ? fmt::format("an operator renews Lease {}/{}: stop it first (kubectl -n {} get "
                                 "lease {})",
                                 options_.leader_namespace, lease_name_, options_.leader_namespace,
                                 lease_name_)
                   : leader_.problem()};
}

Result<UninstallPlan> Uninstall::look() {
  auto plan = TRY(site_.look(!others_.empty() && options_.machine_cluster.empty()));
  kept_ = plan.kept;
  return plan;
}

Status Uninstall::take_back() {
  for (int round = 0; round < kRounds && keep_lead(); ++round) {
    const auto plan = TRY(look());
    TRY(blocked(plan));
    if (plan.is_done()) {
      return {};
    }
    TRY(site_.take_back(plan, say));
  }
  return Error{Code::kConflict,
               "something writes again what was taken back, or another operator "
               "leads; stop it first"};
}

// Rights before what limits them. What another Slurm cluster's operator needs stays.
Result<std::vector<Left>> Uninstall::left_objects() {
  std::vector<Left> out;
  const bool is_last = others_.empty();
  const auto secrets = TRY(token_secrets(objects_, is_last ? "" : token_place(options_)));
  std::vector<kube::Manifest> manifests;
  if (is_last) {
    auto shared = TRY(shared_manifests());
    manifests =
        TRY(operator_manifests({.client_certificates = true, .autoscaling = true, .power = true}));
    for (kube::Manifest& manifest : shared) {
      const bool is_foreign = TRY(objects_.is_foreign(manifest.path, kInitManager));
      if (!is_foreign) {
        manifests.insert(manifests.begin(), std::move(manifest));
      }
    }
  }
  std::reverse(manifests.begin(), manifests.end());
  for (const kube::Manifest& manifest : manifests) {
    const bool is_there = TRY(objects_.exists(manifest.path));
    if (is_there && manifest.kind != "Namespace") {
      out.push_back({manifest.kind + " " + manifest.name, manifest.path});
    }
  }
  for (const std::string& path : secrets) {
    out.push_back({"Secret " + path.substr(path.rfind('/') + 1), path});
  }
  const std::string lease =
      kube::leases_path(options_.leader_namespace) + "/" + url_encode(lease_name_);
  const bool has_lease = TRY(objects_.exists(lease));
  if (has_lease) {
    out.push_back({"Lease " + options_.leader_namespace + "/" + lease_name_, lease});
  }
  return out;
}

// Only an empty one: what others keep there would go with it.
Status Uninstall::remove_namespace() {
  const std::string name_space = "slurmlet-system";
  const std::string path = "/api/v1/namespaces/" + name_space;
  if (!others_.empty() || !objects_.get(path)) {
    return {};
  }
  for (const std::string& collection :
       {path + "/pods", path + "/secrets", path + "/configmaps", path + "/services",
        path + "/persistentvolumeclaims", kube::leases_path(name_space)}) {
    const auto objects = TRY(objects_.list_metadata(collection));
    for (const auto& object : objects) {
      if (name_of(object) != "kube-root-ca.crt") {
        say(fmt::format("Namespace {} stays: {} is in it, which is not the operator's", name_space,
                        name_of(object)));
        return {};
      }
    }
  }
  TRY(objects_.remove(path));
  say("Namespace " + name_space + ": deleted");
  return {};
}

Status Uninstall::remove_left() {
  const auto left = TRY(left_objects());
  if (is_written_by_init(own_kubeconfig(options_))) {
    std::error_code problem;
    std::filesystem::remove(own_kubeconfig(options_), problem);
    if (problem) {
      return Error{Code::kInternal, own_kubeconfig(options_) + ": " + problem.message()};
    }
    say(own_kubeconfig(options_) + ": deleted");
  }
  for (const Left& one : left) {
    (void)keep_lead();
    TRY(objects_.remove(one.path));
    say(one.what + ": deleted");
  }
  leads_ = false;
  for (const std::string& name : others_) {
    say(fmt::format("rights and policies stay, for the operator of Lease {}/{}",
                    options_.leader_namespace, name));
  }
  return remove_namespace();
}

Status Uninstall::preview() {
  const Status around = look_around();
  const auto plan = TRY(look());
  say("Nothing is changed. In this order uninstall would do:");
  if (unit_.enabled || unit_.active) {
    say(std::string{kService} + ": stop and disable");
  }
  for (const NodeChange& change : plan.slurm) {
    say(describe(change, site_.slurm_nodes()));
  }
  for (const MachineTemplate& one : plan.templates) {
    say(describe(one));
  }
  for (const kube::Machine& machine : plan.machines) {
    say(describe(machine));
  }
  for (const NodeAnnotations& node : plan.nodes) {
    say(describe(node));
  }
  if (is_written_by_init(own_kubeconfig(options_))) {
    say(own_kubeconfig(options_) + ": delete");
  }
  const auto left = TRY(left_objects());
  for (const Left& one : left) {
    say(one.what + ": delete");
  }
  TRY(blocked(plan));
  return around;
}

Status Uninstall::run() {
  TRY(look_around());
  const auto plan = TRY(look());
  TRY(blocked(plan));  // before anything is changed
  TRY(stop_service());
  TRY(take_lead());
  Status done = take_back();
  if (done && kept_.empty()) {
    done = remove_left();
  }
  if (leads_) {
    leader_.resign(clock_.now());
  }
  return done;
}

Status uninstall(CommandLine command) {
  const SystemClock clock;
  auto cluster = TRY(cluster_name(command.options.slurm_conf));
  const Options& options = command.options;
  auto server = TRY(connect_api(admin_kubeconfig(command.admin.kubeconfig), clock));
  auto management = TRY(connect_management(*server.client, options.management_kubeconfig, clock));
  Uninstall one{command, std::move(cluster), std::move(server), std::move(management), clock};
  Status done = command.admin.dry_run ? one.preview() : one.run();
  for (const std::string& line : one.kept()) {
    say("kept: " + line);
  }
  if (done && !one.kept().empty()) {
    done = Error{Code::kConflict, "rights, policies and the Lease stay until then"};
  }
  if (!done && one.has_stopped_service()) {
    done = Error{done.error().code,
                 done.error().message + fmt::format("\n{0} is stopped; start it again: systemctl "
                                                    "enable --now {0}",
                                                    kService)};
  }
  return done;
}

}  // namespace

int run_uninstall(const CommandLine& command) {
  log::set_level(log::Level::kError);
  if (!command.admin.dry_run && ::geteuid() != 0) {
    log::error("slurmlet-operator uninstall must be run by root");
    return 1;
  }
  const Status done = uninstall(command);
  if (!done) {
    log::error_lines(done.error().message);
    return done.error().code == Code::kInvalid ? 2 : 1;
  }
  if (!command.admin.dry_run) {
    say("done: nothing of this Slurm cluster's operator is left");
  }
  return 0;
}

}  // namespace slurmlet::op
