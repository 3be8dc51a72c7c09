#include "slurm/answers/state.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

constexpr std::string_view kBases = "UNKNOWN DOWN IDLE ALLOCATED ERROR MIXED FUTURE";

// slurm/slurm.h, NODE_STATE_*, of 22.05 … 25.11. "?" stands for flags that the printing program
// does not know.
constexpr std::string_view kFlags =
    "BLOCKED CLOUD COMPLETING DRAIN DYNAMIC_FUTURE DYNAMIC_NORM EXTERNAL FAIL INVALID_REG "
    "MAINTENANCE NOT_RESPONDING PERFCTRS PLANNED POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN "
    "POWER_DRAIN POWER_UP REBOOT_CANCEL REBOOT_ISSUED REBOOT_REQUESTED RESERVED RESUME UNDRAIN ?";

}  // namespace

node::SlurmState parse_state(std::string_view text) {
  node::SlurmState state;
  const std::string upper = to_upper(trim(text));
  bool is_known = true;
  for (const auto word : split(upper, '+')) {
    if (word.empty()) {
      continue;
    }
    if (has_word(kFlags, word)) {
      state.flags.emplace(word);
    } else if (!has_word(kBases, word)) {
      state.flags.emplace(word);
      is_known = false;
    } else if (state.base.empty()) {
      state.base = word;
    } else if (state.base != word) {
      state.flags.emplace(word);
    }
  }
  if (state.base.empty() && !state.flags.empty() && is_known) {
    state.base = "UNKNOWN";
  }
  return state;
}

bool is_state(std::string_view text) {
  const std::string upper = to_upper(trim(text));
  const auto words = split(upper, '+');
  return std::ranges::all_of(words, [](std::string_view word) {
    return has_word(kBases, word) || has_word(kFlags, word);
  });
}

}  // namespace slurmlet::slurm
