#include "app/print_node.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/node_identity.h"
#include "app/node_source.h"
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
void gather(sync::FactsSync& facts, http::Client& client, const Clock& clock, SteadyTime deadline) {
  while (true) {
    const Now now = clock.now();
    const SteadyTime next = std::min(facts.step(now), deadline);
    const node::HostFacts seen = facts.facts(now);
    const bool asked = seen.slurm.record || seen.slurm.failure || seen.slurm_conf.path.empty();
    if ((asked && !facts.learns_name()) || now.steady >= deadline) {
      return;
    }
    (void)client.wait(next, facts.wake_fds());
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
  const SystemClock clock;
  const auto client = make_waiting_client();
  if (!client) {
    return client.error();
  }
  sync::FactsOptions options;
  options.paths.state_dir = settings.state_dir;
  slurm::PollSettings poll = poll_settings(settings);
  poll.first_spread = Duration{0};
  auto source = make_node_source(
      settings,
      {**client, clock, feed_cluster(settings, identity->hostname, identity->policy.node_name)});
  sync::FactsSync facts{
      options,
      identity->metal3,
      [&](const std::vector<slurm::SlurmdSeen>& slurmds) {
        return discover_slurm(settings, identity->hostname, identity->policy.node_name, slurmds);
      },
      std::make_unique<slurm::ControllerPoll>(poll, "", std::move(source), system_random()),
      std::make_unique<slurm::ProcessRunner>(),
      nullptr,
      std::make_unique<slurm::ProcessRunner>()};
  gather(facts, **client, clock,
         clock.now().steady + settings.slurm.command_timeout + milliseconds{500});
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
