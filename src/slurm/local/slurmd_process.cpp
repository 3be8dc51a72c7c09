#include "slurm/local/slurmd_process.h"

#include <fmt/format.h>
#include <getopt.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/detached_task.h"
#include "base/text.h"
#include "slurm/local/proc.h"

namespace slurmlet::slurm {
namespace {

// This process, as `proc` numbers it; 0 = not known.
int own_pid(const std::string& proc) {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink(proc + "/self", ignored);
  return parse_int<int>(self.string()).value_or(0);
}

bool runs_as(const std::string& proc, int pid, const TrustedUsers& users) {
  const auto owner = process_owner(proc, pid);
  return owner && was_started_by(proc, pid, users) &&
         std::all_of(owner->uids.begin(), owner->uids.end(), [&](uid_t uid) {
           return std::count(users.uids.begin(), users.uids.end(), uid) != 0;
         });
}

// Nothing for all that is no living slurmd of those users: another program, one that has ended or
// not quite begun (no command line), and one that only prints something.
std::optional<SlurmdOptions> living_slurmd(const std::string& proc, int pid,
                                           const TrustedUsers& users) {
  if (process_name(proc, pid) != "slurmd" || !runs_as(proc, pid, users)) {
    return std::nullopt;
  }
  const auto stat = process_stat(proc, pid);
  if (!stat || stat->has_ended()) {
    return std::nullopt;
  }
  auto arguments = process_arguments(proc, pid);
  if (arguments.empty()) {
    return std::nullopt;
  }
  auto options = parse_slurmd_options(std::move(arguments));
  return options.prints_only ? std::nullopt : std::optional{std::move(options)};
}

bool name_fits(const SlurmdIdentity& identity, const SlurmdOptions& options) {
  std::string name = options.node_name;
  if (name.empty() && !options.future && !options.dynamic) {
    name = identity.unnamed;
  }
  return name.empty() || identity.node_name.empty() || name == identity.node_name;
}

std::string conf_of(const std::string& proc, int pid, const SlurmdOptions& options) {
  return options.conf_file.empty() ? process_environment(proc, pid, "SLURM_CONF").value_or("")
                                   : options.conf_file;
}

bool conf_fits(const std::string& proc, int pid, const SlurmdOptions& options,
               const SlurmdIdentity& identity, const TrustedUsers& users) {
  if (identity.conf.empty()) {
    return true;
  }
  std::string conf = conf_of(proc, pid, options);
  const bool is_by_default = conf.empty() && options.conf_server.empty() &&
                             process_environment_readable(proc, pid) &&
                             !process_environment(proc, pid, "SLURM_CONF_SERVER");
  if (is_by_default) {
    conf = identity.default_conf;
  }
  // The cache of a configless slurmd is reached by a link as well.
  return conf.empty() || same_trusted_file(conf, identity.conf, users);
}

// Whether this is the cgroup of slurmd's service, or the one below it that slurmd has made for
// itself
// ("slurmd", or "system" with CoreSpecCount). What lies in user.slice is a user's own doing.
bool is_unit_cgroup(std::string_view path) {
  auto parts = split(path, '/');
  if (parts.size() > 1 && (parts.back() == "slurmd" || parts.back() == "system")) {
    parts.pop_back();
  }
  const std::string_view name = parts.back();  // "slurmd@nid1.service", "slurmd-nid1.service"
  return name.starts_with("slurmd") && name.ends_with(".service") &&
         std::none_of(parts.begin(), parts.end(), [](std::string_view part) {
           return part == "user.slice" || part.ends_with(".scope");
         });
}

// cgroup v1 leaves a job's processes where slurmd is in systemd's hierarchy, and moves them in
// others.
bool is_job_cgroup(std::string_view path) {
  const auto parts = split(path, '/');
  return std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.starts_with("job_") || part.ends_with("slurmstepd.scope");
  });
}

bool in_slurmd_unit(const std::string& proc, int pid) {
  const auto paths = process_cgroups(proc, pid);
  return std::any_of(paths.begin(), paths.end(), is_unit_cgroup) &&
         std::none_of(paths.begin(), paths.end(), is_job_cgroup);
}

int pid_in(const std::string& file, const TrustedUsers& users) {
  const auto content = read_trusted_file(file, users);
  return content ? parse_int<int>(trim(*content)).value_or(0) : 0;
}

// The oldest of ours: a child between fork and exec looks like its parent.
void find_oldest(const SlurmdPlaces& places, const SlurmdIdentity& identity, FoundSlurmd& found,
                 const std::vector<int>& pids) {
  auto best_start = std::numeric_limits<std::uint64_t>::max();
  for (const int pid : pids) {
    if (!is_our_slurmd(places, identity, pid)) {
      continue;
    }
    if (!in_slurmd_unit(places.proc_root, pid) &&
        !named_by_pid_file(places.pid_pattern, pid, places.users)) {
      found.passed_over = fmt::format(
          "pid {} is not taken for slurmd: it is not in a unit slurmd*.service, and no "
          "SlurmdPidFile owned by root contains it",
          pid);
      continue;
    }
    const auto stat = process_stat(places.proc_root, pid);
    if (stat && stat->start_time < best_start) {
      found.pid = pid;
      best_start = stat->start_time;
    }
  }
}

}  // namespace

