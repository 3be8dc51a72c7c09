#include "base/cpu_list.h"

#include "base/text.h"

namespace slurmlet {

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

std::string cpu_list_text(const std::set<int>& cpus) {
  std::string out;
  for (auto it = cpus.begin(); it != cpus.end();) {
    const int first = *it;
    int last = first;
    while (++it != cpus.end() && *it == last + 1) {
      ++last;
    }
    out += (out.empty() ? "" : ",") + std::to_string(first);
    if (last != first) {
      out += "-" + std::to_string(last);
    }
  }
  return out;
}

}  // namespace slurmlet
