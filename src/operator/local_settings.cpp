#include "operator/local_settings.h"

#include <filesystem>
#include <utility>

#include "base/text.h"
#include "config/load.h"
#include "config/sources.h"
#include "http/curl_client.h"
#include "slurm/local/conf.h"
#include "slurm/local/slurm_users.h"

namespace slurmlet::op {

Result<config::Settings> api_settings(const std::string& kubeconfig) {
  config::ParsedCommandLine command;
  command.subcommand = "run";
  if (!kubeconfig.empty()) {
    command.values["kubernetes.kubeconfig"] = kubeconfig;
  }
  const Error none{Code::kNotFound, "no file"};
  return config::load(
      command, config::process_environment(),
      [none](const std::string&) -> Result<std::string> { return none; },
      [none](const std::string&) -> Result<std::vector<std::string>> { return none; });
}

Result<std::string> cluster_name(std::string& path) {
  slurm::ConfSearch search;
  search.configured = path;
  search.environment = config::process_environment()("SLURM_CONF").value_or("");
  path = slurm::find_slurm_conf(search);
  if (path.empty()) {
    return Error{Code::kInvalid,
                 "there is no slurm.conf in its usual places; name it with --slurm-conf"};
  }
  const auto conf = TRY(slurm::read_slurm_conf(path, {"", {}, slurm::usual_slurm_users()}));
  if (conf.cluster_name.empty()) {
    return Error{Code::kInvalid, path + ": ClusterName is not set; set it"};
  }
  return to_lower(conf.cluster_name);
}

Result<ApiConnection> connect_api(const std::string& kubeconfig, const Clock& clock) {
  const auto settings = TRY(api_settings(kubeconfig));
  auto access = TRY(credentials::ApiAccess::open(settings, clock));
  auto client = TRY(access.connect());
  return ApiConnection{std::move(access), std::move(client)};
}

Result<std::optional<ApiConnection>> connect_management(http::Client& nodes,
                                                        const std::string& kubeconfig,
                                                        const Clock& clock) {
  if (kubeconfig.empty()) {
    return std::optional<ApiConnection>{};
  }
  const auto settings = TRY(api_settings(kubeconfig));
  auto access = TRY(credentials::ApiAccess::open(settings, clock));
  auto client = TRY(http::make_sibling(nodes, access.source()));
  return std::optional{ApiConnection{std::move(access), std::move(client)}};
}

std::string admin_kubeconfig(const std::string& flag) {
  const std::string path =
      !flag.empty()
          ? flag
          : config::process_environment()("KUBECONFIG").value_or("/etc/kubernetes/admin.conf");
  return std::filesystem::absolute(path).string();
}

}  // namespace slurmlet::op
