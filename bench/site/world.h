#pragma once

// Simulated time for a whole site: one heap of wake-ups. Everything that acts has an Actor; a call
// that takes time is made by elapse(), during which the caller is busy and the others go on.
// Requests are counted by the second they reach the other side.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"

namespace slurmlet::site {

// What is counted: requests to the API server by verb and resource, then what slurmctld gets.
enum class Count {
  kLeaseGet,
  kLeasePost,
  kLeasePut,
  kNodeGet,
  kNodePost,
  kNodePatch,
  kNodeList,
  kNodeWatch,
  kPodList,
  kPodWatch,
  kEvent,
  kApiRefused,  // any of these but watches that the API server, being away, did not answer
  kWatchRefused,
  kWatchEvent,     // from the API server, no request
  kSlurmRpc,       // answered by slurmctld
  kSlurmDump,      // of these, by slurmlet-operator
  kSlurmRefused,   // connections that slurmctld, being away, did not answer
  kRecordWritten,  // by slurmlet-operator
  kEnd
};
inline constexpr std::size_t kCounts = static_cast<std::size_t>(Count::kEnd);
std::string_view name_of(Count what);

using Row = std::array<std::uint32_t, kCounts>;

// The other side is away from `from` to before `to`.
struct Outage {
  SteadyTime from, to;
  bool hangs = false;  // it does not answer; else it refuses connections
};

// The one that `time` falls in; nullptr while the other side is there.
const Outage* outage_at(const std::vector<Outage>& outages, SteadyTime time);

class Actor {
 public:
  virtual ~Actor() = default;
  // Does what is due; returns when to come again. World::now() is the time.
  virtual SteadyTime step() = 0;

 private:
  friend class World;
  SteadyTime next_ = kNever;  // by its own word
  SteadyTime busy_until_{};
};

class World {
 public:
  explicit World(std::uint32_t seed);

  // Of the actor that acts, the calls that it has made included.
  Now now() const { return {now_, wall(now_)}; }
  WallTime wall(SteadyTime time) const;
  // Since the beginning, and back.
  SteadyTime time_of(Duration since_begin) const { return begin_ + since_begin; }
  Duration since_begin(SteadyTime time) const { return time - begin_; }

  void elapse(Duration time) { now_ += time; }
  // A step more for this actor, which must live as long as the world runs.
  void wake(Actor& actor, SteadyTime at);
  void at(SteadyTime time, std::function<void()> action) { actions_.emplace(time, action); }
  void run(SteadyTime until);

  void count(Count what, std::uint32_t times = 1) { count_at(now_, what, times); }
  void count_at(SteadyTime time, Count what, std::uint32_t times = 1);
  const std::vector<Row>& seconds() const { return seconds_; }

  // All of one generator, so that a run can be repeated.
  Random random() const {
    return [engine = engine_.get()] {
      return std::uniform_real_distribution<double>{0.0, 1.0}(*engine);
    };
  }
  // Uniform in [0, range).
  Duration chance(Duration range) const;

 private:
  struct Entry {
    SteadyTime time;
    std::uint64_t order;
    Actor* actor;
    bool own;  // by its own word, and void where that has changed; else somebody woke it
    bool operator>(const Entry& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
  };
  void step(const Entry& entry);

  SteadyTime begin_;
  SteadyTime now_;
  std::unique_ptr<std::minstd_rand> engine_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap_;
  std::multimap<SteadyTime, std::function<void()>> actions_;
  std::vector<Row> seconds_;
  std::uint64_t order_ = 0;
};

}  // namespace slurmlet::site
