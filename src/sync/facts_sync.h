#pragma once

// Keeps the facts about this machine and its slurmd fresh, by events and a tick a minute.
//
// Owns the sources: pressure samples (each tick), the rest of the machine (each report interval),
// slurmd (pidfd and inotify), jobs on the machine, and the queries to slurmctld. The tick falls
// on multiples of the wall clock, so that all nodes of a parallel job are disturbed at one moment.
//
// A step object; not thread-safe. Slurm's files may lie on a file system that hangs, so they are
// read aside (side_call.h). The first reading of slurm.conf is waited for, up to two seconds, that
// a new Node has its labels from the beginning; any other for a tenth of a second. What has not
// answered for five seconds is unknown, with the file as the cause: the jobs by the spool
// directory, and all that follows from slurm.conf where it has never been read. Once read it stays
// true: slurmd has read the same, and reads it again at its own start only. So do the GPUs, whose
// driver may hang, and the size of the state directory's file system.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/command.h"
#include "base/delay.h"
#include "base/result.h"
#include "base/side_call.h"
#include "host/gpus.h"
#include "host/machine.h"
#include "host/pressure.h"
#include "node/conditions.h"
#include "node/facts.h"
#include "slurm/local/local_jobs.h"
#include "slurm/local/slurmd_watch.h"
#include "slurm/sources/controller_poll.h"

namespace slurmlet::sync {

// What Slurm's files on this machine say, and where to look: made by reading slurm.conf.
struct SlurmSetup {
  std::string node_name;              // Slurm's NodeName
  std::string why;                    // how it was found, for people
  std::string problem;                // why slurm.conf could not be read; "" if it was
  std::vector<std::string> left_out;  // of it: Includes that could not be read, with why
  std::string refusal;                // why no NodeName can be chosen; "" where there is one
  node::SlurmFailure refusal_cause = node::SlurmFailure::kNodeUnknown;
  slurm::ClusterPlace place;
  std::optional<slurm::PollSettings> pace;  // by the nodes of slurm.conf; nothing if not read
  SitePlace site;
  node::SlurmConfFacts conf;
  slurm::SlurmdWatchSettings watch;
  slurm::LocalJobsPlaces jobs;
};

struct FactsOptions {
  host::Paths paths;
  std::string system_uuid;  // read before: its file is in the state directory, which may hang
  Duration machine_interval = std::chrono::minutes{5};
  Duration tick = std::chrono::minutes{1};  // pressures: news, not a matter of seconds here
  Duration not_ready_grace = std::chrono::seconds{15};
  // For the first look, before slurm.conf names SlurmUser. Like Parts::discover.
  std::function<TrustedUsers()> slurm_users = [] { return TrustedUsers{}; };
  std::function<host::GpuReading(const host::Paths&, const std::vector<std::string>&)> read_gpus =
      host::read_gpus_and_files;
  std::function<std::optional<host::FileSystemUsage>(const std::filesystem::path&)> disk_usage =
      host::file_system_usage;
  Duration first_patience = std::chrono::seconds{2};  // with slurm.conf
  Duration patience = std::chrono::milliseconds{100};
  Duration reading_limit = std::chrono::seconds{5};
};

class FactsSync {
 public:
  // Reads slurm.conf; the argument is every slurmd that runs on this machine. Runs on other threads
  // and may outlive this object: it owns what it uses.
  using Discover = std::function<SlurmSetup(const std::vector<slurm::SlurmdSeen>& slurmds)>;

  struct Parts {
    FactsOptions options;
    std::optional<node::Metal3Facts> metal3;
    Discover discover;
    SlurmSetup unread;  // as long as slurm.conf has not been read
    std::unique_ptr<slurm::ControllerPoll> poll;
    std::unique_ptr<CommandRunner> version_runner;  // `slurmd -V`
    std::unique_ptr<CommandRunner> unit_runner;     // `systemctl show slurmd.service`
  };
  explicit FactsSync(Parts parts);

