#include "slurm/sources/scontrol_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/unique_fd.h"
#include "slurm/answers/record_text.h"
#include "slurm/local/munge_socket.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

// A server that is gone shows when a file is opened, or else when it is read.
void try_to_read(const std::string& path) {
  touches_file(path);
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  char byte = 0;
  (void)!::read(fd.get(), &byte, 1);
}

QueryResult failed(SlurmFailure cause, std::string detail) {
  return {std::nullopt, QueryFailure{cause, std::move(detail)}};
}

}  // namespace

QueryResult interpret_dump(const CommandOutput& output, std::string_view nonce,
                           const std::string& node) {
  if (auto failure = classify(output, "scontrol")) {
    return {std::nullopt, std::move(failure)};
  }
  auto records = split_dump(output.out, nonce, node);
  if (!records) {
    return failed(SlurmFailure::kInvalidResponse, records.error().message);
  }
  if (records->empty()) {
    return failed(SlurmFailure::kNotInSlurm, "slurmctld has no node " + node);
  }
  auto record = read_record_text(records->begin()->second);
  if (!record) {
    return failed(SlurmFailure::kInvalidResponse, "scontrol's text " + record.error().message);
  }
  return {*std::move(record), std::nullopt};
}

std::optional<QueryFailure> ScontrolSource::query(const std::string& node, Now now) {
  ClientSettings settings = settings_;
  if (settings.conf.empty()) {
    settings.conf = place_.conf;
  }
  auto nonce = new_nonce();
  if (!nonce) {
    return classify_start(nonce.error());
  }
  CommandSpec spec = dump_query(settings, *nonce);
  if (verbose_) {
    spec.argv.insert(spec.argv.begin() + 1, "-v");
  }
  if (settings.conf.empty() && !place_.conf_server.empty()) {
    spec.extra_environment.push_back("SLURM_CONF_SERVER=" + place_.conf_server);
  }
  spec.max_output_bytes = kMaxDumpOfNode;
  spec.ends_asleep = !place_.may_limit_rate && !limits_rate_;
  if (auto started = runner_->start(spec, now.steady); !started) {
    return classify_start(started.error());
  }
  queried_ = node;
  nonce_ = *std::move(nonce);
  touched_ = {spec.argv.front(), settings.conf};
  return std::nullopt;
}

std::optional<QueryResult> ScontrolSource::poll(Now now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now.steady, output)) {
    return std::nullopt;
  }
  QueryResult result = interpret_dump(output, nonce_, queried_);
  limits_rate_ =
      limits_rate_ || (result.failure && result.failure->cause == SlurmFailure::kRateLimited);
  verbose_ = result.failure && output.timed_out;
  if (result.failure && result.failure->cause == SlurmFailure::kTimeout) {
    if (auto problem = why_hung(now.steady)) {
      result.failure = std::move(problem);
    } else if (output.asleep) {
      result.failure = {SlurmFailure::kControllerUnreachable,
                        "scontrol was waiting to connect again, having reached no slurmctld or one "
                        "in standby"};
    }
  }
  return result;
}

// What on this machine may have held it up.
std::optional<QueryFailure> ScontrolSource::why_hung(SteadyTime now) {
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
  return QueryFailure{SlurmFailure::kFileSystemHangs, look_.file() + " does not answer"};
}

}  // namespace slurmlet::slurm
