#pragma once

// The dump of all nodes by slurmrestd: GET /slurm/v0.0.NN/nodes/, which is two requests to
// slurmctld (nodes, partitions), and one where it can say that nothing has changed (304).
//
// No flags are given: those that slurmrestd has by itself are scontrol's, and MIXED is
// distinguished from ALLOCATED by them.
//
// The latter is requested with update_time, the time that slurmctld gave the last answer
// (last_update, since v0.0.40; our own clock may be another). slurmctld recomputes what is
// allocated before it compares, so no state is hidden, but a partition that was deleted is: the
// caller wants a whole answer from time to time. Releases up to 24.11, at least, answer 500 when
// nodes have changed and partitions have not; then, and on whatever else they do not take, the
// whole is queried.
//
// Not thread-safe; belongs to the thread of its client.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/answers/node_list.h"
#include "slurm/sources/rest_calls.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::slurm {

class RestDump final : public DumpSource {
 public:
  explicit RestDump(RestSettings settings) : calls_(std::move(settings)) {}
  Status start(Now now, bool or_unchanged) override;
  bool running() const override { return calls_.busy(); }
  SteadyTime deadline() const override { return calls_.deadline(); }
  std::vector<int> wake_fds() const override { return {}; }
  std::optional<Result<Answer>> poll(Now now) override;

 private:
  void request(SteadyTime now);
  std::optional<QueryFailure> take(int status, const std::string& piece);
  std::optional<Result<Answer>> judge(const RestCalls::End& end, SteadyTime now);
  std::optional<Result<Answer>> judge_failure(int status, SteadyTime now);
  Result<Answer> judge_nodes(SteadyTime now);
  Error fail(QueryFailure failure);

  RestCalls calls_;
  std::optional<std::int64_t> updated_at_;  // of the last good answer

  // Of the dump under way.
  SteadyTime began_{};
  WallTime began_at_{};
  bool or_unchanged_ = false;
  NodeListReader reader_;
  std::string body_;  // of what is no list
};

}  // namespace slurmlet::slurm
