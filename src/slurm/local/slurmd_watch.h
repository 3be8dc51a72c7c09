#pragma once

// Knows whether the slurmd of this node runs, by events:
// - death: a pidfd of the process becomes readable when it exits, however it ends. The search is
//   repeated at once, because since Slurm 23.11 a reconfigure replaces the process by a new one;
// - birth: inotify on the directory of the pidfile, on the spool directory and on systemd's slice;
// - SIGSTOP: reads /proc/PID/stat every `state_check`, and every `rescan` while it is stopped.
// While slurmd is absent, a search each `rescan` catches what events miss. Both periods fall on
// multiples of the wall clock, so that all nodes of a parallel job are disturbed at one moment.
//
// When slurmd stays down, systemctl says once why (slurmd_programs.h).
//
// slurmd is never connected to or queried: a bare connect logs errors there, and `scontrol show
// slurmd` wakes every slurmstepd.
//
// The same inotify reports job starts and ends (spool_watch.h).
//
// A step object: call step() when a descriptor of wake_fds() is readable or the returned time has
// come. The descriptors change between steps. Not thread-safe. The pidfile and the spool directory
// may lie on a file system that hangs: they are read aside (detached_task.h), and what cannot be
// seen there for five seconds is unknown.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/command.h"
#include "base/detached_task.h"
#include "base/inotify.h"
#include "base/unique_fd.h"
#include "node/facts.h"
#include "slurm/local/slurmd_process.h"
#include "slurm/local/slurmd_programs.h"
#include "slurm/local/spool_watch.h"

namespace slurmlet::slurm {

struct SlurmdWatchSettings {
  SlurmdPlaces places;
  SlurmdIdentity identity;
  std::string spool_dir;  // without patterns; "" = not watched
  std::string bin_dir;    // where Slurm's commands are; "" = PATH
  std::string systemd_dir = "/run/systemd/system";
  Duration rescan = std::chrono::seconds{10};
  Duration state_check = std::chrono::seconds{30};
  // A reading that is not through by then goes on beside the loop.
  Duration patience = std::chrono::milliseconds{100};
  bool operator==(const SlurmdWatchSettings&) const = default;
};

class SlurmdWatch {
 public:
  // `version_runner` is for `slurmd -V`, `unit_runner` for `systemctl show`; without one that is
  // left out.
  SlurmdWatch(SlurmdWatchSettings settings, std::unique_ptr<CommandRunner> version_runner,
              std::unique_ptr<CommandRunner> unit_runner = nullptr);

  // New paths or another identity (slurm.conf was read again): everything is searched anew.
  void reconfigure(SlurmdWatchSettings settings);

  SteadyTime step(Now now);
  // `jobs_can_wait`: their events are read with the next step, whenever that is. While slurmd is
  // away they may be the signs of its birth, and wake.
  std::vector<int> wake_fds(bool jobs_can_wait = false) const;
  node::SlurmdFacts facts() const;

  // slurmd's program is being run for its version.
  bool learns_version() const { return version_.running(); }

  // Whether the spool directory's jobs have changed since the last call.
  bool take_job_event() { return spool_.take_change(); }

 private:
  void read_events(SteadyTime now);
  void unwatch_births();
  void search(Now now);
  bool begin_search(SteadyTime now);
  void judge(const FoundSlurmd& found, Now now);
  bool adopt(int pid, Now now);
  void lose(Now now);
  bool exited() const;
  void check_state(Now now);
  void hurry(SteadyTime now);
  void next_search(Now now);

  // What a search brings from the pidfile and the processes.
  struct Look {
    std::vector<int> birth_watches;
    FoundSlurmd found;
  };

  SlurmdWatchSettings settings_;
  std::shared_ptr<Inotify> inotify_ = std::make_shared<Inotify>();
  SpoolWatch spool_;
  DetachedTask<Look> look_;
  SlurmdVersion version_;
  SlurmdUnit unit_;
  node::SlurmdFacts facts_;
  int pid_ = 0;
  std::string passed_over_;  // of the last search (FoundSlurmd)
  UniqueFd pidfd_;
  std::vector<int> birth_watches_;       // only while slurmd is absent: /run is busy
  std::optional<SteadyTime> search_at_;  // nothing: at once
  SteadyTime check_at_{};
  std::size_t hurried_ = 0;  // searches made since the last sign of a birth
};

}  // namespace slurmlet::slurm
