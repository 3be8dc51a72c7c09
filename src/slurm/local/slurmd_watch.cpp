#include "slurm/local/slurmd_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "slurm/local/proc.h"

namespace slurmlet::slurm {
namespace {

using Liveness = node::SlurmdFacts::Liveness;

// A sign of a birth comes before the process is complete (systemd makes the cgroup first, slurmd
// writes its pid after creating the file), so it is searched for a few times more.
constexpr std::array<Duration, 4> kHurry{std::chrono::milliseconds{50},
                                         std::chrono::milliseconds{200}, std::chrono::seconds{1},
                                         std::chrono::seconds{3}};

void watch_births(Inotify& inotify, const SlurmdPlaces& places, std::vector<int>& watches) {
  const auto add = [&](const std::string& directory, std::uint32_t mask) {
    if (const auto watch = inotify.add(directory, mask)) {
      watches.push_back(*watch);
    }
  };
  const std::filesystem::path pid_file{places.pid_file};
  add(pid_file.parent_path().string(), IN_CREATE | IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE);
  for (const char* hierarchy : {"", "/unified", "/systemd"}) {
    add(places.cgroup_root + hierarchy + "/system.slice", IN_CREATE);
  }
}

UniqueFd open_pidfd(int pid) {
  return UniqueFd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
}

}  // namespace

SlurmdWatch::SlurmdWatch(SlurmdWatchSettings settings,
                         std::unique_ptr<CommandRunner> version_runner,
                         std::unique_ptr<CommandRunner> unit_runner)
    : settings_(std::move(settings)),
      spool_(inotify_, settings_.spool_dir, settings_.rescan, settings_.patience),
      version_(std::move(version_runner)),
      unit_(std::move(unit_runner), settings_.systemd_dir) {
  facts_.detail = "not checked yet";
}

void SlurmdWatch::reconfigure(SlurmdWatchSettings settings) {
  settings_ = std::move(settings);
  inotify_ = std::make_shared<Inotify>();
  look_ = {};
  spool_ = {inotify_, settings_.spool_dir, settings_.rescan, settings_.patience};
  birth_watches_.clear();
  pidfd_.reset();
  pid_ = 0;
  search_at_.reset();
}

SteadyTime SlurmdWatch::step(Now now) {
  spool_.step(now);
  read_events(now.steady);
  if (version_.step(now.steady)) {
    facts_.version = version_.version();
  }
  unit_.step(now.steady);
  if (pid_ != 0 && exited()) {
    lose(now);
  } else if (pid_ != 0 && now.steady >= check_at_) {
    check_state(now);
  }
  if (pid_ == 0 && (look_.busy() || !search_at_ || now.steady >= *search_at_)) {
    search(now);
  }
  if (facts_.liveness == Liveness::kAbsent) {
    facts_.detail = unit_.detail().empty() ? passed_over_ : unit_.detail();
  }
  const SteadyTime wake = pid_ != 0      ? check_at_
                          : look_.busy() ? look_.late_at(now.steady)
                                         : search_at_.value_or(now.steady);
  return std::min({wake, version_.deadline(), unit_.deadline()});
}

std::vector<int> SlurmdWatch::wake_fds(bool jobs_can_wait) const {
  std::vector<int> fds = version_.wake_fds();
  const std::vector<int> more = unit_.wake_fds();
  fds.insert(fds.end(), more.begin(), more.end());
  if (inotify_->fd() >= 0 && !(jobs_can_wait && pid_ != 0)) {
    fds.push_back(inotify_->fd());
  }
  for (const int fd : {pid_ == 0 ? look_.wake_fd() : -1, spool_.wake_fd()}) {
    if (fd >= 0) {
      fds.push_back(fd);
    }
  }
  if (pidfd_) {
    fds.push_back(pidfd_.get());
  }
  return fds;
}

node::SlurmdFacts SlurmdWatch::facts() const { return facts_; }

void SlurmdWatch::unwatch_births() {
  for (const int watch : birth_watches_) {
    if (!spool_.uses(watch)) {
      inotify_->remove(watch);
    }
  }
  birth_watches_.clear();
}

void SlurmdWatch::read_events(SteadyTime now) {
  const std::string pid_name = std::filesystem::path{settings_.places.pid_file}.filename();
  for (const auto& event : inotify_->read()) {
    const bool overflow = (event.mask & IN_Q_OVERFLOW) != 0;
    if (overflow) {
      spool_.note_change();
    }
    const bool birth = spool_.take(event) || overflow || event.name == pid_name ||
                       event.name == settings_.places.unit;
    if (birth && pid_ == 0) {
      hurry(now);
    }
  }
}

// Search now, and some more times soon.
void SlurmdWatch::hurry(SteadyTime now) {
  hurried_ = 0;
  search_at_ = now;
}

void SlurmdWatch::next_search(Now now) {
  search_at_ = next_aligned(now, settings_.rescan);
  if (hurried_ < kHurry.size()) {
    search_at_ = std::min(*search_at_, now.steady + kHurry[hurried_++]);
  }
}

void SlurmdWatch::search(Now now) {
  const bool begun = begin_search(now.steady);
  if (auto look = look_.take(begun ? settings_.patience : Duration::zero())) {
    if (birth_watches_.empty()) {
      birth_watches_ = std::move(look->birth_watches);
    }
    judge(look->found, now);
  } else if (look_.late(now.steady)) {
    facts_.pid = 0;
    facts_.liveness = Liveness::kUnknown;
    facts_.detail = look_.problem();
  } else if (!look_.busy()) {
    next_search(now);  // no thread to be had
  }
}

bool SlurmdWatch::begin_search(SteadyTime now) {
  if (look_.busy()) {
    return false;
  }
  if (!search_at_) {
    hurried_ = kHurry.size();
    version_.query(slurmd_programs(settings_.bin_dir), now);
  }
  search_at_ = now;
  // Watches first, or a birth between the search and the watch would be missed.
  return look_.begin(
      [inotify = inotify_, places = settings_.places, identity = settings_.identity,
       is_watched = !birth_watches_.empty()] {
        Look look;
        if (!is_watched) {
          watch_births(*inotify, places, look.birth_watches);
        }
        look.found = find_slurmd(places, identity);
        return look;
      },
      now);
}

void SlurmdWatch::judge(const FoundSlurmd& found, Now now) {
  if (found.pid != 0 && adopt(found.pid, now)) {
    return;
  }
  facts_.pid = 0;
  passed_over_ = found.passed_over;
  if (!found.error.empty()) {
    facts_.liveness = Liveness::kUnknown;
    facts_.detail = found.error;
  } else if (found.hidden_pid != 0 && open_pidfd(found.hidden_pid)) {
    facts_.liveness = Liveness::kUnknown;
    facts_.detail = fmt::format(
        "{} names a process that /proc hides (mount option hidepid); run slurmlet as root",
        settings_.places.pid_file);
  } else {
    facts_.liveness = Liveness::kAbsent;
    if (hurried_ == kHurry.size()) {  // it stays down
      unit_.run_once(settings_.places.unit, now.steady);
    }
  }
  next_search(now);
}

// Opens a pidfd of the process; false when it has exited.
bool SlurmdWatch::adopt(int pid, Now now) {
  pidfd_ = open_pidfd(pid);
  if (!pidfd_ && errno == ESRCH) {
    return false;
  }
  // The pid may have been reused before we opened the pidfd.
  SlurmdIdentity identity = settings_.identity;
  identity.conf.clear();
  if (!is_our_slurmd(settings_.places, identity, pid)) {
    pidfd_.reset();
    return false;
  }
  pid_ = pid;
  if (facts_.pid != pid) {
    version_.query(slurmd_programs(settings_.bin_dir), now.steady);
  }
  facts_.pid = pid;
  facts_.detail.clear();
  spool_.check_soon();
  unit_.reset();
  check_state(now);
  unwatch_births();
  return true;
}

// A pidfd is readable from the exit on, also before the parent has reaped; without one (kernels
// before 5.3, more processes than descriptors) the periodic check has to do.
bool SlurmdWatch::exited() const {
  if (pidfd_) {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) > 0;
  }
  return process_name(settings_.places.proc_root, pid_) != "slurmd";
}

void SlurmdWatch::lose(Now now) {
  pidfd_.reset();
  pid_ = 0;
  hurry(now.steady);
}

void SlurmdWatch::check_state(Now now) {
  const auto stat = process_stat(settings_.places.proc_root, pid_);
  const bool stopped = stat && (stat->state == 'T' || stat->state == 't');
  facts_.liveness = stopped ? Liveness::kStopped : Liveness::kRunning;
  // No event reports SIGCONT, and until then the Node is not Ready.
  check_at_ = next_aligned(now, stopped ? settings_.rescan : settings_.state_check);
}

}  // namespace slurmlet::slurm
