#include "slurm/sources/sinfo_source.h"

#include <algorithm>

#include "slurm/local/munge_socket.h"

namespace slurmlet::slurm {

std::string_view without_options(std::string_view text) {
  constexpr std::string_view kRule = "-----------------------------\n";
  if (!text.starts_with(kRule)) {
    return text;
  }
  std::string_view rest = text;
  for (int rules = 0; rules < 3; ++rules) {
    const auto at = rest.find(kRule);
    if (at == std::string_view::npos) {
      return text;
    }
    rest.remove_prefix(at + kRule.size());
  }
  return rest.substr(std::min(rest.size(), rest.find_first_not_of('\n')));
}

std::optional<QueryFailure> SinfoSource::ask(const std::string& node, Query query, Now now) {
  SinfoSettings settings = settings_;
  if (settings.conf.empty()) {
    settings.conf = place_.conf;
  }
  settings.resolve_user = !verbose_ && now.steady >= resolve_user_at_;
  resolved_user_ = settings.resolve_user;
  CommandSpec spec = sinfo_query(settings, node);
  if (query == Query::kFull) {
    // With two names sinfo asks for all nodes, and shows those (src/sinfo/opts.c,
    // node_name_single).
    std::replace(spec.argv.begin(), spec.argv.end(), node, node + "," + node);
  }
  if (verbose_) {
    spec.argv.emplace_back("-v");
  }
  if (settings.conf.empty() && !place_.conf_server.empty()) {
    spec.extra_environment.push_back("SLURM_CONF_SERVER=" + place_.conf_server);
  }
  if (auto started = runner_->start(spec, now.steady); !started) {
    return classify_start(started.error());
  }
  asked_ = node;
  query_ = query;
  ++counters_.commands;
  counters_.full_queries += query == Query::kFull ? 1 : 0;
  return std::nullopt;
}

// The user of a reason that an earlier answer had as well is known from there.
void SinfoSource::settle_user(node::SlurmNodeRecord& record) {
  if (!resolved_user_) {
    const bool known = record.reason == last_.reason && record.reason_time == last_.reason_time;
    record.reason_user = known ? last_.reason_user : "";
  }
  last_ = record;
}

std::optional<QueryResult> SinfoSource::poll(Now now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now.steady, output)) {
    return std::nullopt;
  }
  if (verbose_) {
    output.out = std::string{without_options(output.out)};
  }
  QueryResult result = interpret(output, asked_);
  if (result.record) {
    if (verbose_) {
      resolve_user_at_ = now.steady + kWithoutUser;
    }
    settle_user(*result.record);
    if (query_ == Query::kFull) {
      result.record->kind = node::AnswerKind::kFullDump;
    }
  }
  verbose_ = result.failure && output.timed_out;
  const bool hung = result.failure && result.failure->cause == node::SlurmFailure::kTimeout;
  if (hung && !place_.munge_socket.empty()) {
    if (auto problem = munge_problem(place_.munge_socket)) {
      result.failure = std::move(problem);
    }
  }
  return result;
}

}  // namespace slurmlet::slurm
