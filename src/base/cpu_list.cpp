#include "base/cpu_list.h"

#include "base/text.h"

namespace slurmlet {

// More than any kernel is built for (CONFIG_NR_CPUS).
constexpr int kMaxCpus = 16384;

std::optional<std::set<int>> parse_cpu_list(std::string_view text) {
  std::set<int> cpus;
  for (const std::string_view part : split(trim(text), ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_int<int>(ends.front());
    const auto last = parse_int<int>(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last >= kMaxCpus) {
      return std::nullopt;
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.insert(cpu);
    }
  }
  return cpus;
}

}  // namespace slurmlet
