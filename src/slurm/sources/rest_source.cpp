#include "slurm/sources/rest_source.h"

#include <fmt/format.h>

#include "base/text.h"
#include "slurm/answers/node_json.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

// One node takes some 4 KB.
constexpr std::size_t kMaxAnswer = std::size_t{1} << 20;

constexpr std::int64_t kFuture = 4102444800;  // 2100

// Slurm answered about the node, if only that there is none of that name.
bool is_about_the_node(const QueryResult& result) {
  return result.record || (result.failure && result.failure->cause == SlurmFailure::kNotInSlurm);
}

}  // namespace

std::optional<QueryFailure> RestSource::ask(const std::string& node, Query query, Now now) {
  if (auto problem = calls_.begin(now)) {
    return problem;
  }
  node_ = node;
  refreshed_ = false;
  refreshing_ = query == Query::kFull && calls_.version_known() &&
                calls_.version() >= RestVersions::kKnowsUpdateTime;
  full_queries_ += refreshing_ ? 1 : 0;
  request(now.steady);
  return std::nullopt;
}

SourceCounters RestSource::counters() const {
  SourceCounters counters;
  counters.requests = calls_.requests();
  counters.full_queries = full_queries_;
  return counters;
}

// Nothing has changed since a time to come, so the answer to a refresh has no body; slurmctld
// recomputes what is allocated before it looks at the time (_slurm_rpc_dump_nodes).
std::string RestSource::path() const {
  const int version = calls_.version();
  if (refreshing_) {
    return fmt::format("/slurm/{}/nodes/?update_time={}", api_version_name(version),
                       update_time(version, kFuture));
  }
  // Without flags slurmrestd adds MIXED to these two, which puts it over the base state.
  const char* flags = version >= RestVersions::kKnowsFlags ? "?flags=ALL&flags=DETAIL" : "";
  return fmt::format("/slurm/{}/node/{}{}", api_version_name(version), url_encode(node_), flags);
}

void RestSource::request(SteadyTime now) {
  body_.clear();
  calls_.get(path(), now);
}

std::optional<QueryResult> RestSource::poll(Now now) {
  const auto take = [this](int, const std::string& piece) -> std::optional<QueryFailure> {
    body_ += piece;
    return body_.size() > kMaxAnswer ? std::optional{calls_.too_long("the record of one node")}
                                     : std::nullopt;
  };
  while (const auto answer = calls_.poll(now.steady, take)) {
    if (auto result = judge(*answer, now.steady)) {
      return result;
    }
  }
  return std::nullopt;
}

// Nothing when another request has been sent.
std::optional<QueryResult> RestSource::judge(const RestCalls::End& answer, SteadyTime now) {
  if (answer.failure) {
    return fail(*answer.failure);
  }
  if (refreshing_) {
    refreshing_ = false;
    refreshed_ = answer.status == kNotModified;
    request(now);
    return std::nullopt;
  }
  return judge_answer(answer.status, now);
}

std::optional<QueryResult> RestSource::judge_answer(int status, SteadyTime now) {
  if (!RestCalls::is_served(status, body_)) {
    if (const auto failure = calls_.not_served()) {
      return fail(*failure);
    }
    request(now);
    return std::nullopt;
  }
  QueryResult result = interpret_rest(status, body_, node_);
  if (is_about_the_node(result)) {
    calls_.answered(parse_nodes_json(body_, status).slurm_version);
    if (result.record) {
      result.record->kind = kind();
    }
    return end(std::move(result));
  }
  if (calls_.may_be_the_version(status, *result.failure)) {
    request(now);
    return std::nullopt;
  }
  return fail(*result.failure);
}

node::AnswerKind RestSource::kind() const {
  if (refreshed_) {
    return node::AnswerKind::kFullDump;
  }
  return calls_.version() >= RestVersions::kKnowsFlags ? node::AnswerKind::kOneNodeBase
                                                       : node::AnswerKind::kOneNode;
}

QueryResult RestSource::fail(QueryFailure failure) {
  return end({std::nullopt, calls_.told(std::move(failure)), std::nullopt});
}

QueryResult RestSource::end(QueryResult result) {
  calls_.end();
  body_ = {};
  return result;
}

}  // namespace slurmlet::slurm
