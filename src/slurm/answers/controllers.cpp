#include "slurm/answers/controllers.h"

#include "base/text.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {

CommandSpec ping_query(const ClientSettings& settings) {
  return slurm_command(settings, {"scontrol", "ping"});
}

// "Slurmctld(primary) at ctl1 is UP". Its exit code says only whether any is UP.
Result<std::vector<node::Controller>> read_ping(const CommandOutput& output) {
  constexpr std::string_view kAt = " at ", kIs = " is ";
  std::vector<node::Controller> out;
  for (const std::string_view line : split(output.out, '\n')) {
    const auto at = line.find(kAt);
    const auto is = line.rfind(kIs);
    if (!line.starts_with("Slurmctld(") || at == line.npos || is == line.npos || is <= at) {
      continue;
    }
    const auto state = trim(line.substr(is + kIs.size()));
    if (state != "UP" && state != "DOWN") {
      return Error{Code::kInvalid, "scontrol ping answered: " + excerpt(line)};
    }
    out.push_back({std::string{line.substr(at + kAt.size(), is - at - kAt.size())}, state == "UP"});
  }
  if (out.empty() || output.timed_out || output.signal != 0 || output.too_long) {
    const auto known = known_failure(output.err);
    return Error{Code::kUnavailable,
                 known ? known->detail : "scontrol ping failed: " + excerpt(output.err)};
  }
  return out;
}

CommandSpec takeover_command(const ClientSettings& settings, std::size_t index) {
  return slurm_command(settings, {"scontrol", "takeover", std::to_string(index)});
}

}  // namespace slurmlet::slurm
