#include "slurm/local/conf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/cpu_list.h"
#include "base/detached_task.h"
#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/hostlist.h"
#include "slurm/local/conf_lines.h"

namespace slurmlet::slurm {
namespace {

constexpr std::size_t kMaxNodesKept = 64;

// A port, or the first of a range "6820-6825".
std::optional<int> first_port(std::string_view text) {
  const auto port = parse_int<int>(trim(text.substr(0, text.find('-'))));
  return port && *port > 0 && *port < 65536 ? port : std::nullopt;
}

constexpr std::int64_t kMost = 65536;  // Slurm's limit of nodes

std::int64_t positive(std::string_view text, std::int64_t otherwise) {
  const auto value = parse_int<std::int64_t>(text).value_or(0);
  return value > 0 && value <= kMost ? value : otherwise;
}

// Cores that the CPU ids of a list like "0-1,4" are on; 0 for what is no such list.
std::int64_t count_cores(std::string_view list, std::int64_t threads) {
  std::set<std::int64_t> cores;
  for (const int id : parse_cpu_list(list).value_or(std::set<int>{})) {
    cores.insert(id / threads);
  }
  return static_cast<std::int64_t>(cores.size());
}

std::string controller_of(std::string_view text) {
  return std::string{trim(text.substr(0, text.find('(')))};
}

// Whether the nodes of this line start with the site; nothing where it does not say.
std::optional<bool> starts_with_site(const ConfLine& line) {
  const auto state = line.get("state");
  const std::string word = to_upper(state.value_or(""));
  return state ? std::optional{word != "CLOUD" && word != "FUTURE"} : std::nullopt;
}

void apply_node_keys(const ConfLine& line, NodeLine& node) {
  for (const auto& [key, value] : line.pairs) {
    if (key == "corespeccount") {
      node.core_spec_count = parse_int<std::int64_t>(value).value_or(0);
    } else if (key == "cpuspeclist") {
      node.cpu_spec_list = value;
    } else if (key == "cpus" || key == "procs") {
      node.cpus = positive(value, 0);
    } else if (key == "boards") {
      node.boards = positive(value, 1);
    } else if (key == "sockets") {
      node.sockets = positive(value, 0);
    } else if (key == "socketsperboard") {
      node.sockets_per_board = positive(value, 0);
    } else if (key == "corespersocket") {
      node.cores_per_socket = positive(value, 1);
    } else if (key == "threadspercore") {
      node.threads_per_core = positive(value, 1);
    } else if (key == "memspeclimit") {
      node.mem_spec_limit_mib = parse_int<std::int64_t>(value).value_or(0);
    } else if (key == "gres") {
      node.gres = parse_gres(value);
    }
  }
}

// Collects the file into a SlurmConf, line by line.
class Collector {
 public:
  Collector(SlurmConf& conf, const ConfIdentity& identity)
      : conf_(conf), identity_(identity), hosts_(identity.other_hosts) {
    hosts_.insert(hosts_.end(), {short_hostname(identity.hostname), identity.hostname});
  }

  void take(const ConfLine& line) {
    if (line.starts_with("nodename")) {
      take_node(line);
    } else if (!line.starts_with("partitionname") && !line.starts_with("downnodes") &&
               !line.starts_with("nodeset")) {
      take_globals(line);
    }
  }

  void finish() {
    if (conf_.controllers.empty() && !old_primary_.empty()) {
      conf_.controllers.push_back(controller_of(old_primary_));
      if (!old_backup_.empty()) {
        conf_.controllers.push_back(controller_of(old_backup_));
      }
    }
    conf_.node_count = std::max(conf_.node_count, named_);
  }

