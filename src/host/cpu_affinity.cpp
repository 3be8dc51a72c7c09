#include "host/cpu_affinity.h"

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "base/cpu_list.h"
#include "base/file.h"
#include "base/text.h"

namespace slurmlet::host {
namespace {

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

// The thread may have ended since it was listed.
Status bind_thread(int thread, std::size_t size, const cpu_set_t* mask, const std::string& what) {
  if (::sched_setaffinity(thread, size, mask) == 0 || errno == ESRCH) {
    return {};
  }
  const int error = errno;
  Error out = errno_error(error, what);
  if (error == EINVAL) {
    out = Error{Code::kInvalid, what + ": none of them is one that this process may use"};
  }
  return out;
}

}  // namespace

Result<std::set<int>> allowed_cpus(const std::string& proc_root, int pid) {
  const std::string path = proc_root + "/" + std::to_string(pid) + "/status";
  const auto status = TRY(read_file(path));
  if (auto cpus = parse_cpu_list(value_behind("Cpus_allowed_list:", status))) {
    return std::move(*cpus);
  }
  return Error{Code::kInternal, path + ": no Cpus_allowed_list"};
}

Result<std::set<int>> online_cpus(const std::string& sys_root) {
  const std::string path = sys_root + "/devices/system/cpu/online";
  const auto text = TRY(read_file(path));
  auto cpus = parse_cpu_list(text);
  return cpus ? Result<std::set<int>>{std::move(*cpus)}
              : Result<std::set<int>>{Error{Code::kInternal, path + ": no list of CPUs"}};
}

Status bind_all_threads(const std::set<int>& cpus) {
  const std::string what = "run on CPU " + cpu_list_text(cpus);
  if (cpus.empty() || *cpus.rbegin() >= kMaxCpus || *cpus.begin() < 0) {
    return Error{Code::kInvalid, what + ": no such CPUs"};
  }
  const int count = *cpus.rbegin() + 1;
  const std::unique_ptr<cpu_set_t, FreeCpuSet> mask{CPU_ALLOC(count)};
  const std::size_t size = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(size, mask.get());
  for (const int cpu : cpus) {
    CPU_SET_S(cpu, size, mask.get());
  }
  // Ourselves first: what is started from here on inherits it, so that one pass over the others
  // finds all that do not have it yet but for those that they start meanwhile; hence a second one.
  TRY(bind_thread(0, size, mask.get(), what));
  for (int pass = 0; pass < 2; ++pass) {
    const auto threads = TRY(list_directory("/proc/self/task"));
    for (const auto& name : threads) {
      const auto thread = parse_int<int>(name);
      if (!thread) {
        continue;
      }
      TRY(bind_thread(*thread, size, mask.get(), what));
    }
  }
  return {};
}

}  // namespace slurmlet::host
