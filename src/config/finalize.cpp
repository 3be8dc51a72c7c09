// What concerns several settings at once.

#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "config/draft.h"
#include "config/duration.h"
#include "config/load.h"

namespace slurmlet::config {
namespace {

void check_less(Draft& draft, std::string_view low_key, Milliseconds low, std::string_view high_key,
                Milliseconds high) {
  if (low >= high) {
    draft.reject(low_key, fmt::format("is {}; it must be shorter than {}, which is {}",
                                      format_duration(low), high_key, format_duration(high)));
  }
}

constexpr Milliseconds kShortestAuto{60'000};  // of slurm.pollInterval

// A setting that was left alone follows the poll interval that was chosen.
void fit_slurm_defaults(Draft& draft) {
  auto& slurm = draft.settings.slurm;
  const Milliseconds poll = slurm.poll_interval.value_or(kShortestAuto);
  if (!draft.is_set("slurm.commandTimeout") && slurm.command_timeout >= poll) {
    slurm.command_timeout = poll * 3 / 4;
  }
}

// An automatic interval is at least the shortest, and no longer than what is set beside it allows.
void check_slurm(Draft& draft) {
  const auto& slurm = draft.settings.slurm;
  const Milliseconds poll = slurm.poll_interval.value_or(kShortestAuto);
  check_less(draft, "slurm.commandTimeout", slurm.command_timeout, "slurm.pollInterval", poll);
  if (slurm.stale_after) {
    check_less(draft, "slurm.pollInterval", poll, "slurm.staleAfter", *slurm.stale_after);
  }
  if (slurm.max_backoff && *slurm.max_backoff < poll) {
    draft.reject("slurm.maxBackoff",
                 fmt::format("is {}; it must not be shorter than slurm.pollInterval, which is {}",
                             format_duration(*slurm.max_backoff), format_duration(poll)));
  }
}

bool has(const Draft& draft, std::string_view key) {
  return !value_text(*find_row(key), draft.settings).empty();
}

// Two files that are only useful together.
void check_pair(Draft& draft, std::string_view first, std::string_view second) {
  if (has(draft, first) != has(draft, second)) {
    const auto& [set, missing] =
        has(draft, first) ? std::pair{first, second} : std::pair{second, first};
    draft.reject(set, fmt::format("is set, but {} is not; set both or none", missing));
  }
}

void check_not_both(Draft& draft, std::string_view first, std::string_view second) {
  if (has(draft, first) && has(draft, second)) {
    draft.reject(first,
                 fmt::format("and {} are both set; remove one of them", draft.name_of(second)));
  }
}

void check_bootstrap(Draft& draft) {
  const auto& kubernetes = draft.settings.kubernetes;
  check_not_both(draft, "kubernetes.bootstrapKubeconfig", "kubernetes.bootstrapTokenFile");
  check_not_both(draft, "kubernetes.bootstrapKubeconfig", "kubernetes.server");
  check_not_both(draft, "kubernetes.caCertHashes", "kubernetes.caFile");
  check_not_both(draft, "kubernetes.caCertHashes", "kubernetes.caData");
  check_not_both(
      draft, "kubernetes.bootstrapTokenFile",
      kubernetes.token_file.empty() ? "kubernetes.certificateFile" : "kubernetes.tokenFile");
  if (!kubernetes.bootstrap_token_file.empty() && kubernetes.server.empty()) {
    draft.reject("kubernetes.bootstrapTokenFile",
                 "is set without kubernetes.server; set the address of the API server, or use "
                 "kubernetes.bootstrapKubeconfig");
  }
}

// Where a bootstrap leaves what it got.
void fit_bootstrap_defaults(Settings& settings) {
  auto& kubernetes = settings.kubernetes;
  if (kubernetes.cert_dir.empty()) {
    kubernetes.cert_dir = settings.state_dir + "/pki";
  }
  if (kubernetes.kubeconfig.empty() && kubernetes.has_bootstrap()) {
    kubernetes.kubeconfig = settings.state_dir + "/kubeconfig";
  }
}

void check_durations(Draft& draft) {
  const auto& kubernetes = draft.settings.kubernetes;
  if (kubernetes.lease_duration.count() % 1000 != 0) {
    draft.reject("kubernetes.leaseDuration",
                 fmt::format("is {}; a lease lasts whole seconds",
                             format_duration(kubernetes.lease_duration)));
  }
  // The API server rejects less, and a fraction.
  if (const auto wanted = kubernetes.certificate_duration.count();
      wanted != 0 && (wanted < 600'000 || wanted % 1000 != 0)) {
    draft.reject("kubernetes.certificateDuration",
                 fmt::format("is {}; it must be whole seconds and at least 10m, or 0s",
                             format_duration(kubernetes.certificate_duration)));
  } else if (wanted != 0 && wanted < 86'400'000) {
    draft.add_warning(
        fmt::format("{} is {}: a node that is off, or without the API server, for "
                    "longer needs a bootstrap token that is still valid",
                    draft.name_of("kubernetes.certificateDuration"),
                    format_duration(kubernetes.certificate_duration)));
  }
}

void check_kubernetes(Draft& draft) {
  const auto& kubernetes = draft.settings.kubernetes;
  check_durations(draft);
  check_pair(draft, "kubernetes.certificateFile", "kubernetes.keyFile");
  check_not_both(draft, "kubernetes.caFile", "kubernetes.caData");
  if (kubernetes.has_bootstrap()) {
    check_bootstrap(draft);
    return;
  }
  if (!kubernetes.ca_cert_hashes.empty()) {
    draft.reject("kubernetes.caCertHashes",
                 "is set without kubernetes.bootstrapTokenFile; only a bootstrap token can "
                 "find the CA");
  }
  if (!kubernetes.kubeconfig.empty() && !kubernetes.server.empty()) {
    draft.reject("kubernetes.kubeconfig",
                 fmt::format("and {} are both set; a kubeconfig names the server itself, so remove "
                             "one of them",
                             draft.name_of("kubernetes.server")));
  } else if (!kubernetes.server.empty() && kubernetes.token_file.empty() &&
             kubernetes.certificate_file.empty()) {
    draft.reject("kubernetes.server",
                 "is set without a credential; set kubernetes.tokenFile, or "
                 "kubernetes.certificateFile and kubernetes.keyFile");
  }
}

void check_recreate(Draft& draft) {
  const auto& node = draft.settings.node;
  if (node.recreate == Recreate::kNever && node.recreate_after) {
    draft.reject("node.recreateAfter",
                 "is set, but node.recreate is never: a deleted Node is then never created "
                 "again; remove one of them");
  }
}

void check_endpoint(Draft& draft) {
  const auto& endpoint = draft.settings.endpoint;
  if (endpoint.port != 0 && endpoint.port == endpoint.healthz_port) {
    draft.reject("endpoint.healthzPort",
                 fmt::format("is {}, the same as endpoint.port; choose another, or 0 for none",
                             endpoint.healthz_port));
  }
  check_pair(draft, "endpoint.certificateFile", "endpoint.keyFile");
}

}  // namespace

Result<Settings> finalize(Draft draft, bool needs_api_server) {
  fit_slurm_defaults(draft);
  check_slurm(draft);
  check_kubernetes(draft);
  check_endpoint(draft);
  check_recreate(draft);
  fit_bootstrap_defaults(draft.settings);
  if (!draft.problems().empty()) {
    return Error{Code::kInvalid, join(draft.problems(), "\n")};
  }
  const auto& kubernetes = draft.settings.kubernetes;
  if (needs_api_server && kubernetes.kubeconfig.empty() && kubernetes.server.empty()) {
    return Error{Code::kNotFound,
                 "no API server is configured; run slurmlet join, or set kubernetes.kubeconfig in "
                 "/etc/slurmlet/config.d/10-site.yaml"};
  }
  return std::move(draft.settings);
}

}  // namespace slurmlet::config