 private:
  void take_globals(const ConfLine& line) {
    using Take = void (*)(Collector&, const std::string&);
    static const std::map<std::string_view, Take> kTakers{
        // As Slurm does.
        {"clustername", [](auto& c, auto& value) { c.conf_.cluster_name = to_lower(value); }},
        {"slurmctldhost",
         [](auto& c, auto& value) { c.conf_.controllers.push_back(controller_of(value)); }},
        {"slurmctldaddr", [](auto& c, auto& value) { c.conf_.virtual_address = value; }},
        {"controlmachine", [](auto& c, auto& value) { c.old_primary_ = value; }},
        {"backupcontroller", [](auto& c, auto& value) { c.old_backup_ = value; }},
        {"maxnodecount", [](auto& c, auto& value) { c.conf_.node_count = positive(value, 0); }},
        {"slurmctldport",
         [](auto& c, auto& value) {
           c.conf_.controller_port = first_port(value).value_or(c.conf_.controller_port);
         }},
        {"slurmctldparameters",
         [](auto& c, auto& value) {
           c.conf_.limits_rate = contains(to_lower(value), "rl_enable");
         }},
        // X11 sets Contain.
        {"prologflags",
         [](auto& c, auto& value) {
           c.conf_.jobs_are_contained =
               contains(to_lower(value), "contain") || contains(to_lower(value), "x11");
         }},
        // Without prefix since 25.11.
        {"authtype",
         [](auto& c, auto& value) {
           c.conf_.uses_munge = to_lower(value) == "auth/munge" || to_lower(value) == "munge";
         }},
        {"authinfo", [](auto& c, auto& value) { c.take_auth_info(value); }},
        {"slurmdpidfile", [](auto& c, auto& value) { c.conf_.pid_file = value; }},
        {"slurmuser", [](auto& c, auto& value) { c.conf_.slurm_user = value; }},
        {"slurmdspooldir", [](auto& c, auto& value) { c.conf_.spool_dir = value; }},
    };
    for (const auto& [key, value] : line.pairs) {
      if (const auto found = kTakers.find(key); found != kTakers.end()) {
        found->second(*this, value);
      }
    }
  }

  // "socket=/run/munge/munge.socket.2,ttl=60"
  void take_auth_info(std::string_view text) {
    constexpr std::string_view kKey = "socket=";
    for (const auto part : split(text, ',')) {
      if (to_lower(trim(part)).starts_with(kKey)) {
        conf_.munge_socket = trim(part).substr(kKey.size());
      }
    }
  }

  void take_node(const ConfLine& line) {
    const std::string names = line.pairs.front().second;
    if (to_upper(names) == "DEFAULT") {
      apply_node_keys(line, defaults_);
      default_starts_ = starts_with_site(line).value_or(default_starts_);
      return;
    }
    const auto count = static_cast<std::int64_t>(count_hostlist(names));
    if (starts_with_site(line).value_or(default_starts_)) {
      conf_.nodes_at_once += count;
    }
    named_ += count;
    const std::string hostnames = line.get("nodehostname").value_or(names);
    const bool by_name =
        std::any_of(identity_.names.begin(), identity_.names.end(),
                    [&](const std::string& name) { return hostlist_contains(names, name); });
    const bool by_host = std::any_of(hosts_.begin(), hosts_.end(), [&](const std::string& host) {
      return hostlist_contains(hostnames, host);
    });
    if (!by_name && !by_host) {
      return;
    }
    if (line.get("nodehostname")) {
      keep_pairs(line, names, hostnames);
      return;
    }
    // Names are host names: no need to expand a line of ten thousand.
    std::vector<std::string> wanted = identity_.names;
    wanted.insert(wanted.end(), hosts_.begin(), hosts_.end());
    for (const auto& name : wanted) {
      if (hostlist_contains(names, name)) {
        keep(line, name, name);
      }
    }
  }

  void keep(const ConfLine& line, const std::string& name, const std::string& hostname) {
    if (conf_.nodes.size() >= kMaxNodesKept || conf_.find_node(name) != nullptr) {
      return;
    }
    NodeLine node = defaults_;
    node.name = name;
    node.hostname = hostname;
    apply_node_keys(line, node);
    conf_.nodes.push_back(std::move(node));
  }

  void keep_pairs(const ConfLine& line, const std::string& names, const std::string& hostnames) {
    const auto name_list = expand_hostlist(names);
    const auto host_list = expand_hostlist(hostnames);
    if (!name_list || !host_list || host_list->empty()) {
      return;
    }
    const auto& wanted = identity_.names;
    for (std::size_t i = 0; i < name_list->size(); ++i) {
      // Several nodes of one host (multiple slurmd) may share the only host name.
      const bool paired = host_list->size() == name_list->size();
      const std::string& hostname = paired ? (*host_list)[i] : host_list->front();
      const std::string& name = (*name_list)[i];
      if (std::find(wanted.begin(), wanted.end(), name) != wanted.end() ||
          std::find(hosts_.begin(), hosts_.end(), hostname) != hosts_.end()) {
        keep(line, name, hostname);
      }
    }
  }

