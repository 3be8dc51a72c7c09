#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "base/detached_task.h"

namespace slurmlet::fakes {

// A busy machine must not make a file look hung that does not hang.
inline const bool is_patient = (file_patience = std::chrono::minutes{1}, true);

// What was begun aside. Its last steps must not meet another test, nor what the end of the process
// destroys.
inline void let_detached_tasks_end() {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes{1};
  while (detached_tasks_under_way() > 0 && std::chrono::steady_clock::now() < limit) {
    std::this_thread::yield();
  }
}

// What is done aside (base/detached_task.h) hangs where it touches this path, until answer().
class HangingFile {
 public:
  explicit HangingFile(std::string path) : path_(std::move(path)) {
    const std::lock_guard lock{site().mutex};
    site().hanging.insert(path_);
    file_patience = std::chrono::seconds{1};
    on_touch = touch;
  }
  HangingFile(const HangingFile&) = delete;
  HangingFile& operator=(const HangingFile&) = delete;
  ~HangingFile() {
    answer();
    if (!is_one_left()) {
      let_detached_tasks_end();
    }
  }

  void answer() {
    const std::lock_guard lock{site().mutex};
    site().hanging.erase(path_);
    file_patience = std::chrono::minutes{1};
    site().changed.notify_all();
  }
  // Until somebody hangs at it.
  void wait() {
    std::unique_lock lock{site().mutex};
    if (!site().changed.wait_for(lock, std::chrono::minutes{1},
                                 [this] { return site().held.contains(path_); })) {
      throw std::runtime_error{"nobody touches " + path_};
    }
  }

 private:
  struct Site {
    std::mutex mutex;
    std::condition_variable changed;
    std::set<std::string> hanging;
    std::multiset<std::string> held;  // where somebody hangs
  };
  static bool is_one_left() {
    const std::lock_guard lock{site().mutex};
    return !site().hanging.empty();
  }
  // Never destroyed: threads may outlive main().
  static Site& site() {
    static auto* const one = new Site;
    return *one;
  }
  static void touch(const std::string& path) {
    std::unique_lock lock{site().mutex};
    if (!site().hanging.contains(path)) {
      return;
    }
    const auto here = site().held.insert(path);
    site().changed.notify_all();
    site().changed.wait(lock, [&path] { return !site().hanging.contains(path); });
    site().held.erase(here);
  }

  const std::string path_;
};

}  // namespace slurmlet::fakes
