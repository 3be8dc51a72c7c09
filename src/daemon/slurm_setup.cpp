#include "daemon/slurm_setup.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "slurm/local/conf.h"
#include "slurm/local/host_names.h"
#include "slurm/local/own_node.h"
#include "slurm/local/slurm_users.h"

namespace slurmlet::daemon {
namespace {

constexpr const char* kNoConf =
    "there is none in the standard locations; set slurm.conf or SLURM_CONF";

std::vector<std::string> possible_names(const slurm::NameSources& names) {
  std::vector<std::string> out{names.configured, names.node_name};
  for (const auto& slurmd : names.slurmds) {
    out.push_back(slurmd.options.node_name);
  }
  return out;
}

void reject(sync::SlurmSetup& setup, const std::string& why) {
  setup.node_name.clear();
  setup.name_problem = setup.why = why;
  setup.name_problem_cause = node::SlurmFailure::kBadConfiguration;
}

// Whether it is slurmd's unit or a pidfile of root's that vouches for the process, by the
// slurm.conf that it reads or, where that is unknown, by ours. `rejected` gets why its
// slurm.conf is not read.
bool is_vouched_for(const slurm::SlurmdSeen& slurmd, const std::string& our_conf,
                    const slurm::ConfIdentity& identity, std::string& rejected) {
  if (slurmd.in_unit) {
    return true;
  }
  const std::string& path = slurmd.conf.empty() ? our_conf : slurmd.conf;
  slurm::SlurmConf conf;  // without a file, Slurm's built-in places still hold
  auto read =
      path.empty() ? Result<slurm::SlurmConf>{conf} : slurm::read_slurm_conf(path, identity);
  if (read) {
    conf = *std::move(read);
  } else if (read.error().code == Code::kInvalid) {
    rejected = fmt::format("slurmd (pid {}): {}", slurmd.pid, read.error().message);
    return false;
  }
  return slurm::named_by_pid_file(conf.pid_file, slurmd.pid,
                                  slurm::with_slurm_user(identity.users, conf.slurm_user));
}

// Read once more where this host goes by another name there.
Result<slurm::SlurmConf> read_conf(const std::string& path, const TrustedUsers& users,
                                   slurm::NameSources& names) {
  slurm::ConfIdentity identity{names.hostname, possible_names(names), users, {}};
  slurm::SlurmConf conf = TRY(slurm::read_slurm_conf(path, identity));
  names.conf = &conf;
  if (slurm::needs_other_hosts(names)) {
    auto hosts = slurm::other_host_names(names.hostname);
    names.other_hosts = hosts ? *std::move(hosts) : std::vector<std::string>{"localhost"};
    names.other_hosts_problem = hosts ? "" : hosts.error().message;
    identity.other_hosts = names.other_hosts;
    conf = TRY(slurm::read_slurm_conf(path, identity));
  }
  return conf;
}

// slurm.conf, and the NodeName that it and the running slurmd lead to.
void choose_node(sync::SlurmSetup& setup, slurm::SlurmConf& conf, slurm::NameSources names,
                 const std::string& path, const TrustedUsers& users) {
  auto read = path.empty() ? Result<slurm::SlurmConf>{Error{Code::kNotFound, kNoConf}}
                           : read_conf(path, users, names);
  names.conf = nullptr;
  if (read) {
    conf = *std::move(read);
    setup.left_out = conf.left_out;
    names.conf = &conf;
  } else if (read.error().code == Code::kInvalid) {
    return reject(setup, read.error().message);
  } else {
    setup.problem = read.error().message;
  }
  setup.watch.identity.unnamed = slurm::name_without_option(names);
  slurm::NameChoice choice = slurm::resolve_node_name(names);
  setup.node_name = std::move(choice.name);
  setup.why = std::move(choice.why);
  if (setup.node_name.empty()) {
    setup.name_problem = setup.why;
  }
  if (names.conf != nullptr) {
    const slurm::GpuConf gpus =
        slurm::read_gpu_conf(path, setup.node_name, slurm::with_slurm_user(users, conf.slurm_user));
    if (!gpus.rejected.empty()) {
      return reject(setup, gpus.rejected);
    }
    setup.conf = slurm::conf_facts(conf, setup.node_name, gpus);
  }
}

// Where slurmd and its jobs are looked for, and what identifies ours.
void set_places(const config::SlurmSettings& settings, const slurm::SlurmConf& conf,
                const std::string& short_name, bool several_slurmds, const TrustedUsers& users,
                sync::SlurmSetup& setup) {
  const std::string& name = setup.node_name;
  // Without slurm.conf, Slurm's built-in places still hold.
  setup.watch.places.pid_file = slurm::expand_pattern(conf.pid_file, name, short_name);
  setup.watch.places.pid_pattern = conf.pid_file;
  setup.watch.places.users = slurm::with_slurm_user(users, conf.slurm_user);
  // A slurmd of another node (-N, or what it takes without) is not ours only where several could be
  // on this machine; elsewhere its -N names it for us (dynamic nodes). Likewise its slurm.conf is
  // ours, unless one is configured.
  const bool several = conf.nodes.size() > 1 || several_slurmds;
  setup.watch.identity.node_name = several || !settings.node_name.empty() ? name : std::string{};
  setup.watch.identity.conf = settings.conf;
  setup.watch.spool_dir = slurm::expand_pattern(conf.spool_dir, name, short_name);
  setup.watch.bin_dir = settings.bin_dir;
  const slurm::NodeLine* line = conf.find_node(name);
  setup.jobs.spool_dir = setup.watch.spool_dir;
  setup.jobs.node_name = name;
  setup.jobs.users = setup.watch.places.users;
  setup.jobs.threads_per_cpu.reset();  // slurmd -Z has no line, or it is in a file left out
  if (line != nullptr) {
    setup.jobs.threads_per_cpu = line->counts_cores() ? line->threads_per_core : 1;
  }
}

// What slurmctld is queried for, and how often.
void set_cluster(const config::SlurmSettings& settings, const slurm::SlurmConf& conf,
                 const std::string& path, const slurm::ClusterChoice& cluster,
                 sync::SlurmSetup& setup) {
  if (!conf.path.empty()) {
    setup.pace = poll_settings(settings, conf.node_count);
  }
  setup.place.conf = settings.conf.empty() ? path : "";
  setup.place.munge_socket = conf.path.empty() || !conf.uses_munge ? "" : conf.munge_socket;
  setup.place.cluster = conf.cluster_name;
  setup.place.may_limit_rate = conf.path.empty() || !conf.left_out.empty() || conf.limits_rate;
  if (path.empty() && !cluster.conf_server.empty()) {
    setup.place.conf_server = cluster.conf_server;
    setup.why += "; each query fetches slurm.conf from " + cluster.conf_server + " as well";
  }
}

}  // namespace

sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                std::vector<slurm::SlurmdSeen> slurmds) {
  sync::SlurmSetup setup;
  const std::string usual = slurm::find_slurm_conf({});
  const TrustedUsers users = slurm::usual_slurm_users();
  std::string rejected;
  const std::string& our_conf = settings.slurm.conf.empty() ? usual : settings.slurm.conf;
  std::erase_if(slurmds, [&](const slurm::SlurmdSeen& slurmd) {
    return !is_vouched_for(slurmd, our_conf, {hostname, {}, users, {}}, rejected);
  });
  const slurm::ClusterChoice cluster =
      slurm::choose_cluster(slurmds, {settings.slurm.conf, settings.slurm.node_name, usual, users});
  slurm::SlurmConf conf;
  std::string path = settings.slurm.conf;
  if (slurmds.empty() && settings.slurm.conf.empty() && !rejected.empty()) {
    reject(setup, rejected);
  } else if (!cluster.problem.empty()) {
    setup.name_problem = setup.why = cluster.problem;
  } else {
    if (path.empty()) {
      path = cluster.conf.empty() ? usual : cluster.conf;
    }
    choose_node(
        setup, conf,
        {settings.slurm.node_name, cluster.slurmds, nullptr, hostname, kubernetes_node, {}, {}},
        path, users);
  }
  set_cluster(settings.slurm, conf, path, cluster, setup);
  setup.site = SitePlace{kubernetes_node, conf.node_count, conf.nodes_at_once};
  setup.watch.identity.default_conf = usual;
  set_places(settings.slurm, conf, slurm::short_hostname(hostname), slurmds.size() > 1, users,
             setup);
  return setup;
}

sync::SlurmSetup discover_slurm_for_command(const config::Settings& settings,
                                            const std::string& hostname,
                                            const std::string& kubernetes_node,
                                            std::vector<slurm::SlurmdSeen> slurmds) {
  for (auto& slurmd : slurmds) {
    slurmd.conf.clear();
    slurmd.conf_server.clear();
    slurmd.conf_known = false;
    slurmd.options.conf_file.clear();
    slurmd.options.conf_server.clear();
  }
  auto setup = discover_slurm(settings, hostname, kubernetes_node, std::move(slurmds));
  if (setup.problem == kNoConf) {
    setup.problem += "; commands ignore a running slurmd's slurm.conf";
  }
  return setup;
}

sync::SlurmSetup setup_before_slurm_conf(const config::Settings& settings) {
  sync::SlurmSetup setup;
  setup.watch.identity.node_name = settings.slurm.node_name;
  setup.watch.bin_dir = settings.slurm.bin_dir;
  return setup;
}

slurm::PollSettings poll_settings(const config::SlurmSettings& slurm,
                                  std::optional<std::int64_t> nodes) {
  return slurm::poll_pace({slurm.poll_interval, slurm.stale_after, slurm.max_backoff}, nodes);
}

}  // namespace slurmlet::daemon
