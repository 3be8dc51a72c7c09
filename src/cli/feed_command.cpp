#include "cli/feed_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/utsname.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "config/duration.h"
#include "slurm/answers/slurmd_status.h"
#include "slurm/local/conf.h"
#include "slurm/local/slurm_users.h"
#include "slurm/sources/feed_writer.h"

namespace slurmlet::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kFailed = 1;
constexpr int kBadCommandLine = 2;

// "" when slurm.conf cannot be read: then the daemons cannot compare. kInvalid when others may
// change it.
Result<std::string> cluster_name(const config::Settings& settings) {
  slurm::ConfSearch search;
  search.configured = settings.slurm.conf;
  const std::string path = slurm::find_slurm_conf(search);
  const auto conf = slurm::read_slurm_conf(path, {"", {}, slurm::usual_slurm_users()});
  if (!conf && !path.empty() && conf.error().code == Code::kInvalid) {
    return conf.error();
  }
  if (!conf) {
    log::warning(
        "the cluster name is not known, so a node of another cluster could use this feed by "
        "mistake: " +
        conf.error().message);
    return std::string{};
  }
  return conf->cluster_name;
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// "slurm-wlm 22.05.8" → "22.05.8"; asks nobody.
std::string slurm_version(const config::Settings& settings) {
  CommandSpec spec;
  spec.argv = {settings.slurm.bin_dir.empty() ? "scontrol" : settings.slurm.bin_dir + "/scontrol",
               "--version"};
  const auto output = run_command(spec);
  return output ? slurm::parse_slurmd_version(output->out) : std::string{};
}

Result<Duration> parse_interval(const std::string& text) {
  const auto interval = config::parse_duration(text.empty() ? "30s" : text);
  if (!interval || *interval < seconds{1} || *interval > hours{1} ||
      *interval % seconds{1} != milliseconds{0}) {
    return Error{Code::kInvalid,
                 fmt::format("--interval is \"{}\"; it must be whole seconds between 1s and 1h, "
                             "for example 30s",
                             text)};
  }
  return Duration{*interval};
}

// The begin and the end of a failure, and its causes; not the ticks.
class Reporter {
 public:
  explicit Reporter(std::string directory) : directory_(std::move(directory)) {}

  void look(const slurm::FeedWriterStatus& status) {
    if (!status.failure.empty() && status.failure != failure_) {
      log::warning(fmt::format("the feed in {} was not updated: {}", directory_, status.failure));
      failure_ = status.failure;
    } else if (status.failure.empty() && status.dumps > 0 && (!told_ || !failure_.empty())) {
      log::info(fmt::format("the feed in {} contains {} nodes", directory_, status.nodes));
      failure_.clear();
      told_ = true;
    }
  }

 private:
  std::string directory_;
  std::string failure_;
  bool told_ = false;
};

// Until then, or something of `fds` is readable.
void wait(SteadyTime next, const std::vector<int>& fds) {
  std::vector<pollfd> entries;
  for (const int fd : fds) {
    entries.push_back({fd, POLLIN, 0});
  }
  const auto left = std::chrono::ceil<milliseconds>(next - std::chrono::steady_clock::now());
  ::poll(
      entries.data(), entries.size(),
      static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, std::numeric_limits<int>::max())));
}

bool told_to_stop(daemon::Signals& signals) {
  while (const auto number = signals.take()) {
    if (*number == SIGTERM || *number == SIGINT) {
      return true;
    }
  }
  return false;
}

}  // namespace

int run_feed(const config::Settings& settings, const FeedOptions& options,
             daemon::Signals& signals) {
  const auto interval = parse_interval(options.interval);
  if (options.output.empty() || !interval) {
    log::error(options.output.empty() ? "--output is missing: the directory that the nodes read"
                                      : interval.error().message);
    return kBadCommandLine;
  }
  auto directory = slurm::FeedDirectory::open(options.output);
  if (!directory) {
    log::error(directory.error().message);
    return kFailed;
  }
  auto cluster = cluster_name(settings);
  if (!cluster) {
    log::error(cluster.error().message);
    return kFailed;
  }
  slurm::FeedWriterSettings writing;
  writing.client = {settings.slurm.conf, settings.slurm.bin_dir, settings.slurm.command_timeout};
  writing.interval = *interval;
  writing.max_backoff = settings.slurm.max_backoff;
  writing.cluster = *std::move(cluster);
  writing.reader = host_name();
  writing.slurm_version = slurm_version(settings);
  log::info(fmt::format(
      "slurmlet " SLURMLET_VERSION
      " queries slurmctld for all nodes every {} and writes them to {}",
      config::format_duration(std::chrono::duration_cast<config::Milliseconds>(*interval)),
      options.output));
  slurm::FeedWriter writer{std::move(writing), *std::move(directory),
                           std::make_unique<slurm::ProcessRunner>(), system_random()};
  const SystemClock clock;
  Reporter reporter{options.output};
  while (!told_to_stop(signals)) {
    const SteadyTime next = writer.step(clock.now());
    reporter.look(writer.status());
    std::vector<int> fds = writer.wake_fds();
    fds.push_back(signals.fd());
    wait(next, fds);
  }
  log::info("stopped");
  return 0;
}

}  // namespace slurmlet::cli
