#pragma once

// The NodeSource that reads what `slurmlet feed` wrote for all nodes of the site (feed_format.h).
// It costs slurmctld nothing, so it is not bound to the budget of questions: an answer names when
// the next dump will be there, and that is when it is read again. Which moment of a second that is
// follows from the node's name, so that a fleet does not fall on the file server at once.
//
// On a local file system both files are read at once, in place. Anywhere else `cat` reads them: a
// file server that hangs must not stop the caller's loop. The child has a deadline and is killed
// then, which works for NFS and Lustre in their usual waits; a child that the kernel does not let
// die would still hold up the caller until it does.
//
// The directory is trusted as slurmctld is: whoever may write there says what this node's state is.
// Not thread-safe.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "slurm/local/command_runner.h"
#include "slurm/sources/feed_format.h"
#include "slurm/sources/node_source.h"

namespace slurmlet::slurm {

struct FeedSettings {
  std::string directory;  // absolute
  std::string cluster;    // ClusterName of this machine's slurm.conf; "" if unknown
  Duration timeout = std::chrono::seconds{5};
  std::string mountinfo = "/proc/self/mountinfo";
};

// What the files say about `node` at `now`; `record` is the text of its own file, nothing if there
// is none. Pure. An age is bounded by five intervals; failures are stable words.
QueryResult read_feed(const FeedSettings& settings, std::string_view header,
                      const std::optional<std::string>& record, const std::string& node,
                      WallTime now);

class FeedSource final : public NodeSource {
 public:
  FeedSource(FeedSettings settings, std::unique_ptr<CommandRunner> runner)
      : settings_(std::move(settings)), runner_(std::move(runner)) {}

  std::optional<QueryFailure> ask(const std::string& node, Query /*query*/, Now now) override;
  bool busy() const override { return ready_.has_value() || runner_->running(); }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override;
  std::vector<int> wake_fds() const override { return runner_->wake_fds(); }
  std::string name() const override { return "feed " + settings_.directory; }
  SourceCounters counters() const override { return counters_; }
  bool is_free() const override { return true; }

 private:
  QueryResult read_in_place(int directory, const std::string& node, WallTime now) const;
  QueryResult interpret(const CommandOutput& output, WallTime now) const;

  FeedSettings settings_;
  std::unique_ptr<CommandRunner> runner_;
  std::string asked_;
  std::optional<QueryResult> ready_;
  SteadyTime ready_at_{};
  SourceCounters counters_;
};

}  // namespace slurmlet::slurm
