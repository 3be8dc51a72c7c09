#include "slurm/local/local_jobs.h"

#include <algorithm>

#include "base/cpu_list.h"
#include "base/file.h"
#include "base/text.h"
#include "slurm/local/proc.h"

namespace slurmlet::slurm {
namespace {

// After this many searches a socket without a process counts as left over from a crash, and is
// ignored.
constexpr int kMaxSearches = 3;

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string title_of(const std::string& proc, int pid) {
  return join(process_arguments(proc, pid), " ");
}

bool has_ended(const std::string& proc, int pid) {
  const auto stat = process_stat(proc, pid);
  return !stat || stat->has_ended();
}

}  // namespace

std::optional<StepSocket> parse_step_socket(std::string_view name) {
  const auto underscore = name.rfind('_');
  if (underscore == std::string_view::npos || underscore == 0) {
    return std::nullopt;
  }
  const auto ids = name.substr(underscore + 1);
  const auto parts = split(ids, '.');
  if (parts.size() < 2 || parts.size() > 3 ||
      !std::all_of(parts.begin(), parts.end(), all_digits)) {
    return std::nullopt;
  }
  const auto job = parse_int<std::uint32_t>(parts[0]);
  if (!job) {
    return std::nullopt;
  }
  return StepSocket{std::string{name.substr(0, underscore)}, *job,
                    std::string{ids.substr(parts[0].size() + 1)}};
}

bool is_job_entry(std::string_view name) {
  return parse_step_socket(name).has_value() ||
         (name.starts_with("job") && all_digits(name.substr(3)));
}

std::optional<std::uint32_t> job_of_title(std::string_view title) {
  constexpr std::string_view kPrefix = "slurmstepd: [";
  if (!title.starts_with(kPrefix)) {
    return std::nullopt;
  }
  title.remove_prefix(kPrefix.size());
  return parse_int<std::uint32_t>(title.substr(0, title.find_first_not_of("0123456789")));
}

std::optional<node::LocalJobs> LocalJobsReader::read(
    const Result<std::vector<std::string>>& entries) {
  if (!entries) {
    return std::nullopt;
  }
  auto sockets = sockets_among(*entries);
  update_jobs(sockets);
  sockets_ = std::move(sockets);
  node::LocalJobs out;
  std::set<int> cpus;
  std::int64_t memory = 0;
  bool cpus_known = true;
  bool memory_known = true;
  for (const auto& [job, processes] : jobs_) {
    const bool seen = !processes.pids.empty();
    if (!seen && !may_be_hidden(processes)) {
      continue;
    }
    out.job_ids.push_back(job);
    const auto cgroups =
        seen && (cpus_known || memory_known) ? cgroup_directories(job) : std::vector<std::string>{};
    auto own_cpus = cpus_known ? cpuset_of(cgroups) : std::set<int>{};
    cpus_known = cpus_known && !own_cpus.empty();
    cpus.merge(own_cpus);
    const auto limit = memory_known ? memory_limit_of(cgroups) : std::nullopt;
    memory_known = memory_known && limit;
    memory += limit.value_or(0);
  }
  out.jobs = static_cast<int>(out.job_ids.size());
  if (cpus_known && (cpus.empty() || places_.threads_per_cpu)) {
    const std::int64_t threads = places_.threads_per_cpu.value_or(1);
    out.allocated_cpus = (static_cast<std::int64_t>(cpus.size()) + threads - 1) / threads;
  }
  if (memory_known) {
    out.allocated_memory_bytes = memory;
  }
  return out;
}

std::map<std::string, LocalJobsReader::Job> LocalJobsReader::sockets_among(
    const std::vector<std::string>& names) const {
  std::map<std::string, Job> sockets;
  for (const auto& name : names) {
    const auto socket = parse_step_socket(name);
    if (socket && (places_.node_name.empty() || socket->node == places_.node_name)) {
      sockets.emplace(name, socket->job);
    }
  }
  return sockets;
}

void LocalJobsReader::update_jobs(const std::map<std::string, Job>& sockets) {
  std::map<Job, Processes> jobs;
  bool search = false;
  for (const auto& [name, job] : sockets) {
    const auto [entry, added] = jobs.try_emplace(job);
    if (const auto known = jobs_.find(job); added && known != jobs_.end()) {
      entry->second = std::move(known->second);
    }
    if (!sockets_.contains(name)) {
      entry->second.searches = 0;
      search = true;
    }
  }
  jobs_ = std::move(jobs);
  for (auto& [job, processes] : jobs_) {
    std::erase_if(processes.pids, [&, id = job](int pid) { return !is_step_of(pid, id); });
    search = search || (processes.pids.empty() && processes.searches < kMaxSearches);
  }
  if (search) {
    search_processes();
  }
}

// Of a job without a process that we see.
bool LocalJobsReader::may_be_hidden(const Processes& processes) const {
  return processes_hidden_ || (step_starting_ && processes.searches < kMaxSearches);
}

bool LocalJobsReader::is_step_of(int pid, Job job) const {
  return was_started_by(places_.proc_root, pid, places_.users) &&
         job_of_title(title_of(places_.proc_root, pid)) == job;
}

// Reads all processes.
void LocalJobsReader::search_processes() {
  const auto pids = process_ids(places_.proc_root);
  // With hidepid and without root, not even process 1 is shown.
  processes_hidden_ = !pids || process_name(places_.proc_root, 1).empty();
  step_starting_ = false;
  for (auto& [job, processes] : jobs_) {
    processes.pids.clear();
  }
  for (const int pid : pids ? *pids : std::vector<int>{}) {
    if (process_name(places_.proc_root, pid) != "slurmstepd" ||
        !was_started_by(places_.proc_root, pid, places_.users) ||
        has_ended(places_.proc_root, pid)) {
      continue;
    }
    const auto job = job_of_title(title_of(places_.proc_root, pid));
    if (!job) {
      step_starting_ = true;
    } else if (const auto entry = jobs_.find(*job); entry != jobs_.end()) {
      entry->second.pids.push_back(pid);
    }
  }
  for (auto& [job, processes] : jobs_) {
    processes.searches = processes.pids.empty() ? processes.searches + 1 : 0;
  }
}

// Slurm sets what a job was given as the soft limit of its cgroup, and AllowedRAMSpace per cent of
// it as the limit (ConstrainRAMSpace of cgroup.conf(5)).
// Nothing without a limit: "max" in cgroup/v2, a number near 2⁶³ in cgroup/v1.
std::optional<std::int64_t> LocalJobsReader::memory_limit_of(
    const std::vector<std::string>& cgroups) const {
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;
  constexpr std::string_view kCpusets = "/cpuset/";
  for (std::string directory : cgroups) {
    const auto cpusets = directory.find(kCpusets, places_.cgroup_root.size());
    const bool v1 = cpusets == places_.cgroup_root.size();
    if (v1) {
      directory.replace(cpusets, kCpusets.size(), "/memory/");
    }
    for (const char* file : {v1 ? "/memory.soft_limit_in_bytes" : "/memory.high",
                             v1 ? "/memory.limit_in_bytes" : "/memory.max"}) {
      const auto limit = parse_int<std::int64_t>(read_trimmed(directory + file));
      if (limit && *limit < kNoLimit) {
        return limit;
      }
    }
  }
  return std::nullopt;
}

// The job's directory. cgroup/v2: above that of any of its steps, in which a slurmstepd is
// ("job_2/step_0", since 26.05 "sCCDM8FWXPC7J00/step_0"). cgroup/v1: in the cpuset hierarchy, with
// the node's name where several slurmd share a machine.
std::vector<std::string> LocalJobsReader::cgroup_directories(Job job) const {
  std::vector<std::string> directories;
  for (const int pid : jobs_.at(job).pids) {
    if (!directories.empty()) {
      break;
    }
    for (const std::string& path : process_cgroups(places_.proc_root, pid)) {
      if (const auto step = path.find("/step_"); step != std::string::npos) {
        directories.push_back(places_.cgroup_root + path.substr(0, step));
      }
    }
  }
  const std::string job_directory = "/job_" + std::to_string(job);
  for (const std::string& base : {"slurm_" + places_.node_name, std::string{"slurm"}}) {
    const std::string top = places_.cgroup_root + "/cpuset/" + base;
    const auto users = list_directory(top);
    for (const auto& user : users ? *users : std::vector<std::string>{}) {
      if (user.starts_with("uid_")) {
        directories.push_back(top + "/" + user + job_directory);
      }
    }
  }
  return directories;
}

std::set<int> LocalJobsReader::cpuset_of(const std::vector<std::string>& cgroups) {
  for (const auto& directory : cgroups) {
    if (auto cpus = parse_cpu_list(read_trimmed(directory + "/cpuset.cpus"))) {
      return *std::move(cpus);
    }
  }
  return {};
}

}  // namespace slurmlet::slurm
