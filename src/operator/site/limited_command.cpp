#include "operator/site/limited_command.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string_view>

#include "base/text.h"

namespace slurmlet::op {
namespace {

constexpr std::string_view kSubcommand = "limit-by-alarm";
constexpr int kCannotExecute = 127;

}  // namespace

void limit_by_alarm(CommandSpec& spec) {
  const auto limit = std::chrono::ceil<std::chrono::seconds>(spec.timeout).count();
  const std::vector<std::string> prefix{"/proc/self/exe", std::string{kSubcommand},
                                        std::to_string(limit)};
  spec.argv.insert(spec.argv.begin(), prefix.begin(), prefix.end());
}

std::string why_unanswered(const CommandOutput& output, const std::string& program) {
  if (output.timed_out || output.signal == SIGALRM) {
    return "slurmctld did not answer in time";
  }
  if (output.signal != 0 || output.too_long) {
    return program + " was killed";
  }
  return output.exit_code == kCannotExecute ? program + " cannot be run" : "";
}

int run_limited(int count, char** arguments) {
  if (count < 4 || arguments[1] != kSubcommand) {
    return -1;
  }
  const auto limit = parse_int<unsigned>(arguments[2]);
  if (!limit || *limit == 0) {
    return kCannotExecute;
  }
  ::alarm(*limit);  // survives execve(2)
  ::execvp(arguments[3], arguments + 3);
  return kCannotExecute;
}

}  // namespace slurmlet::op
