#include "host/cpu_list.h"

#include "base/text.h"

namespace slurmlet::host {

std::optional<std::int64_t> count_cpus(std::string_view list) {
  std::int64_t count = 0;
  for (const std::string_view part : split(trim(list), ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_int<std::int32_t>(ends.front());
    const auto last = parse_int<std::int32_t>(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first) {
      return std::nullopt;
    }
    count += std::int64_t{*last} - *first + 1;
  }
  return count;
}

}  // namespace slurmlet::host
