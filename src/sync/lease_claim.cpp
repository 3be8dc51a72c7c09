#include "sync/lease_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slurmlet::sync {
namespace {

using std::chrono::seconds;

// Enough to see whether a Lease's holder runs; a usual Lease needs less.
constexpr std::chrono::minutes kLongWait{5};

}  // namespace

LeaseClaim::LeaseClaim(kube::LeaseApi& api, std::string holder_identity, Random random,
                       LeaseLink& link)
    : api_(api),
      holder_identity_(std::move(holder_identity)),
      random_(std::move(random)),
      link_(link) {}

Result<std::optional<LeaseClaim::Pause>> LeaseClaim::take(const std::string& node, Now now) {
  const auto lease = api_.get(node);
  if (!lease && lease.error().code != Code::kNotFound) {
    return lease.error();
  }
  const node::LeaseHolder held = lease ? kube::holder_of(*lease) : node::LeaseHolder{};
  node::HolderRuling ruling = node::judge_holder(held, holder_identity_, foreign_, now.steady);
  const bool is_free = ruling.verdict == node::HolderRuling::Verdict::kFree;
  foreign_ = std::move(ruling.sighting);
  if (!is_free) {
    return std::optional{pause(node, held, ruling, now.steady)};
  }
  if (node::is_foreign_holder(held.identity, holder_identity_)) {
    log::warning("Node " + node + " is taken over: its Lease was held by another machine, " +
                 held.identity + ", which has not renewed it since " + held.renew_time);
    link_.dead_holder.set(held);
  }
  last_logged_holder_.clear();
  taken_at_ = now.steady;
  return std::optional<Pause>{};
}

LeaseClaim::Pause LeaseClaim::pause(const std::string& node, const node::LeaseHolder& held,
                                    const node::HolderRuling& ruling, SteadyTime now) {
  const SteadyTime again = std::max(ruling.again, now);
  if (ruling.verdict == node::HolderRuling::Verdict::kWait) {
    const auto wait = std::chrono::duration_cast<seconds>(again - now);
    (wait > kLongWait ? log::warning : log::info)(
        fmt::format("the Lease of Node {} was renewed at {} by another machine, {}; waiting {} s "
                    "to see whether it is still running",
                    node, held.renew_time, held.identity, wait.count()));
    return {again, ""};
  }
  std::string message = node::held_by_another(node, held);
  if (std::exchange(last_logged_holder_, held.identity) != held.identity) {
    log::error(message);
  }
  // Spreads the retries of blocked machines of one name.
  return {again + part_of(node::holder_patience(held) / 5, random_), std::move(message)};
}

std::optional<std::string> LeaseClaim::lost() {
  const auto lease = link_.status.get();
  if (!lease || !lease->foreign_at || *lease->foreign_at < taken_at_) {
    return std::nullopt;
  }
  foreign_ = lease->foreign_holder;
  return lease->last_error;
}

}  // namespace slurmlet::sync
