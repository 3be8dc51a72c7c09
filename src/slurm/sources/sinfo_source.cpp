#include "slurm/sources/sinfo_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/unique_fd.h"
#include "slurm/local/munge_socket.h"

namespace slurmlet::slurm {
namespace {

// A server that is gone shows when a file is opened, or else when it is read.
void try_to_read(const std::string& path) {
  touches_file(path);
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  char byte = 0;
  (void)!::read(fd.get(), &byte, 1);
}

}  // namespace

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
  settings.resolve_user = !hung_ && now.steady >= resolve_user_at_;
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
  spec.ends_asleep = !place_.may_limit_rate && !limits_rate_;
  if (auto started = runner_->start(spec, now.steady); !started) {
    return classify_start(started.error());
  }
  asked_ = node;
  touched_ = {spec.argv.front(), settings.conf};
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
    if (hung_) {
      resolve_user_at_ = now.steady + kWithoutUser;
    }
    settle_user(*result.record);
    if (query_ == Query::kFull) {
      result.record->kind = node::AnswerKind::kFullDump;
    }
  }
  limits_rate_ =
      limits_rate_ || (result.failure && result.failure->cause == node::SlurmFailure::kRateLimited);
  verbose_ = result.failure && output.timed_out;
  hung_ = verbose_ && !output.asleep;
  if (result.failure && result.failure->cause == node::SlurmFailure::kTimeout) {
    if (auto problem = why_hung(now.steady)) {
      result.failure = std::move(problem);
    } else if (output.asleep) {
      result.failure = {node::SlurmFailure::kControllerUnreachable,
                        "sinfo was waiting to connect again, having reached no slurmctld or one "
                        "in standby"};
    }
  }
  return result;
}

// What on this machine may have held it up.
std::optional<QueryFailure> SinfoSource::why_hung(SteadyTime now) {
  constexpr std::chrono::milliseconds kPatience{1000};
  (void)look_.take();
  const bool begun = look_.begin(
      [files = touched_, socket = place_.munge_socket]() -> std::optional<QueryFailure> {
        for (const auto& file : files) {
          if (file.starts_with('/')) {
            try_to_read(file);
          }
        }
        touches_file(socket);
        return socket.empty() ? std::nullopt : munge_problem(socket);
      },
      now, kPatience);
  if (!begun && !look_.busy()) {
    return std::nullopt;
  }
  if (auto seen = look_.take(begun ? kPatience : Duration::zero())) {
    return *std::move(seen);
  }
  return QueryFailure{node::SlurmFailure::kFileSystemHangs, look_.file() + " does not answer"};
}

}  // namespace slurmlet::slurm
