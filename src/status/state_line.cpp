#include "status/state_line.h"

#include <fmt/format.h>

#include <vector>

#include "base/rfc3339.h"
#include "base/text.h"
#include "kube/status_error.h"
#include "node/slurm_failure.h"
#include "node/slurm_view.h"

namespace slurmlet::status {
namespace {

using Liveness = node::SlurmdFacts::Liveness;

const char* failure_text(node::SlurmFailure failure) { return node::kind_of(failure).brief; }

std::string api_text(const Report& report, const Error& error) {
  if (!error.request && !error.unanswered()) {
    return error.reason();  // a local error, such as an unwritable file
  }
  const std::string server =
      report.api_server.empty() ? "API server" : "API server " + report.api_server;
  const std::string& reason = error.reason();
  if (error.request && error.request->http_status != 0) {
    return fmt::format("{} returned {}", server, reason);
  }
  if (error.unanswered()) {
    return fmt::format("{} does not answer ({})", server, reason);
  }
  return fmt::format("{}: {}", server, reason);
}

std::string bootstrap_text(const Report& report) {
  const auto& csr = report.certificates.client_requests;
  if (csr && csr->pending_since) {
    return "waiting for approval of CSR " + csr->request_name;
  }
  if (report.api_error) {
    return "no certificate yet: " + api_text(report, *report.api_error);
  }
  return csr && !csr->problem.empty() ? "no certificate yet: " + csr->problem
                                      : "requesting its certificate";
}

std::string slurmd_text(const Report& report) {
  switch (report.facts.slurmd.liveness) {
    case Liveness::kAbsent:
      return "slurmd is down";
    case Liveness::kStopped:
      return "slurmd is suspended";
    case Liveness::kUnknown:
      return "slurmd state unknown";
    case Liveness::kRunning:
      break;
  }
  return "";
}

std::string slurm_text(const Report& report) {
  const node::HostFacts& facts = report.facts;
  const node::SlurmView view = node::slurm_view(facts);
  const auto& failure = report.facts.slurm.failure;
  switch (view.knowledge) {
    case node::Knowledge::kNotAskedYet:
      return "Slurm not queried yet";
    case node::Knowledge::kUnknown:
      return fmt::format("Slurm state unknown ({})",
                         failure ? failure_text(*failure) : "the last answer is too old");
    case node::Knowledge::kKnown:
      break;
  }
  std::string out = "Slurm " + node::known_state(facts).raw();
  if (failure) {
    out += report.facts.slurm.answered_at
               ? fmt::format(" at {} ({} since)", rfc3339(*report.facts.slurm.answered_at),
                             failure_text(*failure))
               : fmt::format(" ({})", failure_text(*failure));
  }
  return out;
}

std::string ready_text(const node::Condition& ready, bool slurmd_explains) {
  if (ready.status == "True") {
    return "Ready";
  }
  const std::string word = ready.status == "False" ? "NotReady" : "Ready unknown";
  return slurmd_explains ? word : fmt::format("{} ({})", word, ready.message);
}

std::string lease_text(const sync::LeaseStatus& lease, bool with_time) {
  if (!lease.last_error.empty()) {
    return fmt::format("lease not renewed{} ({})",
                       lease.renewed_at ? " since " + rfc3339(*lease.renewed_at) : "",
                       lease.last_error);
  }
  if (!lease.renewed_at) {
    return "lease not renewed yet";
  }
  // "2026-11-20T14:02:11Z" without its date.
  return with_time ? "lease renewed " + rfc3339(*lease.renewed_at).substr(11) : "lease renewed";
}

std::string unregistered_text(const Report& report) {
  if (!report.block_reason.empty()) {
    return "not registered: " + report.block_reason;
  }
  if (!report.certificates.client_problem.empty()) {
    return "not registered: " + report.certificates.client_problem;
  }
  return report.api_error ? "not registered: " + api_text(report, *report.api_error)
                          : "not registered yet";
}

std::string line_of(const Report& report, const sync::LeaseStatus& lease, bool with_time) {
  const std::string start = (report.node_name.empty() ? "slurmlet" : report.node_name) + ": ";
  if (report.bootstrapping) {
    return start + bootstrap_text(report);
  }
  if (report.ready.type.empty()) {
    return start + "starting";
  }
  const std::string slurmd = slurmd_text(report);
  std::vector<std::string> parts;
  if (report.registered) {
    parts.push_back(ready_text(report.ready, !slurmd.empty()));
  }
  if (!slurmd.empty()) {
    parts.push_back(slurmd);
  }
  parts.push_back(slurm_text(report));
  if (!report.registered) {
    return start + unregistered_text(report) + "; " + join(parts, ", ");
  }
  parts.push_back(lease_text(lease, with_time));
  if (!report.certificates.client_problem.empty()) {
    parts.push_back(report.certificates.client_problem);
  } else if (report.api_error) {
    parts.push_back("Node update failed: " + api_text(report, *report.api_error));
  } else if (!report.node_drift.empty()) {
    parts.push_back("Node differs: " + report.node_drift);
  }
  return start + join(parts, ", ");
}

}  // namespace

std::string state_line(const Report& report, const sync::LeaseStatus& lease) {
  return kube::one_line(line_of(report, lease, true), kMaxStateLine);
}

std::string state_text(const Report& report, const sync::LeaseStatus& lease) {
  return kube::one_line(line_of(report, lease, false), kMaxStateLine);
}

}  // namespace slurmlet::status
