// Slurm's client commands: their start, and their failing forms, recognised by Slurm's own messages
// (src/common/slurm_errno.c and the callers; captured from releases 22.05 … 25.11, see
// test/fixtures/slurm).

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "slurm/answers/slurm_client.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

// slurmctld says nothing to a client whose credential it cannot decode, it closes the connection;
// newer ones say that there is an authentication error. Only its log distinguishes a wrong key from
// a wrong clock.
constexpr std::string_view kNotTaken =
    "it closed the connection without an answer: this node's munge key or clock does not match the "
    "cluster's (see slurmctld's log), or a load balancer has no slurmctld behind it";

struct Rule {
  std::string_view needle;  // in lower case
  SlurmFailure cause;
  std::string_view detail;     // "" = the line of the message itself
  std::string_view also = "";  // in the same line
  std::string_view hint = "";  // behind the line of the message
};

// First match wins, over all lines: the cause comes before what follows from it (a missing munge
// also shows as a protocol error, a missing slurm.conf also as a missing ClusterName).
constexpr std::array kRules = std::to_array<Rule>({
    {"command not found", SlurmFailure::kCommandMissing, ""},
    {"rate limit", SlurmFailure::kRateLimited,
     "slurmctld limits the rate of requests (SlurmctldParameters=rl_enable)"},
    {"munge encode failed", SlurmFailure::kMungeUnavailable, "", "permission denied",
     "; slurmlet's user cannot access that socket (its directory must have mode 0755)"},
    {"munge encode failed", SlurmFailure::kMungeUnavailable, ""},
    {"munge decode failed", SlurmFailure::kClockSkew, "", "expired credential"},
    {"munge decode failed", SlurmFailure::kClockSkew, "", "rewound credential"},
    {"munge decode failed", SlurmFailure::kAuthenticationRefused, "", "credential"},
    {"munge decode failed", SlurmFailure::kMungeUnavailable, ""},
    {"any sack sockets", SlurmFailure::kSackUnavailable, ""},
    {"if munged is up", SlurmFailure::kMungeUnavailable, "munged does not answer"},
    {"cannot create auth context", SlurmFailure::kBadConfiguration, ""},
    {"couldn't find the specified plugin name", SlurmFailure::kBadConfiguration, ""},
    {"protocol authentication error", SlurmFailure::kAuthenticationRefused, ""},
    {"authentication error", SlurmFailure::kAuthenticationRefused, ""},
    {"invalid authentication credential", SlurmFailure::kAuthenticationRefused, ""},
    {"zero bytes were transmitted", SlurmFailure::kAuthenticationRefused, kNotTaken},
    {"invalid user for slurmuser", SlurmFailure::kBadConfiguration, ""},
    {"cannot stat file", SlurmFailure::kBadConfiguration, ""},
    {"parse error in file", SlurmFailure::kBadConfiguration, ""},
    {"parsing error at unrecognized key", SlurmFailure::kBadConfiguration, ""},
    {"dns srv lookup failed", SlurmFailure::kBadConfiguration,
     "there is no slurm.conf and no DNS SRV record for slurmctld"},
    {"could not establish a configuration source", SlurmFailure::kBadConfiguration, ""},
    {"clustername needs to be specified", SlurmFailure::kBadConfiguration, ""},
    {"unable to process configuration file", SlurmFailure::kBadConfiguration, ""},
    {"access/permission denied", SlurmFailure::kPermissionDenied, ""},
    {"invalid user id", SlurmFailure::kPermissionDenied, ""},
    {"user not permitted", SlurmFailure::kPermissionDenied, ""},
    {"unable to resolve", SlurmFailure::kControllerUnreachable, ""},
    {"unable to establish control machine address", SlurmFailure::kControllerUnreachable, ""},
    {"unable to contact slurm controller", SlurmFailure::kControllerUnreachable, ""},
    {"socket timed out", SlurmFailure::kControllerUnreachable, ""},
    {"connection refused", SlurmFailure::kControllerUnreachable, ""},
    // Of what forwards a virtual address (SlurmctldAddr) and finds no slurmctld behind it.
    {"connection reset by peer", SlurmFailure::kControllerUnreachable, ""},
    {"broken pipe", SlurmFailure::kControllerUnreachable, ""},
    {"transport endpoint is not connected", SlurmFailure::kControllerUnreachable, ""},
    {"connection timed out", SlurmFailure::kControllerUnreachable, ""},
    {"no route to host", SlurmFailure::kControllerUnreachable, ""},
    {"network is unreachable", SlurmFailure::kControllerUnreachable, ""},
    {"standby mode", SlurmFailure::kControllerUnreachable, ""},
    {"incompatible versions of client and server", SlurmFailure::kControllerUnreachable, ""},
    {"permission denied", SlurmFailure::kPermissionDenied, ""},
    {"unrecognized option", SlurmFailure::kInvalidResponse, ""},
    {"invalid option", SlurmFailure::kInvalidResponse, ""},
});

