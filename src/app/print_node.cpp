#include "app/print_node.h"

#include <poll.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/node_identity.h"
#include "app/slurm_setup.h"
#include "base/log.h"
#include "kube/node_json.h"
#include "node/desired_node.h"
#include "slurm/command_runner.h"
#include "sync/facts_sync.h"
#include "yaml/emit.h"

namespace slurmlet::app {
namespace {

using std::chrono::milliseconds;

// Steps the sources until slurmctld has answered or failed, and slurmd's version is known.
void gather(sync::FactsSync& facts, const Clock& clock, SteadyTime deadline) {
  while (true) {
    const Now now = clock.now();
    const SteadyTime next = std::min(facts.step(now), deadline);
    const node::HostFacts seen = facts.facts(now);
    const bool asked = seen.slurm.record || seen.slurm.failure || seen.slurm_conf.path.empty();
    if (asked || now.steady >= deadline) {
      return;
    }
    std::vector<pollfd> entries;
    for (const int fd : facts.wake_fds()) {
      entries.push_back({fd, POLLIN, 0});
    }
    const auto left = std::chrono::duration_cast<milliseconds>(next - now.steady).count() + 1;
    ::poll(entries.data(), entries.size(), static_cast<int>(std::clamp<long>(left, 0, 60000)));
  }
}

}  // namespace

Result<std::string> print_node(const config::Settings& settings, const std::string& format) {
  auto identity = identify(settings);
  if (!identity) {
    return identity.error();
  }
  identity->policy.kubelet_port = settings.endpoint.port;
  for (const auto& note : identity->notes) {
    log::info(note);
  }
  sync::FactsOptions options;
  options.paths.state_dir = settings.state_dir;
  slurm::PollSettings poll = poll_settings(settings, settings.slurm.conf);
  poll.first_spread = Duration{0};
  sync::FactsSync facts{options, identity->metal3,
                        [&](const std::string& slurmd_option) {
                          return discover_slurm(settings, identity->hostname,
                                                identity->policy.node_name, slurmd_option);
                        },
                        std::make_unique<slurm::ControllerPoll>(
                            poll, "", std::make_unique<slurm::ProcessRunner>(), system_random()),
                        std::make_unique<slurm::ProcessRunner>()};
  const SystemClock clock;
  gather(facts, clock, clock.now().steady + settings.slurm.command_timeout + milliseconds{500});
  const Now now = clock.now();
  const node::DesiredNode desired = node::desired_node(facts.facts(now), identity->policy,
                                                       facts.circumstances(now), SLURMLET_VERSION);
  const std::string json = kube::node_create_body(desired, now.wall);
  if (format == "json") {
    return json + "\n";
  }
  return yaml::emit_json_text(json);
}

}  // namespace slurmlet::app