  SlurmConf& conf_;
  const ConfIdentity& identity_;
  std::vector<std::string> hosts_;
  NodeLine defaults_;
  std::int64_t named_ = 0;
  bool default_starts_ = true;
  std::string old_primary_;  // keys of Slurm before 18.08, still read by it
  std::string old_backup_;
};

}  // namespace

std::string find_slurm_conf(const ConfSearch& search) {
  for (const auto& path : {search.configured, search.environment}) {
    if (!path.empty()) {
      return path;
    }
  }
  const auto found =
      std::find_if(search.defaults.begin(), search.defaults.end(), [](const auto& path) {
        touches_file(path);
        return ::access(path.c_str(), R_OK) == 0;
      });
  return found == search.defaults.end() ? std::string{} : *found;
}

// As in src/common/read_config.c and node_conf.c: what is not given follows from the rest.
bool NodeLine::counts_cores() const {
  if (cpus == 0 || threads_per_core == 1) {
    return false;
  }
  const std::int64_t per_socket = cores_per_socket * threads_per_core;
  std::int64_t all_sockets = boards;
  if (sockets_per_board > 0) {
    all_sockets = boards * sockets_per_board;
  } else if (sockets > 0) {
    all_sockets = sockets;
  } else if (cpus % per_socket == 0) {
    all_sockets = cpus / per_socket;
  }
  return cpus <= all_sockets * cores_per_socket;
}

const NodeLine* SlurmConf::find_node(std::string_view name) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const NodeLine& node) { return node.name == name; });
  return found == nodes.end() ? nullptr : &*found;
}

Result<SlurmConf> read_slurm_conf(const std::string& path, const ConfIdentity& identity) {
  SlurmConf conf;
  conf.path = path;
  Collector collector{conf, identity};
  conf.left_out = TRY(for_each_conf_line(path, identity.users,
                                         [&](const ConfLine& line) { collector.take(line); }));
  collector.finish();
  return conf;
}

std::string short_hostname(std::string_view hostname) {
  return std::string{hostname.substr(0, hostname.find('.'))};
}

std::string expand_pattern(std::string_view pattern, std::string_view node_name,
                           std::string_view hostname) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'n') {
      out += node_name;
    } else if (next == 'h') {
      out += short_hostname(hostname);
    } else if (next == '%') {
      out += '%';
    } else {
      out += pattern[i];
      continue;
    }
    ++i;
  }
  return out;
}

namespace {

// Where people look for slurmctld: "head1:6817", or the address that several share.
std::vector<std::string> controllers_for_people(const SlurmConf& conf) {
  std::vector<std::string> out;
  if (conf.virtual_address.empty()) {
    for (const auto& controller : conf.controllers) {
      out.push_back(fmt::format("{}:{}", controller, conf.controller_port));
    }
    return out;
  }
  std::string text = fmt::format("{}:{}", conf.virtual_address, conf.controller_port);
  for (std::size_t i = 0; i < conf.controllers.size(); ++i) {
    text += (i == 0 ? ", the address of " : " and ") + conf.controllers[i];
  }
  return {text};
}

}  // namespace

node::SlurmConfFacts conf_facts(const SlurmConf& conf, const std::string& node_name,
                                const GpuConf& gpus) {
  node::SlurmConfFacts facts;
  facts.path = conf.path;
  facts.cluster_name = conf.cluster_name;
  facts.jobs_are_contained = conf.jobs_are_contained;
  facts.gpu_vendor = gpus.vendor;
  facts.gpu_files = gpus.files;
  facts.controllers = controllers_for_people(conf);
  if (const NodeLine* node = conf.find_node(node_name)) {
    facts.node_name = node->name;
    facts.gres = node->gres;
    facts.mem_spec_limit_mib = std::max<std::int64_t>(0, node->mem_spec_limit_mib);
    const std::int64_t threads = node->counts_cores() ? 1 : node->threads_per_core;
    facts.cpus = node->cpus;
    facts.core_spec_cpus =
        threads * (node->cpu_spec_list.empty() ? std::max<std::int64_t>(0, node->core_spec_count)
                                               : count_cores(node->cpu_spec_list, threads));
  }
  return facts;
}

}  // namespace slurmlet::slurm
