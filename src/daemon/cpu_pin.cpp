#include "daemon/cpu_pin.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/cpu_list.h"
#include "base/log.h"
#include "host/cpu_affinity.h"

namespace slurmlet::daemon {

std::optional<std::set<int>> cpus_set_apart(const std::set<int>& slurmd,
                                            const std::set<int>& online, bool off_spec) {
  std::set<int> others;
  std::set_difference(online.begin(), online.end(), slurmd.begin(), slurmd.end(),
                      std::inserter(others, others.end()));
  if (others.empty()) {
    return std::nullopt;
  }
  return off_spec ? others : slurmd;
}

CpuPin::CpuPin(std::string wanted, std::string proc_root, std::string sys_root)
    : wanted_(std::move(wanted)),
      proc_root_(std::move(proc_root)),
      sys_root_(std::move(sys_root)) {}

CpuPin::~CpuPin() { release(); }

Status CpuPin::start() {
  if (wanted_ == "none") {
    return {};
  }
  auto own = host::allowed_cpus("/proc", ::getpid());
  if (!own) {
    return own.error().with_prefix("cpuAffinity");
  }
  own_ = std::move(*own);
  if (wanted_ == "slurmd") {
    return {};
  }
  if (const Status bound = bind(*parse_cpu_list(wanted_)); !bound) {
    return Error{bound.error().code,
                 "cpuAffinity: " + bound.error().message +
                     "; choose among those in /sys/devices/system/cpu/online, or none"};
  }
  log::info("running on CPU " + wanted_ + " (cpuAffinity)");
  return {};
}

Status CpuPin::bind(const std::set<int>& cpus) {
  Status bound = host::bind_all_threads(cpus);
  if (bound) {
    bound_ = cpus;
  }
  return bound;
}

// The slurmd that is gone goes on counting: the cores stay set apart while it restarts.
void CpuPin::follow(const node::SlurmdFacts& slurmd, const node::SlurmConfFacts& conf) {
  if (wanted_ != "slurmd" || conf.path.empty() ||
      slurmd.liveness != node::SlurmdFacts::Liveness::kRunning || slurmd.pid <= 0) {
    return;
  }
  const auto cpus = host::allowed_cpus(proc_root_, slurmd.pid);
  if (!cpus && cpus.error().code == Code::kNotFound) {
    return;
  }
  const Status done = cpus ? take_over(*cpus, conf.slurmd_off_spec) : cpus.error();
  if (!done) {
    say(true, "cpuAffinity: " + done.error().message);
  }
}

Status CpuPin::take_over(const std::set<int>& slurmd, bool off_spec) {
  const auto online = TRY(host::online_cpus(sys_root_));
  const auto apart = cpus_set_apart(slurmd, online, off_spec);
  if (!apart) {
    release();
    say(false,
        "cpuAffinity is slurmd, but slurmd may use all CPUs (no CoreSpecCount or CpuSpecList "
        "confines it): slurmlet is not pinned");
    return {};
  }
  if (*apart != bound_) {
    TRY(bind(*apart));
    say(false, "running on CPU " + cpu_list_text(bound_) + ", set apart by slurmd (cpuAffinity)");
  }
  return {};
}

void CpuPin::release() {
  if (bound_.empty()) {
    return;
  }
  bound_.clear();
  if (const Status freed = host::bind_all_threads(own_); !freed) {
    say(true, "cpuAffinity: " + freed.error().message);
  }
}

void CpuPin::say(bool warning, const std::string& line) {
  if (std::exchange(said_, line) != line) {
    (warning ? log::warning : log::info)(line);
  }
}

}  // namespace slurmlet::daemon
