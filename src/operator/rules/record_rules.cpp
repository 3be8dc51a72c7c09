#include "operator/rules/record_rules.h"

#include <algorithm>

#include "base/delay.h"
#include "base/text.h"

namespace slurmlet::op {
namespace {

bool out_of_service(const node::SlurmState& state) {
  return state.base == "DOWN" || state.base == "ERROR" || state.has("DRAIN") || state.has("FAIL") ||
         state.has("NOT_RESPONDING");
}

// Whether the states differ only by what jobs change.
bool jobs_only(const node::SlurmState& a, const node::SlurmState& b) {
  const auto busy = [](const std::string& base) {
    return base == "IDLE" || base == "MIXED" || base == "ALLOCATED";
  };
  auto flags_a = a.flags;
  auto flags_b = b.flags;
  flags_a.erase("COMPLETING");
  flags_b.erase("COMPLETING");
  return flags_a == flags_b && (a.base == b.base || (busy(a.base) && busy(b.base)));
}

// Failing dumps are published with each refresh, and their end at once.
bool is_due(const KubeNode& node, const DumpReport& dump, WallTime now) {
  const Published& shown = *node.record;
  const auto reported = std::max(shown.dumped_at, shown.failed_at);
  const auto known = std::max(dump.dumped_at, dump.failed_at);
  if (!shown.dumped_at || reported > known || (shown.failed_at && !dump.failed_at)) {
    return true;  // includes a record from the future
  }
  const Duration refresh =
      std::min(shown.refresh, dump.refresh);  // may change with the site's size
  const Duration sooner = SitePlace{node.name}.in(refresh / 5, "record:");
  return reported < known && now >= *reported + (refresh - sooner);
}

}  // namespace

SitePace site_pace(std::size_t nodes) {
  constexpr std::size_t kLarge = 5000;
  const auto size = static_cast<std::int64_t>(std::max(nodes, kLarge));
  return {std::min<Duration>(size * std::chrono::milliseconds{3}, std::chrono::minutes{1}),
          std::min<Duration>(size * std::chrono::milliseconds{60}, std::chrono::minutes{10})};
}

std::uint64_t record_hash(std::string_view cluster, std::string_view text) {
  return stable_hash(std::string{cluster} + "\n" + std::string{text});
}

Urgency rule_record(const KubeNode& node, const SlurmNode& slurm, const SlurmNode* before,
                    const DumpReport& dump, WallTime now) {
  if (!dump.dumped_at || node.deleting) {
    return Urgency::kNone;
  }
  if (node.record && node.record->hash == record_hash(dump.cluster, slurm.text)) {
    return is_due(node, dump, now) ? Urgency::kRoutine : Urgency::kNone;
  }
  if (before == nullptr || !jobs_only(before->state, slurm.state) ||
      before->reason != slurm.reason) {
    return out_of_service(slurm.state) ? Urgency::kOutOfService : Urgency::kState;
  }
  return Urgency::kRoutine;
}

}  // namespace slurmlet::op
