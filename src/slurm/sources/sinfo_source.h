#pragma once

// The NodeSource that runs `sinfo` (sinfo.h). Where that did not end in time, munged or a file that
// it opens may be why: those are tried. A sinfo that finds no slurmctld connects again each second
// for ten; it is ended instead, or a slurmctld that comes back would meet those of all nodes that
// wait. It sleeps as long where slurmctld limits the rate, and is left alone there. Not
// thread-safe.

#include <memory>
#include <string>
#include <vector>

#include "base/command.h"
#include "base/side_call.h"
#include "slurm/answers/sinfo.h"
#include "slurm/sources/node_source.h"

namespace slurmlet::slurm {

// What `sinfo -v` prints on its standard output before the answer is cut off.
std::string_view without_options(std::string_view text);

class SinfoSource final : public NodeSource {
 public:
  SinfoSource(SinfoSettings settings, std::unique_ptr<CommandRunner> runner)
      : settings_(std::move(settings)), runner_(std::move(runner)) {}

  std::optional<QueryFailure> ask(const std::string& node, Query query, Now now) override;
  bool busy() const override { return runner_->running(); }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override { return busy() ? runner_->deadline() : kNever; }
  std::vector<int> wake_fds() const override { return runner_->wake_fds(); }
  void set_place(const ClusterPlace& place) override { place_ = place; }
  std::string name() const override { return "sinfo"; }
  SourceCounters counters() const override { return counters_; }

 private:
  // After a query that was answered without the lookup of a user, but not with it.
  static constexpr Duration kWithoutUser = std::chrono::hours{1};
  void settle_user(node::SlurmNodeRecord& record);
  std::optional<QueryFailure> why_hung(SteadyTime now);

  SinfoSettings settings_;
  ClusterPlace place_;
  std::unique_ptr<CommandRunner> runner_;
  std::string asked_;
  std::vector<std::string> touched_;  // by the query under way
  SideCall<std::optional<QueryFailure>> look_;
  Query query_ = Query::kOneNode;
  // The last query ended without a word. sinfo tells of a rate limit only with -v, and one that
  // hung may have looked up a user: the next one is made with the one and without the other.
  bool verbose_ = false;
  bool hung_ = false;
  bool limits_rate_ = false;      // slurmctld has said so, whatever slurm.conf here says
  bool resolved_user_ = true;     // in the query under way
  SteadyTime resolve_user_at_{};  // not before
  node::SlurmNodeRecord last_;
  SourceCounters counters_;
};

}  // namespace slurmlet::slurm