  // Before the first step: where in its site this node stands, by slurm.conf if it can be read so
  // soon.
  const SitePlace& await_site(Now now, Duration patience) {
    follow_reading(now, patience);
    return site();
  }
  const SitePlace& site() const { return setup_.site; }
  SteadyTime step(Now now);
  std::vector<int> wake_fds() const;

  // As of the last step; before the first one nothing is known.
  const node::HostFacts& facts() const { return facts_; }
  // Puts this address of the machine, if it is one, before the others: the one that reaches the API
  // server is the one the cluster can reach us at.
  void prefer_address(const std::string& address);
  node::Circumstances circumstances(Now now) const;
  // NodeSync::record(); whether it was new, so that a step is due.
  bool set_record(const std::optional<std::string>& record) { return poll_->set_record(record); }
  const SlurmSetup& setup() const { return setup_; }
  slurm::PollCounters poll_counters() const { return poll_->counters(); }
  // slurmd's program is being queried for its version.
  bool learns_version() const { return watch_.learns_version(); }
  // It is being read for the first time, and not late.
  bool reads_slurm_conf() const { return !read_ && late_.empty(); }

 private:
  void read_machine();
  void follow_gpus(Now now);
  void follow_disk(Now now);
  void follow_pressures(Now now);
  struct Reading {
    std::vector<slurm::SlurmdSeen> slurmds;
    SlurmSetup setup;
  };
  void setup_slurm(Now now);
  void begin_reading(Now now);
  void follow_reading(Now now, Duration patience = Duration::zero());
  void take_reading(Reading reading, Now now);
  void tell_poll();
  bool look_for_slurmds();
  void look_again_for_slurmds(Now now);
  bool is_due_to_look(Now now) const;
  SteadyTime follow_answer(Now now);
  void take_watched(Now now);
  void follow_slurmd(Now now);
  void read_jobs(Now now);
  void follow_spool(Now now, Duration patience = Duration::zero());
  void take_jobs(const Result<std::vector<std::string>>& entries);
  void set_slurmd();

  FactsOptions options_;
  Discover discover_;
  std::unique_ptr<slurm::ControllerPoll> poll_;
  std::vector<slurm::SlurmdSeen> slurmds_;  // as setup_ knows them
  SlurmSetup setup_;
  SideCall<Reading> reading_;     // of slurm.conf
  bool read_ = false;             // once at least
  std::vector<int> read_beside_;  // the slurmd processes that ran when the last one began
  bool wanted_ = true;            // another reading
  std::string late_;              // why it has not come; "" = in time
  slurm::SlurmdWatch watch_;
  slurm::LocalJobsReader jobs_;
  SideCall<Result<std::vector<std::string>>> spool_;  // its entries
  bool jobs_wanted_ = false;                          // once more after those
  std::string spool_late_;                            // as late_
  int compared_mounts_of_ = 0;     // this slurmd's with ours, since the last report; 0 = not yet
  bool spool_is_slurmds_ = false;  // the outcome
  SideCall<host::GpuReading> gpus_;
  bool gpus_wanted_ = false;  // another reading
  bool gpus_late_ = false;
  host::PressureSampler pressures_;
  SideCall<std::optional<host::FileSystemUsage>> disk_;  // of the state directory
  bool disk_wanted_ = false;                             // another reading
  bool disk_size_wanted_ = false;                        // for the capacity
  node::HostFacts facts_;
  node::SlurmdFacts watched_;               // as watch_ last saw it
  std::optional<SteadyTime> absent_since_;  // slurmd went while we watched
  // slurmctld says NOT_RESPONDING while slurmd runs: when to ask about it again, once.
  std::optional<SteadyTime> doubt_at_;
  std::optional<SteadyTime> read_jobs_at_;
  bool jobs_changed_ = false;      // and have not been read since
  SteadyTime reread_at_ = kNever;  // slurm.conf
  SteadyTime next_watch_{};
  SteadyTime next_tick_{};
  SteadyTime next_machine_{};
  std::optional<WallTime> jobs_of_answer_;  // the answer of slurmctld that jobs were read for
};

}  // namespace slurmlet::sync
