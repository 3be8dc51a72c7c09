#include "operator/init_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/host_name.h"
#include "base/log.h"
#include "base/print.h"
#include "base/text.h"
#include "check/service_unit.h"
#include "kube/json_read.h"
#include "kube/kubeconfig.h"
#include "operator/local_settings.h"
#include "operator/manifests.h"
#include "operator/token_secrets.h"
#include "tls/client_identity.h"

namespace slurmlet::op {
namespace {

constexpr mode_t kForUser = 0600, kForAll = 0644;
constexpr Duration kTokenTime = std::chrono::seconds{20};

// All that an init does, in this order.
struct InitPlan {
  std::vector<kube::Manifest> manifests, shared;
  std::string kubeconfig;  // to be written
  std::string config;      // the configuration file to be written; "" = there is one
  std::string user;        // of the service
  bool service = true;
};

Result<InitPlan> plan_init(const CommandLine& command) {
  const Options& options = command.options;
  InitPlan out;
  const bool has_machines = options.management_kubeconfig.empty();
  out.manifests = TRY(operator_manifests({.client_certificates = !options.bootstrap_group.empty(),
                                          .autoscaling = options.autoscale && has_machines}));
  out.shared = TRY(shared_manifests());
  out.kubeconfig = own_kubeconfig(options);
  if (options.config_file.empty()) {
    out.config = kUsualConfig;
  } else if (options.kubeconfig.empty()) {
    return Error{Code::kInvalid, fmt::format("{}: kubeconfig is not set; set it to {}",
                                             options.config_file, out.kubeconfig)};
  }
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(out.kubeconfig, ignored)) &&
      !is_written_by_init(out.kubeconfig)) {
    return Error{Code::kConflict,
                 fmt::format("{0} is not of init, and would be replaced: mv {0} {0}.old, or set "
                             "kubeconfig to another file",
                             out.kubeconfig)};
  }
  out.service = !command.admin.no_service;
  const auto unit = out.service ? TRY(check::read_unit(kService)) : check::ServiceUnit{};
  out.user = unit.user.empty() ? "root" : unit.user;
  return out;
}

std::string config_text(const InitPlan& plan) {
  return fmt::format(
      "# slurmlet-operator(8). All keys and their defaults: slurmlet-operator --help\n"
      "apiVersion: slurmlet.io/v1alpha1\n"
      "kind: OperatorConfiguration\n"
      "kubeconfig: {}\n",
      plan.kubeconfig);
}

// As YAML, so that it can be given to kubectl apply.
void show_plan(const InitPlan& plan, const std::string& admin) {
  for (const auto* manifests : {&plan.manifests, &plan.shared}) {
    for (const kube::Manifest& manifest : *manifests) {
      say(std::string{trim(manifest.text)} + "\n---");
    }
  }
  say(
      fmt::format("# Nothing was changed. By {} it would apply the above,\n"
                  "# make a token of service account {}/{} (a Secret there),\n"
                  "# write it to {} (0600, user {}),",
                  admin, kAccountNamespace, kAccount, plan.kubeconfig, plan.user));
  if (!plan.config.empty()) {
    say(fmt::format("# write {} with that kubeconfig,", plan.config));
  }
  if (plan.service) {
    say(fmt::format("# run systemctl enable {0}; systemctl restart {0},", kService));
  }
  say("# and delete the Secret of the token that was there before.");
}

Status apply_all(kube::RestObjectApi& api, const InitPlan& plan) {
  const auto apply = [&api](const kube::Manifest& manifest) -> Status {
    const auto applied = TRY(api.apply(manifest, kInitManager));
    say(fmt::format("{} {}: {}", manifest.kind, manifest.name,
                    applied == kube::Applied::kCreated   ? "created"
                    : applied == kube::Applied::kChanged ? "changed"
                                                         : "unchanged"));
    return {};
  };
  for (const kube::Manifest& manifest : plan.manifests) {
    TRY(apply(manifest));
  }
  for (const kube::Manifest& manifest : plan.shared) {
    const bool is_foreign = TRY(api.is_foreign(manifest.path, kInitManager));
    if (is_foreign) {
      say(fmt::format("{} {}: applied by another manager, stays as it is", manifest.kind,
                      manifest.name));
      continue;
    }
    TRY(apply(manifest));
  }
  return {};
}

