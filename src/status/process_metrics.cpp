#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "status/metrics.h"

// The names and meanings of Prometheus' client libraries
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics).

namespace slurmlet::status {
namespace {

using podapi::counter;
using podapi::gauge;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

// User and system time of `who` (getrusage(2)) in seconds.
double cpu_seconds(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// The fields of proc(5) stat behind the command's ")", the state being the first; empty on failure.
std::vector<std::string> stat_fields() {
  const std::string text = read_trimmed("/proc/self/stat");
  const auto end = text.rfind(')');
  std::vector<std::string> out;
  if (end != std::string::npos && end + 2 < text.size()) {
    for (const auto field : split(std::string_view{text}.substr(end + 2), ' ')) {
      out.emplace_back(field);
    }
  }
  return out;
}

// Seconds since the epoch at which the machine booted.
std::optional<double> boot_time() {
  const std::string text = read_trimmed("/proc/stat");
  for (const auto line : split(text, '\n')) {
    if (line.starts_with("btime ")) {
      if (const auto value = parse_int<std::int64_t>(trim(line.substr(6)))) {
        return static_cast<double>(*value);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void add_process_metrics(std::vector<podapi::MetricFamily>& out) {
  out.push_back(counter("process_cpu_seconds_total", "CPU time used by slurmlet itself.",
                        cpu_seconds(RUSAGE_SELF)));
  out.push_back(counter("slurmlet_children_cpu_seconds_total",
                        "CPU time used by terminated child processes (sinfo, slurmd -V).",
                        cpu_seconds(RUSAGE_CHILDREN)));
  const auto fields = stat_fields();
  const auto field = [&fields](std::size_t index) -> std::optional<double> {
    const auto value =
        index < fields.size() ? parse_int<std::int64_t>(fields[index]) : std::nullopt;
    return value ? std::optional{static_cast<double>(*value)} : std::nullopt;
  };
  // proc(5) counts from 1 with the state as 3: 20 num_threads, 22 starttime, 23 vsize, 24 rss.
  const auto add = [&out](const char* name, const char* help, std::optional<double> value) {
    if (value) {
      out.push_back(gauge(name, help, *value));
    }
  };
  add("process_threads", "Threads of slurmlet.", field(17));
  add("process_virtual_memory_bytes", "Virtual memory size.", field(20));
  if (const auto pages = field(21)) {
    add("process_resident_memory_bytes", "Resident memory size.",
        *pages * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  }
  const auto started = field(19);
  const auto booted = boot_time();
  if (started && booted) {
    add("process_start_time_seconds", "Start time since the epoch.",
        *booted + *started / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  }
  if (const auto open = list_directory("/proc/self/fd")) {
    add("process_open_fds", "Open file descriptors.", static_cast<double>(open->size()));
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add("process_max_fds", "Limit of open file descriptors.", static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace slurmlet::status
