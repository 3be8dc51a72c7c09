#include "base/detached_task.h"

#include <unistd.h>

#include <cstdio>
#include <system_error>
#include <thread>

namespace slurmlet {
namespace {

constexpr int kMost = 32;

std::atomic<int> under_way{0};
thread_local SideWork* own_work = nullptr;

}  // namespace

bool SideWork::wait(Duration patience) {
  std::unique_lock lock{mutex};
  return ended_now.wait_for(lock, patience, [this] { return ended; });
}

std::string SideWork::touched() {
  const std::scoped_lock lock{mutex};
  return file.empty() ? "a file system" : file;
}

void touches_file(const std::string& path) {
  if (own_work != nullptr && !path.starts_with("/proc/") && !path.starts_with("/sys/")) {
    {
      const std::scoped_lock lock{own_work->mutex};
      own_work->file = path;
    }
    if (const auto hook = on_touch.load()) {
      hook(path);
    }
  }
}

bool run_aside(std::shared_ptr<SideWork> work, std::function<void()> body) {
  if (++under_way > kMost) {
    --under_way;
    return false;
  }
  try {
    std::thread{[work = std::move(work), body = std::move(body)]() mutable {
      own_work = work.get();
      body();
      body = nullptr;
      --under_way;
      {
        const std::scoped_lock lock{work->mutex};
        work->ended = true;
        if (work->wakeup) {
          work->wakeup->notify();
        }
      }
      work->ended_now.notify_all();  // the owner would wake up and wait for the lock
    }}.detach();
  } catch (const std::system_error&) {
    --under_way;
    return false;
  }
  return true;
}

int detached_tasks_under_way() { return under_way; }

int end_of_process(int exit_code) {
  if (under_way > 0) {
    std::fflush(nullptr);
    ::_exit(exit_code);
  }
  return exit_code;
}

}  // namespace slurmlet
