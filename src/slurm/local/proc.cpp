#include "slurm/local/proc.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

std::string entry(const std::string& proc, int pid, const char* name) {
  return proc + "/" + std::to_string(pid) + "/" + name;
}

std::vector<std::string> null_separated(const std::string& path) {
  const auto content = read_file(path);
  if (!content || content->empty()) {
    return {};
  }
  std::string_view text = *content;
  while (text.ends_with('\0')) {
    text.remove_suffix(1);
  }
  std::vector<std::string> parts;
  for (const auto part : split(text, '\0')) {
    parts.emplace_back(part);
  }
  return parts;
}

// The value behind `key` ("Uid:", which no name of a process in the first line can hold at the
// beginning of a line); "" when unknown.
std::string status_value(const std::string& proc, int pid, std::string_view key) {
  const auto content = read_file(entry(proc, pid, "status"));
  return std::string{value_behind(key, content ? std::string_view{*content} : "")};
}

}  // namespace

std::string process_name(const std::string& proc, int pid) {
  return read_trimmed(entry(proc, pid, "comm"));
}

std::optional<ProcessStat> process_stat(const std::string& proc, int pid) {
  const auto content = read_file(entry(proc, pid, "stat"));
  if (!content) {
    return std::nullopt;
  }
  // The name in parentheses may itself hold spaces and parentheses: fields count from the last one.
  const auto close = content->rfind(')');
  if (close == std::string::npos) {
    return std::nullopt;
  }
  const auto fields = split(trim(std::string_view{*content}.substr(close + 1)), ' ');
  constexpr std::size_t kState = 0;       // field 3 of proc(5)
  constexpr std::size_t kParent = 1;      // field 4
  constexpr std::size_t kStartTime = 19;  // field 22
  if (fields.size() <= kStartTime || fields[kState].empty()) {
    return std::nullopt;
  }
  const auto parent = parse_int<int>(fields[kParent]);
  const auto start_time = parse_int<std::uint64_t>(fields[kStartTime]);
  if (!parent || !start_time) {
    return std::nullopt;
  }
  return ProcessStat{fields[kState].front(), *parent, *start_time};
}

std::vector<std::string> process_arguments(const std::string& proc, int pid) {
  return null_separated(entry(proc, pid, "cmdline"));
}

std::optional<std::string> process_environment(const std::string& proc, int pid,
                                               const std::string& name) {
  const std::string prefix = name + "=";
  for (const auto& variable : null_separated(entry(proc, pid, "environ"))) {
    if (variable.starts_with(prefix)) {
      return variable.substr(prefix.size());
    }
  }
  return std::nullopt;
}

bool process_environment_readable(const std::string& proc, int pid) {
  return static_cast<bool>(read_file(entry(proc, pid, "environ")));
}

std::optional<ProcessOwner> process_owner(const std::string& proc, int pid) {
  const std::string users = status_value(proc, pid, "Uid:");
  const std::string groups = status_value(proc, pid, "Gid:");
  const auto uids = split(users, '\t');
  const auto gid = parse_int<gid_t>(split(groups, '\t').front());
  ProcessOwner owner;
  if (uids.size() != owner.uids.size() || !gid) {
    return std::nullopt;
  }
  owner.real_gid = *gid;
  for (std::size_t i = 0; i < uids.size(); ++i) {
    const auto uid = parse_int<uid_t>(uids[i]);
    if (!uid) {
      return std::nullopt;
    }
    owner.uids[i] = *uid;
  }
  return owner;
}

bool was_started_by(const std::string& proc, int pid, const TrustedUsers& users) {
  const auto owner = process_owner(proc, pid);
  return owner && std::count(users.uids.begin(), users.uids.end(), owner->uids[0]) != 0 &&
         std::count(users.gids.begin(), users.gids.end(), owner->real_gid) != 0;
}

std::vector<std::string> process_cgroups(const std::string& proc, int pid) {
  std::vector<std::string> paths;
  const std::string content = read_trimmed(entry(proc, pid, "cgroup"));
  for (const auto line : split(content, '\n')) {  // "4:memory:/path", "0::/path"
    const auto path = line.find(":/");
    if (path != std::string_view::npos) {
      paths.emplace_back(line.substr(path + 1));
    }
  }
  return paths;
}

Result<std::vector<int>> process_ids(const std::string& proc) {
  const auto names = TRY(list_directory(proc));
  std::vector<int> pids;
  for (const auto& name : names) {
    if (const auto pid = parse_int<int>(name); pid && *pid > 0) {
      pids.push_back(*pid);
    }
  }
  return pids;
}

}  // namespace slurmlet::slurm
