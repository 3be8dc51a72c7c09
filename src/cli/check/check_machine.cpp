#include "cli/check/check_machine.h"

#include <fmt/format.h>

#include "base/rfc3339.h"
#include "node/gpu_health.h"
#include "node/slurm_view.h"

namespace slurmlet::cli {
namespace {

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
    return {kSubjectSlurmctld, Severity::kError,
            "not queried: no slurm.conf in the standard locations", "",
            fmt::format("set slurm.conf in config.yaml, or SLURM_CONF; {}", kNoneFromSlurmd)};
  }
  return {kSubjectSlurmctld, Severity::kError, "not queried: slurm.conf was not read", conf.problem,
          "make that file readable, or correct slurm.conf (--slurm-conf, SLURM_CONF)"};
}

Finding port_finding(const PortSeen& port, const std::optional<status::DaemonStatus>& daemon) {
  const std::string name = fmt::format("{} ({}, {})", port.port, port.what, port.setting);
  if (!port.taken && daemon && daemon->phase == "bootstrap") {
    return {kSubjectPorts, Severity::kInfo, name + " is served once this node has its credential"};
  }
  if (!port.taken) {
    return {kSubjectPorts, daemon ? Severity::kWarning : Severity::kOk,
            name + (daemon ? " is not served by the running daemon" : " is free"), "",
            daemon ? "check its log (journalctl -u slurmlet), and restart it" : ""};
  }
  const std::string cure = fmt::format(
      "stop that {}, or set {} to a free port",
      port.pid == 1 && port.program == "systemd" ? "unit (systemctl list-sockets)" : "process",
      port.setting);
  if (!port.other.empty()) {
    return {kSubjectPorts, Severity::kError, fmt::format("{} is in use by {}", name, port.other),
            "", cure};
  }
  if (port.pid != 0 && daemon && port.pid == daemon->pid) {
    return {kSubjectPorts, Severity::kOk, name + " is served by the running daemon"};
  }
  if (port.of_socket_unit) {
    return {kSubjectPorts, Severity::kOk,
            fmt::format("{} is held by {}, for slurmlet.socket", name, port.program)};
  }
  // One that cannot be asked, since endpoint.healthzPort is 0.
  if (!daemon && (port.program == "slurmlet" || port.program == "virtual-kubelet")) {
    return {kSubjectPorts, Severity::kOk,
            fmt::format("{} is served by {} (pid {})", name, port.program, port.pid)};
  }
  if (port.pid != 0) {
    return {kSubjectPorts, Severity::kError,
            fmt::format("{} is in use by {} (pid {})", name, port.program, port.pid), "", cure};
  }
  if (daemon) {
    return {kSubjectPorts, Severity::kOk,
            name + " is served, apparently by the running daemon (run as root to confirm)"};
  }
  return {kSubjectPorts, Severity::kError,
          name + " is in use by a process that only root can see (run as root)", "", cure};
}

}  // namespace

bool socket_unit_has(const std::string& shown, int port) {
  return shown.find("ActiveState=active\n") != std::string::npos &&
         shown.find(fmt::format(":{} (Stream)", port)) != std::string::npos;
}

Finding slurmd_finding(const node::HostFacts& facts) {
  const auto& slurmd = facts.slurmd;
  switch (slurmd.liveness) {
    case Liveness::kRunning:
      if (slurmd.serves == false) {
        return {kSubjectSlurmd, Severity::kError,
                fmt::format("pid {} is not serving requests", slurmd.pid), "its /readyz says so",
                "systemctl status slurmd"};
      }
      return {
          kSubjectSlurmd, Severity::kOk,
          fmt::format("pid {}{}", slurmd.pid, slurmd.version.empty() ? "" : ", " + slurmd.version)};
    case Liveness::kStopped:
      return {kSubjectSlurmd, Severity::kError, fmt::format("pid {} is suspended", slurmd.pid),
              slurmd.detail, fmt::format("kill -CONT {}, or systemctl restart slurmd", slurmd.pid)};
    case Liveness::kAbsent:
      return {kSubjectSlurmd, Severity::kError, "not running", slurmd.detail,
              "systemctl status slurmd; systemctl start slurmd"};
    case Liveness::kUnknown:
      break;
  }
  return {kSubjectSlurmd, Severity::kWarning, "cannot determine whether it is running",
          slurmd.detail, "run check as root"};
}

