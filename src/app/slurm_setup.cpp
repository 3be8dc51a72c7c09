#include "app/slurm_setup.h"

#include "slurm/conf.h"
#include "slurm/node_name.h"

namespace slurmlet::app {

sync::SlurmSetup discover_slurm(const config::Settings& settings, const std::string& hostname,
                                const std::string& kubernetes_node,
                                const std::string& slurmd_option) {
  sync::SlurmSetup setup;
  slurm::ConfSearch search;
  search.configured = settings.slurm.conf;
  slurm::NameSources names{settings.slurm.node_name, slurmd_option, nullptr, hostname,
                           kubernetes_node};
  slurm::SlurmConf conf;
  const std::string path = slurm::find_slurm_conf(search);
  if (path.empty()) {
    setup.problem = "there is none in the usual places; set slurm.conf or SLURM_CONF";
  } else {
    auto read = slurm::read_slurm_conf(
        path, {hostname, {settings.slurm.node_name, slurmd_option, kubernetes_node}});
    if (read) {
      conf = std::move(*read);
      names.conf = &conf;
    } else {
      setup.problem = read.error().message;
    }
  }
  const slurm::NameChoice choice = slurm::resolve_node_name(names);
  setup.node_name = choice.name;
  setup.why = choice.why;
  if (names.conf != nullptr) {
    setup.conf = slurm::conf_facts(conf, choice.name, slurm::read_gpu_vendor(path, choice.name));
  }
  // Without slurm.conf, Slurm's built-in places still hold.
  const std::string short_name = slurm::short_hostname(hostname);
  setup.watch.places.pid_file = slurm::expand_pattern(conf.pid_file, choice.name, short_name);
  // A slurmd that names another node (-N) is not ours only where several could be on this machine;
  // elsewhere its -N is what tells us the name (dynamic nodes).
  const bool several = conf.nodes.size() > 1;
  setup.watch.identity = {
      several || !settings.slurm.node_name.empty() ? choice.name : std::string{}, path};
  setup.watch.spool_dir = slurm::expand_pattern(conf.spool_dir, choice.name, short_name);
  setup.watch.bin_dir = settings.slurm.bin_dir;
  setup.jobs.spool_dir = setup.watch.spool_dir;
  setup.jobs.node_name = choice.name;
  return setup;
}

slurm::PollSettings poll_settings(const config::Settings& settings, const std::string& conf_path) {
  slurm::PollSettings poll;
  poll.sinfo = {conf_path, settings.slurm.bin_dir, settings.slurm.command_timeout};
  poll.interval = settings.slurm.poll_interval;
  poll.stale_after = settings.slurm.stale_after;
  poll.max_backoff = settings.slurm.max_backoff;
  return poll;
}

}  // namespace slurmlet::app