SlurmdOptions parse_slurmd_options(std::vector<std::string> arguments) {
  // Each has a value of its own: else a name that is cut too short to be unique would be one.
  constexpr int kConfServer = 256;
  static constexpr auto kLong =
      std::to_array<option>({{"authinfo", required_argument, nullptr, 257},
                             {"ca-cert-file", required_argument, nullptr, 258},
                             {"conf", required_argument, nullptr, 259},
                             {"conf-server", required_argument, nullptr, kConfServer},
                             {"extra", required_argument, nullptr, 260},
                             {"help", no_argument, nullptr, 'h'},
                             {"instance-id", required_argument, nullptr, 261},
                             {"instance-type", required_argument, nullptr, 262},
                             {"parameters", required_argument, nullptr, 264},  // since 26.05
                             {"systemd", no_argument, nullptr, 263},
                             {"version", no_argument, nullptr, 'V'},
                             {}});
  std::vector<char*> words;
  for (auto& argument : arguments) {
    words.push_back(argument.data());
  }
  words.push_back(nullptr);
  SlurmdOptions options;
  static std::mutex one_at_a_time;  // getopt_long() keeps its place in globals
  const std::scoped_lock lock{one_at_a_time};
  optind = opterr = 0;  // from the first word on, and without a message
  const int count = static_cast<int>(arguments.size());
  int found = 0;
  // "-": words that are no options do not end them. Letters that are not listed come as '?'.
  while ((found = getopt_long(count, words.data(), "-d:f:L:n:N:F::CGhVZ", kLong.data(), nullptr)) !=
         -1) {
    switch (found) {
      case 'N':
        options.node_name = optarg;
        break;
      case 'f':
        options.conf_file = optarg;
        break;
      case kConfServer:
        options.conf_server = optarg;
        break;
      case 'F':
        options.future = true;
        break;
      case 'Z':
        options.dynamic = true;
        break;
      default:
        options.prints_only =
            options.prints_only || found == 'C' || found == 'G' || found == 'h' || found == 'V';
    }
  }
  return options;
}

Result<std::vector<SlurmdSeen>> running_slurmds(const std::string& proc_root,
                                                const TrustedUsers& users) {
  auto all = TRY(process_ids(proc_root));
  std::map<int, SlurmdOptions> found;
  for (const int pid : all) {
    if (auto options = living_slurmd(proc_root, pid, users)) {
      found.emplace(pid, *std::move(options));
    }
  }
  std::vector<SlurmdSeen> seen;
  const int self = own_pid(proc_root);
  for (const auto& [pid, options] : found) {
    const auto stat = process_stat(proc_root, pid);
    if (!stat || stat->parent == self || found.contains(stat->parent)) {
      continue;
    }
    std::string server = options.conf_server;
    if (server.empty()) {
      server = process_environment(proc_root, pid, "SLURM_CONF_SERVER").value_or("");
    }
    const bool known = !options.conf_file.empty() || process_environment_readable(proc_root, pid);
    seen.push_back({pid, options, conf_of(proc_root, pid, options), std::move(server), known,
                    in_slurmd_unit(proc_root, pid)});
  }
  return seen;
}

bool named_by_pid_file(const std::string& pattern, int pid, const TrustedUsers& users) {
  if (pattern.empty()) {
    return false;
  }
  std::string any;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const bool placeholder = pattern[i] == '%' && i + 1 < pattern.size();
    any += placeholder ? '*' : pattern[i];
    i += placeholder ? 1 : 0;
  }
  touches_file(any);
  glob_t files{};
  const bool some = ::glob(any.c_str(), GLOB_NOSORT, nullptr, &files) == 0;
  bool named = false;
  for (std::size_t i = 0; some && !named && i < files.gl_pathc; ++i) {
    named = pid_in(files.gl_pathv[i], users) == pid;
  }
  ::globfree(&files);
  return named;
}

bool is_our_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity, int pid) {
  const auto options = living_slurmd(places.proc_root, pid, places.users);
  return options && name_fits(identity, *options) &&
         conf_fits(places.proc_root, pid, *options, identity, places.users);
}

FoundSlurmd find_slurmd(const SlurmdPlaces& places, const SlurmdIdentity& identity) {
  FoundSlurmd found;
  if (const int pid = places.pid_file.empty() ? 0 : pid_in(places.pid_file, places.users);
      pid > 0) {
    // The file is named by our slurm.conf, so the process need not prove that it reads the same.
    if (const auto options = living_slurmd(places.proc_root, pid, places.users);
        options && name_fits(identity, *options)) {
      found.pid = pid;
      return found;
    }
    found.hidden_pid = process_name(places.proc_root, pid).empty() ? pid : 0;
  }
  const auto all = process_ids(places.proc_root);
  if (!all) {
    found.error = all.error().message;
    return found;
  }
  find_oldest(places, identity, found, *all);
  return found;
}

}  // namespace slurmlet::slurm
