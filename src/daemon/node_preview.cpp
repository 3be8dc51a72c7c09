#include "daemon/node_preview.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/command.h"
#include "base/log.h"
#include "daemon/slurm_setup.h"
#include "daemon/slurm_source.h"
#include "node/desired_node.h"
#include "slurm/local/slurm_users.h"
#include "sync/facts_sync.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::milliseconds;

SlurmConfSeen conf_seen(const sync::SlurmSetup& setup, const std::string& configured) {
  return {setup.place.conf.empty() ? configured : setup.place.conf, setup.problem};
}

// Steps the sources until slurmctld has answered or failed, and slurmd's version is known, or not
// to be learnt.
void gather(sync::FactsSync& facts, http::Client& client, const Clock& clock, SteadyTime deadline) {
  while (true) {
    const Now now = clock.now();
    const SteadyTime next = std::min(facts.step(now), deadline);
    const node::HostFacts& seen = facts.facts();
    const bool has_answered =
        seen.slurm.record || seen.slurm.failure || seen.slurm_conf.path.empty();
    const bool learns = facts.reads_slurm_conf() || facts.learns_version();
    if ((has_answered && !learns) || now.steady >= deadline) {
      return;
    }
    (void)client.wait(next, facts.wake_fds());
  }
}

}  // namespace

Result<NodePreview> preview_node(const config::Settings& settings, const PreviewOptions& options) {
  auto identity = TRY(identify(settings, StateUse::kReadOnly));
  identity.policy.kubelet_port = settings.endpoint.port;
  for (const auto& note : identity.notes) {
    log::info(note.text);
  }
  const SystemClock clock;
  const auto client = TRY(make_waiting_client());
  sync::FactsOptions facts_options;
  facts_options.paths.state_dir = settings.state_dir;
  facts_options.system_uuid = identity.system_uuid;
  facts_options.slurm_users = slurm::usual_slurm_users;
  slurm::PollSettings poll = poll_settings(settings.slurm, std::nullopt);
  poll.spread = Duration{0};  // somebody waits
  const Duration limit =
      std::min<Duration>(settings.slurm.command_timeout + milliseconds{500}, options.limit);
  facts_options.reading_limit = std::min(facts_options.reading_limit, limit);
  sync::FactsSync facts{
      {.options = facts_options,
       .metal3 = identity.metal3,
       .discover =
           [settings, hostname = identity.hostname,
            name = identity.policy.node_name](const std::vector<slurm::SlurmdSeen>& slurmds) {
             auto setup = discover_slurm_for_command(settings, hostname, name, slurmds);
             if (setup.pace) {
               setup.pace->spread = Duration{0};
             }
             return setup;
           },
       .unread = setup_before_slurm_conf(settings),
       .poll = std::make_unique<slurm::ControllerPoll>(poll, poll_sources(settings.slurm),
                                                       system_random()),
       .version_runner = std::make_unique<Command>(),
       .unit_runner = std::make_unique<Command>()}};
  if (options.record && settings.slurm.source != node::SlurmSource::kScontrol) {
    facts.set_record(options.record(identity.policy.node_name));
  }
  gather(facts, *client, clock, clock.now().steady + limit);
  NodePreview out;
  out.at = clock.now();
  facts.prefer_address(options.route);
  out.facts = facts.facts();
  out.slurm_conf = conf_seen(facts.setup(), settings.slurm.conf);
  out.slurmctld = facts.poll_counters();
  out.desired =
      node::desired_node(out.facts, identity.policy, facts.ready_context(out.at), SLURMLET_VERSION);
  out.identity = std::move(identity);
  return out;
}

}  // namespace slurmlet::daemon
