#include "slurm/local/slurmd_process.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/side_call.h"
#include "base/text.h"
#include "base/try.h"
#include "slurm/local/proc.h"

namespace slurmlet::slurm {
namespace {

// A word of the command line at a time, as getopt_long(3) takes them: the argument of an option
// stands behind it or in the next word, long names may be cut short where they stay unique.
class OptionReader {
 public:
  explicit OptionReader(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  SlurmdOptions read() {
    for (at_ = 1; at_ < arguments_.size(); ++at_) {
      const std::string_view word = arguments_[at_];
      if (word == "--") {
        break;
      }
      if (word.starts_with("--")) {
        take_long(word.substr(2));
      } else if (word.starts_with('-')) {
        take_letters(word.substr(1));
      }
    }
    return options_;
  }

 private:
  std::string next_word() { return at_ + 1 < arguments_.size() ? arguments_[++at_] : ""; }

  void take_letters(std::string_view letters) {
    constexpr std::string_view kWithValue = "dfLnN";
    constexpr std::string_view kPrintsOnly = "VCGh";
    for (std::size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] == 'F') {  // its value, if any, is the rest of the word
        options_.future = true;
        return;
      }
      options_.dynamic = options_.dynamic || letters[i] == 'Z';
      options_.prints_only =
          options_.prints_only || kPrintsOnly.find(letters[i]) != std::string_view::npos;
      if (kWithValue.find(letters[i]) == std::string_view::npos) {
        continue;
      }
      const auto rest = letters.substr(i + 1);
      std::string value = rest.empty() ? next_word() : std::string{rest};
      if (letters[i] == 'N') {
        options_.node_name = std::move(value);
      } else if (letters[i] == 'f') {
        options_.conf_file = std::move(value);
      }
      return;
    }
  }

  struct LongOption {
    std::string_view name;
    bool has_value;
  };

  // Nothing for an unknown name, or one that is cut too short: slurmd ends then.
  static const LongOption* find_long(std::string_view name) {
    static constexpr auto kLong = std::to_array<LongOption>({{"authinfo", true},
                                                             {"ca-cert-file", true},
                                                             {"conf", true},
                                                             {"conf-server", true},
                                                             {"extra", true},
                                                             {"help", false},
                                                             {"instance-id", true},
                                                             {"instance-type", true},
                                                             {"systemd", false},
                                                             {"version", false}});
    const LongOption* meant = nullptr;
    for (const auto& option : kLong) {
      if (option.name == name) {
        return &option;
      }
      if (!name.empty() && option.name.starts_with(name)) {
        if (meant != nullptr) {
          return nullptr;
        }
        meant = &option;
      }
    }
    return meant;
  }

  void take_long(std::string_view text) {
    const auto equals = text.find('=');
    const LongOption* option = find_long(text.substr(0, equals));
    if (option == nullptr) {
      return;
    }
    if (!option->has_value) {
      options_.prints_only =
          options_.prints_only || option->name == "help" || option->name == "version";
      return;
    }
    std::string value =
        equals == std::string_view::npos ? next_word() : std::string{text.substr(equals + 1)};
    if (option->name == "conf-server") {
      options_.conf_server = std::move(value);
    }
  }

  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  SlurmdOptions options_;
};

// This process, as `proc` numbers it; 0 = not told.
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
  const auto arguments = process_arguments(proc, pid);
  if (arguments.empty()) {
    return std::nullopt;
  }
  auto options = parse_slurmd_options(arguments);
  return options.prints_only ? std::nullopt : std::optional{std::move(options)};
}

bool name_fits(const SlurmdIdentity& identity, const SlurmdOptions& options) {
  const std::string& name = options.node_name;
  return name.empty() || identity.node_name.empty() || name == identity.node_name;
}

std::string conf_of(const std::string& proc, int pid, const SlurmdOptions& options) {
  return options.conf_file.empty() ? process_environment(proc, pid, "SLURM_CONF").value_or("")
                                   : options.conf_file;
}

// "slurmd.service", "slurmd@nid1.service", "slurmd-nid1.service"
bool is_slurmd_unit(std::string_view name) {
  return name.starts_with("slurmd") && name.ends_with(".service");
}

// Whether this is the cgroup of slurmd's service, or the one below it that slurmd has made for
// itself
// ("slurmd", or "system" with CoreSpecCount). What lies in user.slice is a user's own doing.
bool is_unit_cgroup(std::string_view path) {
  auto parts = split(path, '/');
  if (parts.size() > 1 && (parts.back() == "slurmd" || parts.back() == "system")) {
    parts.pop_back();
  }
  return is_slurmd_unit(parts.back()) &&
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

SlurmdOptions parse_slurmd_options(const std::vector<std::string>& arguments) {
  return OptionReader{arguments}.read();
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
    seen.push_back({pid, options, conf_of(proc_root, pid, options), std::move(server), known, "",
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
  if (!options || !name_fits(identity, *options)) {
    return false;
  }
  const std::string conf = conf_of(places.proc_root, pid, *options);
  // The cache of a configless slurmd is reached by a link as well.
  return conf.empty() || identity.conf.empty() ||
         same_trusted_file(conf, identity.conf, places.users);
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
