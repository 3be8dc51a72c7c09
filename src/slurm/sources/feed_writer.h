#pragma once

// The reader of a site: asks slurmctld one question for all nodes each interval, on multiples of
// the wall clock, and keeps the feed's directory up to date (feed_format.h). Two requests to
// slurmctld an interval, whatever the number of nodes.
//
// When a dump fails, the files stay and the header keeps its time, so that its age grows, and gains
// the cause. Failing questions back off exponentially with full jitter, up to `max_backoff`.
//
// A step object: call step() when a descriptor of wake_fds() is readable or the returned time has
// come. Blocks only on the directory. Not thread-safe.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "slurm/local/command_runner.h"
#include "slurm/sources/feed_directory.h"
#include "slurm/sources/feed_format.h"

namespace slurmlet::slurm {

struct FeedWriterSettings {
  SinfoSettings client;  // its timeout is the deadline of one dump
  Duration interval = std::chrono::seconds{30};
  Duration max_backoff = std::chrono::seconds{300};
  std::string cluster;
  std::string reader;  // host name
  std::string slurm_version;
};

struct FeedWriterStatus {
  std::uint64_t dumps = 0;  // good ones
  std::uint64_t failures = 0;
  std::size_t nodes = 0;  // of the last good dump
  FeedChanges changes;    // of the last good dump
  std::string failure;    // "" when the last dump was good
};

class FeedWriter {
 public:
  // Goes on from the header that is there, if it is one of this cluster.
  FeedWriter(FeedWriterSettings settings, FeedDirectory directory,
             std::unique_ptr<CommandRunner> runner, Random random);

  SteadyTime step(Now now);
  std::vector<int> wake_fds() const { return runner_->wake_fds(); }
  const FeedWriterStatus& status() const { return status_; }

 private:
  void start(Now now);
  Status publish(Now now, const std::string& dump);
  void finish(Now now, const CommandOutput& output);
  void fail(Now now, const std::string& why);

  FeedWriterSettings settings_;
  FeedDirectory directory_;
  std::unique_ptr<CommandRunner> runner_;
  Backoff backoff_;
  FeedHeader header_;  // as it is, or should be, in the directory
  FeedWriterStatus status_;
  WallTime asked_{};
  SteadyTime due_{};  // at once
};

}  // namespace slurmlet::slurm