// kube-controller-manager puts the token into the Secret.
Result<std::string> new_token(http::Client& client, kube::RestObjectApi& api,
                              const std::string& place) {
  const auto secret = TRY(api.create(secrets_path(), token_secret(place)));
  const std::string name = kube::string_at(kube::member(secret, "metadata"), "name");
  const SteadyTime until = std::chrono::steady_clock::now() + kTokenTime;
  while (std::chrono::steady_clock::now() < until) {
    const auto now = TRY(api.get(secrets_path() + "/" + name));
    const auto token = tls::base64_decode(kube::string_at(kube::member(now, "data"), "token"));
    if (token && !token->empty()) {
      return token;
    }
    (void)client.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds{200}, {});
  }
  return Error{Code::kTimeout,
               fmt::format("Secret {}/{} got no token within {} s; is kube-controller-manager "
                           "running?",
                           kAccountNamespace, name,
                           std::chrono::duration_cast<std::chrono::seconds>(kTokenTime).count())};
}

// Looked up before anything is changed.
Result<uid_t> uid_of(const std::string& user) {
  const auto account = check::account_of(user);
  if (!account) {
    return Error{Code::kNotFound,
                 fmt::format("there is no user {0}, which {1} runs as; set its User= to SlurmUser: "
                             "systemctl edit {1}",
                             user, kService)};
  }
  return account->uid;
}

Status write_kubeconfig(const InitPlan& plan, const std::string& text, uid_t owner) {
  TRY(write_file_atomic(plan.kubeconfig, text, kForUser, FileOwner{.uid = owner}));
  say(fmt::format("{}: written, for user {}{}", plan.kubeconfig, plan.user,
                  plan.service ? "" : " (chown it to the user that runs the operator)"));
  return {};
}

Status init(const CommandLine& command, const InitPlan& plan, const std::string& admin) {
  const SystemClock clock;
  const auto server = TRY(connect_api(admin, clock));
  const auto owner = TRY(uid_of(plan.user));
  kube::RestObjectApi api{*server.client, {}};
  TRY(apply_all(api, plan));
  const std::string place = token_place(command.options);
  const auto old_secrets = TRY(token_secrets(api, place));
  const auto token = TRY(new_token(*server.client, api, place));
  TRY(write_kubeconfig(
      plan, kube::token_kubeconfig_text(server.access.cluster(), token, kKubeconfigHead), owner));
  if (!plan.config.empty()) {
    TRY(write_file_atomic(plan.config, config_text(plan), kForAll));
    say(plan.config + ": written");
  }
  if (plan.service) {
    TRY(check::enable_and_restart(kService));
    say(fmt::format("{}: enabled and started", kService));
  }
  for (const std::string& path : old_secrets) {
    TRY(api.remove(path));
  }
  say(fmt::format("done: {}. Look at it: slurmlet-operator check", server.access.server()));
  if (!command.options.management_kubeconfig.empty()) {
    say("Machines are in another cluster: kubectl apply -k deploy/operator/management there "
        "(docs/how-to/operator.md)");
    if (command.options.autoscale) {
      say("and the right to scale them: docs/how-to/autoscaling.md");
    }
  }
  return {};
}

}  // namespace

bool is_written_by_init(const std::string& kubeconfig) {
  const auto text = read_file(kubeconfig);
  return text && text->starts_with(std::string{"# "} + kKubeconfigHead);
}

std::string own_kubeconfig(const Options& options) {
  return options.kubeconfig.empty() ? "/etc/slurmlet/operator.kubeconfig" : options.kubeconfig;
}

std::string token_place(const Options& options) {
  return host_name() + ":" + own_kubeconfig(options);
}

int run_init(const CommandLine& command) {
  log::set_level(log::Level::kError);
  const auto plan = plan_init(command);
  if (!plan) {
    log::error_lines(plan.error().message);
    return 2;
  }
  const std::string admin = admin_kubeconfig(command.admin.kubeconfig);
  if (command.admin.dry_run) {
    show_plan(*plan, admin);
    return 0;
  }
  if (::geteuid() != 0) {
    log::error("slurmlet-operator init must be run by root");
    return 1;
  }
  const Status done = init(command, *plan, admin);
  if (!done) {
    log::error_lines(done.error().message);
  }
  return done ? 0 : 1;
}

}  // namespace slurmlet::op
