#include "cli/check/check_identity.h"

#include <fmt/format.h>

#include "base/rfc3339.h"

namespace slurmlet::cli {
namespace {

constexpr unsigned kForOthers = 0007;
constexpr int kLastPart = 10;  // of a certificate's life: somebody should have renewed it

// Those that every user of the machine can read.
void add_open_files(const char* subject, const std::vector<SecretFile>& secrets, Findings& out) {
  for (const auto& file : secrets) {
    if ((file.mode & kForOthers) != 0) {
      out.push_back(
          {subject, Severity::kWarning,
           fmt::format("{} contains a secret and is accessible to every user (mode {:04o})",
                       file.path, file.mode),
           "", fmt::format("chmod o= {}", file.path)});
    }
  }
}

// Into that file; what systemd handed to the unit is a copy.
std::string put_into(const std::string& file) {
  constexpr std::string_view kHandedOver = "/run/credentials/";
  if (!file.starts_with(kHandedOver)) {
    return " into " + file + "; it is reloaded without a restart";
  }
  return " into /etc/credstore/" + file.substr(file.rfind('/') + 1) +
         " (or where LoadCredential finds it), then systemctl restart slurmlet";
}

// A plain user may not look; what is wrong, if anything, only root can tell.
bool is_hidden(const std::optional<Error>& problem) {
  return problem && problem->code == Code::kDenied;
}

Finding hidden(const char* subject, const Error& problem) {
  return {subject, Severity::kWarning, problem.message, "", "run slurmlet check as root"};
}

std::string fresh_credential(const CredentialSeen& seen) {
  if (seen.has_bootstrap) {
    return "nothing to do: slurmlet requests another one with the bootstrap token; see bootstrap";
  }
  return fmt::format(
      "put a fresh credential for system:node:{} into {}, or set kubernetes.bootstrapKubeconfig",
      seen.node_name, seen.source);
}

// With a bootstrap token the daemon mends it by itself.
Severity lost(const CredentialSeen& seen) {
  return seen.has_bootstrap ? Severity::kWarning : Severity::kError;
}

Finding certificate_finding(const CredentialSeen& seen, const tls::CertificateSummary& certificate,
                            WallTime now) {
  const std::string wanted = "system:node:" + seen.node_name;
  const std::string& name = certificate.common_name;
  const auto finding = [&](Severity severity, std::string found, std::string cure) {
    return Finding{kSubjectCredential, severity, std::move(found), "", std::move(cure)};
  };
  if (name.starts_with("system:node:") && name != wanted) {
    return finding(lost(seen),
                   fmt::format("the client certificate in {} is for {}, this node is {}",
                               seen.source, name, seen.node_name),
                   seen.has_bootstrap
                       ? fresh_credential(seen)
                       : fmt::format("set --nodename {}, or a credential for {}",
                                     name.substr(std::string_view{"system:node:"}.size()), wanted));
  }
  if (certificate.not_after <= now) {
    return finding(lost(seen),
                   fmt::format("the client certificate in {} expired at {}", seen.source,
                               rfc3339(certificate.not_after)),
                   fresh_credential(seen));
  }
  if (certificate.not_before > now) {
    return finding(Severity::kError,
                   fmt::format("the client certificate in {} is not valid before {}, and this "
                               "machine's clock shows {}",
                               seen.source, rfc3339(certificate.not_before), rfc3339(now)),
                   "set this machine's clock (timedatectl, chronyc tracking)");
  }
  if (!name.starts_with("system:node:")) {
    return finding(Severity::kWarning,
                   fmt::format("the client certificate in {} is for \"{}\", not for a node: it may "
                               "have more rights than a compute node should",
                               seen.source, name),
                   "use one for " + wanted + " with the organization system:nodes");
  }
  std::string valid =
      fmt::format("{} in {}, valid until {}", name, seen.source, rfc3339(certificate.not_after));
  const auto life = certificate.not_after - certificate.not_before;
  if ((certificate.not_after - now) * kLastPart < life && !seen.has_bootstrap) {
    return finding(Severity::kWarning, std::move(valid), fresh_credential(seen));
  }
  return finding(Severity::kOk, std::move(valid), "");
}

std::string valid_until(const tls::CertificateSummary& certificate) {
  return "valid until " + rfc3339(certificate.not_after);
}

Finding serving(Severity severity, std::string found, std::string cure = "") {
  return {kSubjectServing, severity, std::move(found), "", std::move(cure)};
}

Finding asked_serving_finding(const ServingSeen& seen, WallTime now) {
  if (seen.daemon && !seen.daemon->serving_request.empty()) {
    const std::string& request = seen.daemon->serving_request;
    return serving(
        Severity::kWarning,
        fmt::format(
            "{} is waiting for approval; until then kubectl top and others cannot verify this node",
            request),
        "kubectl certificate approve " + request);
  }
  if (seen.daemon && !seen.daemon->serving_problem.empty()) {
    return serving(Severity::kWarning, seen.daemon->serving_problem);
  }
  if (seen.problem && seen.problem->code != Code::kNotFound) {
    return serving(Severity::kInfo, "not checked: " + seen.problem->message);
  }
  if (!seen.certificate) {
    return serving(Severity::kInfo,
                   "none yet: slurmlet requests one from the cluster once the Node is registered");
  }
  if (seen.certificate->not_after <= now) {
    return serving(Severity::kWarning,
                   "the one the cluster issued expired at " + rfc3339(seen.certificate->not_after),
                   "start slurmlet, and approve its new request (kubectl get csr)");
  }
  return serving(Severity::kOk, "issued by the cluster, " + valid_until(*seen.certificate));
}

}  // namespace

Findings metadata_findings(const daemon::NodeIdentity& identity, const std::string& state_dir) {
  Findings out;
  for (const auto& note : identity.notes) {
    if (note.kind == metal3::Note::Kind::kProblem) {
      out.push_back({kSubjectMetadata, Severity::kWarning, note.text});
    }
  }
  const auto& metal3 = identity.metal3;
  const std::string uuid = daemon::metal3_uuid_of(identity);
  const std::string provider_id = !identity.policy.provider_id.empty() || !metal3
                                      ? identity.policy.provider_id
                                      : metal3->provider_id;
  if (uuid.empty() && provider_id.empty()) {
    out.push_back({kSubjectMetadata, Severity::kInfo,
                   "none: the Node works, but Cluster API will not match it to a Machine"});
    return out;
  }
  const bool saved = metal3 && metal3->source.starts_with(state_dir + "/");
  out.push_back(
      {kSubjectMetadata, saved ? Severity::kInfo : Severity::kOk,
       fmt::format(
           "{}: uuid {}, providerID {}", metal3 ? metal3->source : "the configuration",
           uuid.empty() ? "none" : uuid,
           provider_id.empty() ? "none (Cluster API's Metal3 provider sets it)" : provider_id)});
  if (identity.reprovisioned) {
    out.push_back({kSubjectIdentity, Severity::kWarning,
                   "the state directory contains the identity of another Machine: this host was "
                   "reprovisioned",
                   "", "start or restart slurmlet, which then discards that identity"});
  }
  return out;
}

Findings credential_findings(const CredentialSeen& seen, WallTime now) {
  Findings out;
  if (!seen.has_server) {
    out.push_back({kSubjectCredential, Severity::kError, "no API server is configured", "",
                   "set kubernetes.kubeconfig or kubernetes.bootstrapKubeconfig"});
  } else if (seen.problem && seen.is_missing && seen.has_bootstrap) {
    out.push_back({kSubjectCredential, Severity::kInfo,
                   "none yet: slurmlet requests one with the bootstrap token"});
  } else if (is_hidden(seen.problem)) {
    out.push_back(hidden(kSubjectCredential, *seen.problem));
  } else if (seen.problem) {
    out.push_back(
        {kSubjectCredential, lost(seen), seen.problem->message, "", fresh_credential(seen)});
  } else if (seen.certificate) {
    out.push_back(certificate_finding(seen, *seen.certificate, now));
  } else {
    out.push_back({kSubjectCredential, Severity::kOk, "a bearer token from " + seen.source});
  }
  add_open_files(kSubjectCredential, seen.secrets, out);
  return out;
}

Findings bootstrap_findings(const BootstrapSeen& seen) {
  Findings out;
  if (is_hidden(seen.problem)) {
    out.push_back(hidden(kSubjectBootstrap, *seen.problem));
  } else if (seen.problem) {
    out.push_back({kSubjectBootstrap, seen.needed ? Severity::kError : Severity::kInfo,
                   seen.problem->message, "",
                   "put a fresh bootstrap token (kubeadm token create)" + put_into(seen.file)});
  } else {
    out.push_back({kSubjectBootstrap, Severity::kOk, "a token in " + seen.file});
  }
  add_open_files(kSubjectBootstrap, seen.secrets, out);
  return out;
}

Finding serving_finding(const ServingSeen& seen, WallTime now) {
  if (seen.given_file.empty() && !seen.asked_of_cluster) {
    return serving(Severity::kInfo,
                   "self-signed: metrics-server can scrape this node only without verifying it");
  }
  if (seen.given_file.empty()) {
    return asked_serving_finding(seen, now);
  }
  if (seen.problem) {
    return serving(Severity::kError, seen.problem->message,
                   "put a certificate (PEM)" + put_into(seen.given_file));
  }
  if (seen.certificate && seen.certificate->not_after <= now) {
    return serving(Severity::kError,
                   seen.given_file + " expired at " + rfc3339(seen.certificate->not_after),
                   "put a valid one" + put_into(seen.given_file));
  }
  return serving(Severity::kOk,
                 seen.given_file + (seen.certificate ? ", " + valid_until(*seen.certificate) : ""));
}

}  // namespace slurmlet::cli
