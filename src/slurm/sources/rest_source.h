#pragma once

// The NodeSource that asks slurmrestd: GET /slurm/v0.0.NN/node/NAME over a unix socket or HTTP(S);
// for a full query GET …/nodes/ before it, in the form that has an empty answer.
// One node is cheap for slurmctld (as sinfo.h says of its query). The version is found once
// (rest_versions.h); all requests of a question count as one question and share its deadline
// (rest_calls.h).
//
// Not thread-safe; belongs to the thread of its client.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/sources/node_source.h"
#include "slurm/sources/rest_calls.h"

namespace slurmlet::slurm {

class RestSource final : public NodeSource {
 public:
  explicit RestSource(RestSettings settings) : calls_(std::move(settings)) {}

  std::optional<QueryFailure> ask(const std::string& node, Query query, Now now) override;
  bool busy() const override { return calls_.busy(); }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override { return busy() ? calls_.deadline() : kNever; }
  std::vector<int> wake_fds() const override { return {}; }
  std::string name() const override { return calls_.server().name(); }
  bool is_slurmrestd() const override { return true; }
  SourceCounters counters() const override;

 private:
  void request(SteadyTime now);
  std::string path() const;
  node::AnswerKind kind() const;
  std::optional<QueryResult> judge(const RestCalls::End& answer, SteadyTime now);
  std::optional<QueryResult> judge_answer(int status, SteadyTime now);
  QueryResult end(QueryResult result);
  QueryResult fail(QueryFailure failure);

  RestCalls calls_;
  std::uint64_t full_queries_ = 0;

  // Of the question under way.
  std::string node_;
  bool refreshing_ = false;  // the request is the one before that for the node: Query::kFull
  bool refreshed_ = false;   // what is allocated has been recomputed for this question
  std::string body_;
};

}  // namespace slurmlet::slurm
