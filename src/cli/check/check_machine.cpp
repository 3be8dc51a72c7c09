#include "cli/check/check_machine.h"

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "base/text.h"
#include "node/gpu_health.h"
#include "node/slurm_view.h"
#include "status/daemon_client.h"

namespace slurmlet::cli {
namespace {

using check::Finding;
using check::Findings;
using std::chrono::milliseconds;
using Liveness = node::SlurmdFacts::Liveness;

constexpr const char* kNoneFromSlurmd = "check ignores a running slurmd's slurm.conf";

std::string gpu_words(const node::HostFacts& facts) {
  std::string out;
  for (const auto& [vendor, number] : facts.machine.gpus_by_pci_vendor) {
    const std::string name = vendor == "10de"   ? "NVIDIA"
                             : vendor == "1002" ? "AMD"
                             : vendor == "8086" ? "Intel"
                                                : "of PCI vendor " + vendor;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", number, name);
  }
  return out.empty() ? "none" : out;
}

// Since slurm.conf was not read.
Finding not_queried(const daemon::SlurmConfSeen& conf) {
  if (conf.path.empty()) {
    return check::error(
        "not queried: no slurm.conf in the standard locations",
        fmt::format("set slurm.conf in config.d/10-site.yaml, or SLURM_CONF; {}", kNoneFromSlurmd));
  }
  return check::error("not queried: slurm.conf was not read",
                      "make that file readable, or correct slurm.conf (--slurm-conf, SLURM_CONF)",
                      conf.problem);
}

}  // namespace

Findings metadata_findings(const daemon::NodeIdentity& identity, const std::string& state_dir) {
  Findings out;
  for (const auto& note : identity.notes) {
    if (note.kind == metal3::Note::Kind::kProblem) {
      out.push_back(check::warning(note.text));
    }
  }
  const std::string uuid = daemon::metal3_uuid_of(identity);
  const std::string provider_id = daemon::provider_id_of(identity);
  if (uuid.empty() && provider_id.empty()) {
    out.push_back(check::info("none (only needed with Metal3 and Cluster API)"));
    return out;
  }
  const std::string source = identity.metal3 ? identity.metal3->source : "the configuration";
  const std::string found = fmt::format(
      "{}: uuid {}, providerID {}", source, uuid.empty() ? "none" : uuid,
      provider_id.empty() ? "none (Cluster API's Metal3 provider sets it)" : provider_id);
  out.push_back(source.starts_with(state_dir + "/") ? check::info(found) : check::ok(found));
  if (identity.reprovisioned) {
    out.push_back(check::warning(
        "the state directory contains the identity of another Machine: this host was reprovisioned",
        "start or restart slurmlet, which then discards that identity"));
  }
  return out;
}

Finding slurmd_finding(const node::SlurmdFacts& slurmd) {
  switch (slurmd.liveness) {
    case Liveness::kRunning:
      return check::ok(
          fmt::format("pid {}{}", slurmd.pid, slurmd.version.empty() ? "" : ", " + slurmd.version));
    case Liveness::kStopped:
      return check::error(fmt::format("pid {} is suspended", slurmd.pid),
                          fmt::format("kill -CONT {}, or systemctl restart slurmd", slurmd.pid),
                          slurmd.detail);
    case Liveness::kAbsent:
      return check::error("not running", "", slurmd.detail);
    case Liveness::kUnknown:
      break;
  }
  return check::warning("cannot determine whether it is running", "run check as root",
                        slurmd.detail);
}

Finding slurmctld_finding(const node::HostFacts& facts, const slurm::PollCounters& counters,
                          const daemon::SlurmConfSeen& conf) {
  const node::SlurmView view = node::slurm_view(facts);
  if (view.knowledge == node::Knowledge::kNotAskedYet) {
    return conf.problem.empty() ? check::error("did not answer in time") : not_queried(conf);
  }
  if (view.knowledge == node::Knowledge::kUnknown) {
    Finding finding = check::error(view.what, view.fix);
    if (conf.path.empty()) {
      finding.fix += fmt::format("{}{}", finding.fix.empty() ? "" : "; ", kNoneFromSlurmd);
    }
    return finding;
  }
  const auto& record = *facts.slurm.record;
  if (!counters.last_took) {
    return check::ok(fmt::format("not queried: {} reported at {} that {} is {}", facts.slurm.source,
                                 rfc3339(facts.slurm.answered_at.value_or(WallTime{})), record.name,
                                 record.state.raw()));
  }
  return check::ok(fmt::format("answered in {} ms through {}: {} is {}; the daemon queries it {}",
                               std::chrono::round<milliseconds>(*counters.last_took).count(),
                               facts.slurm.source, record.name, record.state.raw(),
                               slurm::pace_text(counters.pace)));
}

Finding gpu_finding(const node::HostFacts& facts) {
  const auto condition = node::gpu_condition(facts);
  if (!condition) {
    return check::info((facts.slurm.record
                            ? "none in Slurm; the machine has "
                            : "not compared: no answer from Slurm; the machine has ") +
                       gpu_words(facts));
  }
  return condition->status == "True"    ? check::ok(condition->message)
         : condition->status == "False" ? check::error(condition->message)
                                        : check::info(condition->message);
}

Finding port_finding(const std::string& port, const std::optional<host::PortOwner>& owner,
                     bool is_daemon, const std::optional<status::DaemonStatus>& daemon) {
  if (!owner) {
    if (!daemon) {
      return check::ok(port + " is free");
    }
    return daemon->phase == "bootstrap"
               ? check::info(port + " is served once this node has its credential")
               : check::warning(port + " is not served by the running daemon",
                                "check its log (journalctl -u slurmlet), and restart it");
  }
  // Root holds it: systemd for slurmlet.socket, or something else of the machine.
  const bool plausible =
      is_daemon && (daemon || owner->program == "slurmlet" || owner->program == "virtual-kubelet");
  const bool of_other = daemon && owner->pid > 1 && owner->pid != daemon->pid;
  if (plausible && !of_other) {
    return check::ok(fmt::format("{} is served by {}", port,
                                 daemon ? "the running daemon" : host::to_text(*owner)));
  }
  if (is_daemon && owner->pid == 1) {
    return check::info(port + " is held by systemd for a socket unit (systemctl list-sockets)");
  }
  return check::error(fmt::format("{} is in use by {}", port, host::to_text(*owner)));
}

Findings port_findings(const config::Settings& settings,
                       const std::optional<status::DaemonStatus>& daemon) {
  Findings out;
  const auto& endpoint = settings.endpoint;
  for (const auto& [port, key] : {std::pair{endpoint.port, "endpoint.port"},
                                  std::pair{endpoint.healthz_port, "endpoint.healthzPort"}}) {
    if (port == 0) {
      continue;
    }
    const auto owner = host::who_listens(
        "/proc", port,
        port == endpoint.healthz_port ? host::Reach::kLoopback : host::Reach::kAnyAddress);
    out.push_back(port_finding(fmt::format("{} ({})", port, key), owner,
                               owner && status::may_be_daemon(owner->uid, settings.state_dir),
                               daemon));
  }
  return out.empty() ? Findings{check::info("none are used (endpoint.port, healthzPort: 0)")} : out;
}

Finding daemon_finding(const Result<status::DaemonStatus>& answer, const check::ServiceUnit& unit) {
  if (!answer) {
    const bool expected = unit.enabled || unit.active || answer.error().code == Code::kTimeout ||
                          answer.error().code == Code::kDenied;
    return expected ? check::error(answer.error().message) : check::info(answer.error().message);
  }
  if (answer->healthy) {
    return check::ok(answer->summary);
  }
  return check::error(answer->summary, "",
                      contains(answer->summary, answer->problem) ? "" : answer->problem);
}

}  // namespace slurmlet::cli
