#include "slurm/local/slurmd_name.h"

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "slurm/answers/slurm_client.h"
#include "slurm/answers/slurmd_status.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

Error untold(const std::string& why) {
  return {Code::kUnavailable, "scontrol show slurmd: " + why};
}

std::string first_line(std::string_view text) {
  const auto line = trim(trim(text).substr(0, trim(text).find('\n')));
  return excerpt(line);
}

}  // namespace

CommandSpec slurmd_name_query(const SlurmdNameQuestion& question) {
  CommandSpec spec = slurm_command({question.conf, question.bin_dir, std::chrono::seconds{10}},
                                   {"scontrol", "show", "slurmd"});
  if (question.conf.empty() && !question.conf_server.empty()) {
    spec.extra_environment.push_back("SLURM_CONF_SERVER=" + question.conf_server);
  }
  spec.max_output_bytes = std::size_t{64} << 10;
  return spec;
}

Result<std::string> read_slurmd_name(const CommandOutput& output) {
  if (output.timed_out) {
    return untold("no answer within 10 s");
  }
  if (output.signal != 0) {
    return untold(fmt::format("killed by signal {}", output.signal));
  }
  if (output.exit_code != 0) {
    const std::string said = first_line(output.err);
    return untold(said.empty() ? fmt::format("exit code {}", output.exit_code) : said);
  }
  if (!looks_like_slurmd_status(output.out)) {
    return untold("the answer cannot be parsed");
  }
  std::string name = parse_slurmd_status(output.out).node_name;
  if (!valid_node_name(name)) {
    return untold("the answer contains no node name");
  }
  return name;
}

void SlurmdName::set_question(const SlurmdNameQuestion& question) {
  question_ = question;
  if (question.pid != 0 && question.pid != pid_) {
    pid_ = question.pid;
    name_.clear();
    problem_.clear();
    next_ = {};
    retry_.reset();
  }
}

bool SlurmdName::fail(SteadyTime now, const std::string& problem) {
  next_ = now + retry_.next();
  return std::exchange(problem_, problem) != problem;
}

bool SlurmdName::start(SteadyTime now) {
  if (const Status started = runner_->start(slurmd_name_query(question_), now); !started) {
    return fail(now, untold(started.error().message).message);
  }
  asked_pid_ = question_.pid;
  return false;
}

bool SlurmdName::step(SteadyTime now) {
  bool news = false;
  CommandOutput output;
  // What was asked of a predecessor does not count.
  if (running() && runner_->poll(now, output) && asked_pid_ == pid_) {
    if (auto name = read_slurmd_name(output)) {
      name_ = *std::move(name);
      problem_.clear();
      news = true;
    } else {
      news = fail(now, name.error().message);
    }
  }
  if (wanted() && !running() && now >= next_) {
    news = start(now) || news;
  }
  return news;
}

SteadyTime SlurmdName::wake_at() const {
  if (running()) {
    return runner_->deadline();
  }
  return wanted() ? next_ : kNever;
}

}  // namespace slurmlet::slurm
