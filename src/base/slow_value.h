#pragma once

// A value whose reading may hang, read aside (detached_task.h): one reading at a time, and another
// one after it where it was requested meanwhile. Hold one for each source, so that a file system
// that hangs hides nothing else.
//
//   gpus.request();                                                    // at any reason for it
//   if (auto read = gpus.poll(now, [&] { return work; }, patience)) …  // in each step
//   else if (gpus.is_late()) …                                         // problem() says why
//
// The work owns what it uses, and is made only where a reading begins. One owner thread.

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/detached_task.h"

namespace slurmlet {

template <typename T>
class SlowValue {
 public:
  // After `limit` a reading is late.
  explicit SlowValue(Duration limit) : limit_(limit) {}

  void request() { is_requested_ = true; }
  // Discards the reading in progress.
  void abandon() { call_ = {}; }

  // Begins the reading that was requested, unless one is under way, and waits for it up to
  // `patience`. Returns each value once.
  template <typename MakeWork>
  std::optional<T> poll(SteadyTime now, const MakeWork& make_work, Duration patience) {
    return await(now, make_work, call_.busy() ? Duration::zero() : patience);
  }
  // The same, but waits for one that began before, too.
  template <typename MakeWork>
  std::optional<T> await(SteadyTime now, const MakeWork& make_work, Duration patience) {
    begin(now, make_work);
    auto value = call_.take(patience);
    if (value) {
      problem_.clear();
    } else if (problem_.empty() && call_.late(now)) {
      problem_ = call_.problem();
    }
    return value;
  }

  // From when a reading is late until the next value is there.
  bool is_late() const { return !problem_.empty(); }
  // "/shared/slurm.conf did not answer for 5 s"; "" = not late.
  const std::string& problem() const { return problem_; }

  // When to poll at the latest: at once where the value is older than the last reason for it.
  SteadyTime wake_at(SteadyTime now) const {
    const bool is_due = is_requested_ && !call_.busy() && !call_.is_rejected();
    return is_due ? now : call_.late_at(now);
  }
  int wake_fd() const { return call_.wake_fd(); }  // -1 = nothing is being read

 private:
  template <typename MakeWork>
  void begin(SteadyTime now, const MakeWork& make_work) {
    if (is_requested_ && !call_.busy()) {
      is_requested_ = !call_.begin(make_work(), now, limit_);
    }
  }

  Duration limit_;
  DetachedTask<T> call_;
  bool is_requested_ = false;
  std::string problem_;
};

}  // namespace slurmlet