// Text that differs with each query would rewrite the Node each time.
std::string_view without_retry_counter(std::string_view line) {
  for (const std::string_view tail : {", retrying in", ", attempt number"}) {
    line = line.substr(0, line.find(tail));
  }
  return line;
}

// "scontrol: error: _parse_next_key: Parsing error at …" → "Parsing error at …"; also without a
// timestamp "[2026-11-20T23:08:38.621]" in front. Words with a colon go while they look like the
// name of a program, a level or a C function.
std::string plain_line(std::string_view line) {
  line = trim(line);
  if (line.starts_with('[')) {
    if (const auto close = line.find("] "); close != std::string_view::npos) {
      line.remove_prefix(close + 2);
    }
  }
  while (true) {
    const auto word_end = line.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyz_0123456789/.-ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    if (word_end == 0 || word_end == std::string_view::npos || line[word_end] != ':') {
      break;
    }
    auto rest = trim(line.substr(word_end + 1));
    if (rest.empty() || rest.size() == line.size()) {
      break;
    }
    line = rest;
  }
  constexpr std::size_t kMaxDetail = 256;
  return excerpt(without_retry_counter(line), kMaxDetail);
}

std::string last_line(std::string_view err) {
  const auto lines = split(trim(err), '\n');
  return plain_line(lines.back());
}

}  // namespace

bool valid_node_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && name.size() <= 253 && all_alnum(name, "._-");
}

CommandSpec slurm_command(const ClientSettings& settings, std::vector<std::string> argv) {
  CommandSpec spec;
  spec.argv = std::move(argv);
  if (!settings.bin_dir.empty()) {
    spec.argv.front().insert(0, settings.bin_dir + "/");
  }
  if (!settings.conf.empty()) {
    spec.extra_environment.push_back("SLURM_CONF=" + settings.conf);
  }
  spec.timeout = settings.timeout;
  return spec;
}

std::optional<QueryFailure> known_failure(std::string_view err) {
  const auto lines = split(err, '\n');
  for (const auto& rule : kRules) {
    for (const auto line : lines) {
      const std::string text = to_lower(line);
      if (text.find(rule.needle) != std::string::npos &&
          text.find(rule.also) != std::string::npos) {
        return QueryFailure{rule.cause, rule.detail.empty()
                                            ? plain_line(line) + std::string{rule.hint}
                                            : std::string{rule.detail}};
      }
    }
  }
  return std::nullopt;
}

std::optional<QueryFailure> classify(const CommandOutput& output, std::string_view program) {
  if (output.too_long) {
    return QueryFailure{
        SlurmFailure::kInvalidResponse,
        fmt::format("{} printed more than the records of a cluster can contain", program)};
  }
  if (output.timed_out) {
    const auto known = known_failure(output.err);
    return known ? *known
                 : QueryFailure{SlurmFailure::kTimeout,
                                fmt::format("{} did not finish within its time limit", program)};
  }
  if (output.signal != 0) {
    return QueryFailure{SlurmFailure::kInvalidResponse,
                        fmt::format("{} was killed by signal {}", program, output.signal)};
  }
  if (output.exit_code == 0 && !trim(output.out).empty()) {
    return std::nullopt;  // warnings beside an answer (rate limit, then served) do not matter
  }
  const auto known = known_failure(output.err);
  // With exit 0 slurmctld did answer, after a pause if it limits the rate.
  if (known && (output.exit_code != 0 || known->cause != SlurmFailure::kRateLimited)) {
    return known;
  }
  if (output.exit_code == 0) {
    return QueryFailure{SlurmFailure::kInvalidResponse, fmt::format("{} printed nothing", program)};
  }
  if (output.exit_code == 127) {
    return QueryFailure{SlurmFailure::kCommandMissing, fmt::format("{} is not installed", program)};
  }
  const auto text = last_line(output.err);
  return QueryFailure{SlurmFailure::kInvalidResponse,
                      text.empty()
                          ? fmt::format("{} exited with {}", program, output.exit_code)
                          : fmt::format("{} exited with {}: {}", program, output.exit_code, text)};
}

QueryFailure classify_start(const Error& error) {
  const bool missing = error.code == Code::kNotFound || error.code == Code::kDenied;
  return {missing                        ? SlurmFailure::kCommandMissing
          : error.code == Code::kTimeout ? SlurmFailure::kFileSystemHangs
                                         : SlurmFailure::kInvalidResponse,
          error.message};
}

}  // namespace slurmlet::slurm