Finding slurmctld_finding(const node::HostFacts& facts, const slurm::PollCounters& counters,
                          const daemon::SlurmConfSeen& conf) {
  const node::SlurmView view = node::slurm_view(facts);
  if (view.knowledge == node::Knowledge::kNotAskedYet && !conf.problem.empty()) {
    return not_queried(conf);
  }
  if (view.knowledge == node::Knowledge::kNotAskedYet) {
    return {kSubjectSlurmctld, Severity::kError, "did not answer in time", "",
            "scontrol ping; sdiag"};
  }
  if (view.knowledge == node::Knowledge::kUnknown) {
    Finding finding{kSubjectSlurmctld, Severity::kError, view.what, "", view.cure};
    if (conf.path.empty()) {
      finding.cure += fmt::format("{}{}", finding.cure.empty() ? "" : "; ", kNoneFromSlurmd);
    }
    return finding;
  }
  const auto& record = *facts.slurm.record;
  if (!counters.last_took) {
    return {kSubjectSlurmctld, Severity::kOk,
            fmt::format("not queried: {} reported at {} that {} is {}", facts.slurm.source,
                        rfc3339(facts.slurm.answered_at.value_or(WallTime{})), record.name,
                        record.state.raw())};
  }
  return {
      kSubjectSlurmctld, Severity::kOk,
      fmt::format("answered in {} ms through {}: {} is {}; the daemon queries it {}",
                  std::chrono::round<milliseconds>(*counters.last_took).count(), facts.slurm.source,
                  record.name, record.state.raw(), slurm::pace_text(counters.pace))};
}

Finding gpu_finding(const node::HostFacts& facts) {
  const auto condition = node::gpu_condition(facts);
  if (!condition) {
    return {kSubjectGpus, Severity::kInfo,
            facts.slurm.record
                ? "none in Slurm; the machine has " + gpu_words(facts)
                : "not compared: no answer from Slurm; the machine has " + gpu_words(facts)};
  }
  const Severity severity = condition->status == "True"    ? Severity::kOk
                            : condition->status == "False" ? Severity::kError
                                                           : Severity::kInfo;
  return {kSubjectGpus, severity, condition->message, "",
          severity == Severity::kError
              ? "check dmesg and the vendor's tools (nvidia-smi), or correct Gres= in slurm.conf"
              : ""};
}

Finding munge_finding(const MungeSeen& seen) {
  if (!seen.socket) {
    return {kSubjectMunge, Severity::kInfo,
            "not checked: slurm.conf was not read, so AuthType is unknown"};
  }
  if (seen.socket->empty()) {
    return {kSubjectMunge, Severity::kInfo, "not used: AuthType in slurm.conf is not auth/munge"};
  }
  if (!seen.problem.empty()) {
    return {kSubjectMunge, Severity::kError, seen.problem, "",
            "systemctl status munge; systemctl start munge"};
  }
  if (!seen.encode_error.empty()) {
    return {kSubjectMunge, Severity::kError, "cannot create credentials", seen.encode_error,
            "systemctl restart munge, and check /var/log/munge/munged.log"};
  }
  return {kSubjectMunge, Severity::kOk, "answers on " + *seen.socket};
}

Findings port_findings(const std::vector<PortSeen>& ports,
                       const std::optional<status::DaemonStatus>& daemon) {
  Findings out;
  for (const auto& port : ports) {
    if (port.port != 0) {
      out.push_back(port_finding(port, daemon));
    }
  }
  if (out.empty()) {
    out.push_back(
        {kSubjectPorts, Severity::kInfo, "none are used (endpoint.port, healthzPort: 0)"});
  }
  return out;
}

Finding daemon_finding(const Result<status::DaemonStatus>& answer) {
  if (!answer) {
    const Code code = answer.error().code;
    return {kSubjectDaemon,
            code == Code::kTimeout || code == Code::kDenied ? Severity::kError : Severity::kInfo,
            answer.error().message};
  }
  if (answer->healthy) {
    return {kSubjectDaemon, Severity::kOk, answer->summary};
  }
  return {kSubjectDaemon, Severity::kError, answer->summary, answer->problem};
}

}  // namespace slurmlet::cli
