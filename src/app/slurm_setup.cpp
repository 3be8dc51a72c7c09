#include "app/slurm_setup.h"

#include <fmt/format.h>

#include "base/log.h"
#include "slurm/cluster_choice.h"
#include "slurm/conf.h"
#include "slurm/node_name.h"

namespace slurmlet::app {
namespace {

constexpr const char* kNoConf = "there is none in the usual places; set slurm.conf or SLURM_CONF";

std::vector<std::string> possible_names(const slurm::NameSources& names) {
  std::vector<std::string> out{names.configured, names.node_name};
  for (const auto& slurmd : names.slurmds) {
    out.push_back(slurmd.own_name());
  }
  return out;
}

// slurm.conf, and the NodeName that it and the running slurmd lead to.
void choose_node(sync::SlurmSetup& setup, slurm::SlurmConf& conf, slurm::NameSources names,
                 const std::string& path) {
  if (path.empty()) {
    setup.problem = kNoConf;
  } else if (auto read = slurm::read_slurm_conf(path, {names.hostname, possible_names(names)})) {
    conf = *std::move(read);
    setup.left_out = conf.left_out;
    names.conf = &conf;
  } else {
    setup.problem = read.error().message;
  }
  slurm::NameChoice choice = slurm::resolve_node_name(names);
  setup.node_name = std::move(choice.name);
  setup.why = std::move(choice.why);
  setup.told_by.pid = choice.told_by;
  if (setup.node_name.empty()) {
    setup.refusal = setup.why;
  }
  if (names.conf != nullptr) {
    setup.conf =
        slurm::conf_facts(conf, setup.node_name, slurm::read_gpu_conf(path, setup.node_name));
  }
}

}  // namespace

sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                const std::vector<slurm::SlurmdSeen>& slurmds) {
  sync::SlurmSetup setup;
  const std::string usual = slurm::find_slurm_conf({});
  const slurm::ClusterChoice cluster =
      slurm::choose_cluster(slurmds, {settings.slurm.conf, settings.slurm.node_name, usual});
  slurm::SlurmConf conf;
  std::string path = settings.slurm.conf;
  if (!cluster.refusal.empty()) {
    setup.refusal = setup.why = cluster.refusal;
  } else {
    if (path.empty()) {
      path = cluster.conf.empty() ? usual : cluster.conf;
    }
    choose_node(setup, conf,
                {settings.slurm.node_name, cluster.slurmds, nullptr, hostname, kubernetes_node},
                path);
  }
  setup.place.conf = settings.slurm.conf.empty() ? path : "";
  setup.place.munge_socket = conf.path.empty() || !conf.uses_munge ? "" : conf.munge_socket;
  setup.place.cluster = conf.cluster_name;
  if (path.empty() && !cluster.conf_server.empty()) {
    setup.place.conf_server = cluster.conf_server;
    setup.why += "; each question fetches slurm.conf from " + cluster.conf_server + " as well";
  }
  setup.told_by.conf = path;
  setup.told_by.conf_server = setup.place.conf_server;
  setup.told_by.bin_dir = settings.slurm.bin_dir;
  const std::string& name = setup.node_name;
  // Without slurm.conf, Slurm's built-in places still hold.
  const std::string short_name = slurm::short_hostname(hostname);
  setup.watch.places.pid_file = slurm::expand_pattern(conf.pid_file, name, short_name);
  // A slurmd that names another node (-N) is not ours only where several could be on this machine;
  // elsewhere its -N is what tells us the name (dynamic nodes). Likewise its slurm.conf is what
  // tells us ours, unless one is configured.
  const bool several = conf.nodes.size() > 1 || slurmds.size() > 1;
  setup.watch.identity = {several || !settings.slurm.node_name.empty() ? name : std::string{},
                          settings.slurm.conf};
  setup.watch.spool_dir = slurm::expand_pattern(conf.spool_dir, name, short_name);
  setup.watch.bin_dir = settings.slurm.bin_dir;
  const slurm::NodeLine* line = conf.find_node(name);
  setup.slurmd_port = conf.path.empty() || !conf.slurmd_serves_http ? 0
                      : line != nullptr && line->port != 0          ? line->port
                                                                    : conf.slurmd_port;
  setup.jobs.spool_dir = setup.watch.spool_dir;
  setup.jobs.node_name = name;
  setup.jobs.cgroup_slice =
      conf.path.empty() ? setup.jobs.cgroup_slice : slurm::read_cgroup_slice(conf.path);
  setup.jobs.threads_per_cpu = line != nullptr && line->counts_cores() ? line->threads_per_core : 1;
  return setup;
}

std::string feed_cluster(const config::Settings& settings, const std::string& hostname,
                         const std::string& kubernetes_node) {
  return settings.slurm.feed.empty()
             ? ""
             : discover_slurm(settings, hostname, kubernetes_node, {}).conf.cluster_name;
}

std::string stretched_interval(const config::SlurmSettings& slurm) {
  const bool by_feed = slurm.source == "feed" || (slurm.source == "auto" && !slurm.feed.empty());
  if (by_feed || slurm.poll_interval * slurm.questions_per_hour >= std::chrono::hours{1}) {
    return "";
  }
  return fmt::format(
      "slurm.questionsPerHour is {}, so slurmctld is not asked every {} s (slurm.pollInterval) "
      "but about every {} s",
      slurm.questions_per_hour, std::chrono::duration<double>(slurm.poll_interval).count(),
      3600 / slurm.questions_per_hour);
}

slurm::PollSettings poll_settings(const config::Settings& settings) {
  slurm::PollSettings poll;
  poll.interval = settings.slurm.poll_interval;
  poll.stale_after = settings.slurm.stale_after;
  poll.max_backoff = settings.slurm.max_backoff;
  poll.questions_per_hour = settings.slurm.questions_per_hour;
  if (const std::string warning = stretched_interval(settings.slurm); !warning.empty()) {
    log::warning(warning);
  }
  return poll;
}

}  // namespace slurmlet::app
