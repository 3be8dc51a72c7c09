#include "world.h"

#include <algorithm>

namespace slurmlet::site {
namespace {

constexpr std::array<std::string_view, kCounts> kNames{
    "lease_get",     "lease_post",  "lease_put", "node_get",   "node_post",     "node_patch",
    "node_list",     "node_watch",  "pod_list",  "pod_watch",  "event",         "api_refused",
    "watch_refused", "watch_event", "slurm_rpc", "slurm_dump", "slurm_refused", "record_written"};

// A full hour, so that phases of the wall clock begin with the run. 2026-11-20T14:00:00Z.
constexpr std::chrono::seconds kWallBegin{1795183200};

}  // namespace

std::string_view name_of(Count what) { return kNames.at(static_cast<std::size_t>(what)); }

const Outage* outage_at(const std::vector<Outage>& outages, SteadyTime time) {
  const auto found = std::find_if(outages.begin(), outages.end(), [time](const Outage& outage) {
    return outage.from <= time && time < outage.to;
  });
  return found == outages.end() ? nullptr : &*found;
}

World::World(std::uint32_t seed)
    : begin_(std::chrono::hours{1}),
      now_(begin_),
      engine_(std::make_unique<std::minstd_rand>(seed)) {}

WallTime World::wall(SteadyTime time) const {
  return WallTime{kWallBegin} + std::chrono::duration_cast<WallTime::duration>(time - begin_);
}

Duration World::chance(Duration range) const {
  return Duration{static_cast<Duration::rep>(static_cast<double>(range.count()) * random()())};
}

void World::wake(Actor& actor, SteadyTime at) {
  if (at != kNever) {
    heap_.push({std::max(at, begin_), ++order_, &actor, false});
  }
}

void World::step(const Entry& entry) {
  Actor& actor = *entry.actor;
  if (entry.own && actor.next_ != entry.time) {
    return;
  }
  if (entry.time < actor.busy_until_) {
    wake(actor, actor.busy_until_);
    return;
  }
  now_ = entry.time;
  actor.next_ = kNever;
  const SteadyTime next = actor.step();
  actor.busy_until_ = now_;
  if (next != kNever) {
    actor.next_ = std::max(next, now_);
    heap_.push({actor.next_, ++order_, &actor, true});
  }
}

void World::run(SteadyTime until) {
  while (true) {
    const SteadyTime action = actions_.empty() ? kNever : actions_.begin()->first;
    const SteadyTime entry = heap_.empty() ? kNever : heap_.top().time;
    if (std::min(action, entry) >= until) {
      break;
    }
    if (action <= entry) {
      now_ = action;
      const auto act = actions_.extract(actions_.begin());
      act.mapped()();
    } else {
      const Entry next = heap_.top();
      heap_.pop();
      step(next);
    }
  }
  now_ = until;
}

void World::count_at(SteadyTime time, Count what, std::uint32_t times) {
  const auto second = static_cast<std::size_t>((time - begin_) / std::chrono::seconds{1});
  if (second >= seconds_.size()) {
    seconds_.resize(second + 1);
  }
  seconds_[second][static_cast<std::size_t>(what)] += times;
}

}  // namespace slurmlet::site
