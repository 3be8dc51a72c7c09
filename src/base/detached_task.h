#pragma once

// Work that may never end, because it touches files that may lie on a file system whose server is
// gone: reading slurm.conf or a directory, looking for a program. It runs on a thread of its own,
// the owner waits for it a moment at most, goes on and takes the result when wake_fd() is readable.
//
// A thread and not a child process: the result is a value, a thread costs some 30 µs, and one that
// waits for NFS, FUSE or a FIFO sleeps killably, so it does not hold up the end of the process (but
// for a FUSE server that stands still with the request in its hands). It cannot be ended before, so
// nobody joins it: what the work uses it must own (no references), and while it hangs no other is
// begun by its owner. Over all owners, at most 32 are under way.
//
// One owner thread; touches_file() and run_aside() are thread-safe.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "base/wakeup.h"

namespace slurmlet {

// Shared by the owner and the thread.
struct SideWork {
  std::optional<Wakeup> wakeup;  // notified of the end, if somebody listens
  std::mutex mutex;
  std::condition_variable ended_now;
  bool ended = false;
  std::string file;  // that is being touched

  bool wait(Duration patience);
  std::string touched();
};

// What this thread does next may hang at this file. For the messages of DetachedTask; on other
// threads than its own it does nothing, nor for the kernel's own files, which do not hang.
void touches_file(const std::string& path);

// For tests: called there with the path; may hang in the place of the file system.
inline std::atomic<void (*)(const std::string& path)> on_touch{nullptr};

// Runs `body` on a thread of its own; false when there is none to be had, or too many hang.
bool run_aside(std::shared_ptr<SideWork> work, std::function<void()> body);

// How many, over all owners.
int detached_tasks_under_way();

// The end of main(): a thread that still runs must not meet what static destructors have destroyed.
int end_of_process(int exit_code);

template <typename T>
class DetachedTask {
 public:
  // False while the former has not been taken, and when no thread is to be had. After `limit` it is
  // late in both cases.
  bool begin(std::function<T()> work, SteadyTime now, Duration limit = std::chrono::seconds{5}) {
    if (busy()) {
      return false;
    }
    auto state = std::make_shared<State>();
    state->wakeup.emplace();
    State* const raw = state.get();  // the thread owns it too
    const bool begun = run_aside(state, [raw, work = std::move(work)] { raw->result = work(); });
    if (begun || !is_rejected_) {
      limit_ = limit;
      late_at_ = now + limit;
    }
    if (begun) {
      state_ = std::move(state);
    }
    is_rejected_ = !begun;
    return begun;
  }

  // Begun, result not taken yet.
  bool busy() const { return state_ != nullptr; }

  // The last begin() got no thread.
  bool is_rejected() const { return is_rejected_; }

  // The result, once; waits for it no longer than `patience`.
  std::optional<T> take(Duration patience = Duration::zero()) {
    if (!busy() || !state_->wait(patience)) {
      return std::nullopt;
    }
    return std::move(std::exchange(state_, nullptr)->result);
  }

  bool late(SteadyTime now) const { return (busy() || is_rejected_) && now >= late_at_; }
  // When it becomes late.
  SteadyTime late_at(SteadyTime now) const { return busy() && !late(now) ? late_at_ : kNever; }
  // Readable when there is a result to take; -1 when not busy.
  int wake_fd() const { return busy() ? state_->wakeup->fd() : -1; }
  // That it is at. While busy.
  std::string file() const { return state_->touched(); }
  // "/shared/slurm.conf did not answer for 5 s". While late.
  std::string problem() const {
    const std::string time =
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit_).count()) + " s";
    return busy() ? file() + " did not answer for " + time
                  : "so many file operations hang that none could begin for " + time;
  }

 private:
  struct State : SideWork {
    std::optional<T> result;
  };
  std::shared_ptr<State> state_;
  Duration limit_{};
  SteadyTime late_at_{};
  bool is_rejected_ = false;
};

// How long a loop waits for a file that it needs now. Tests change it.
inline std::atomic<Duration> file_patience{std::chrono::milliseconds{500}};

// The result of `work`, or the one before that came late; kTimeout, naming the file, where neither
// has come in time. Waits only for what it has begun: for the same file system again not before it
// has answered.
template <typename T, typename Work>
Result<T> in_time(DetachedTask<Result<T>>& call, Work work, Duration patience = file_patience) {
  const bool begun = call.begin(std::move(work), SteadyTime{}, patience);
  if (auto result = call.take(begun ? patience : Duration::zero())) {
    return *std::move(result);
  }
  return Error{Code::kTimeout,
               call.busy() ? call.file() + " does not answer" : "too many file operations hang"};
}

// The same for what may be repeated and must not be taken for another: an answer to what was begun
// before is dropped.
template <typename Work>
auto in_time_anew(DetachedTask<Status>& call, Work work) -> decltype(work()) {
  call.take();
  if (call.busy()) {
    return Error{Code::kTimeout, call.file() + " does not answer"};
  }
  const auto answer = std::make_shared<std::optional<decltype(work())>>();
  const Status done = in_time(call, [work = std::move(work), answer]() mutable {
    *answer = work();
    return Status{};
  });
  return done ? **answer : done.error();
}

}  // namespace slurmlet
