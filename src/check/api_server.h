#pragma once

// The API server as a check sees it: is it reached, does it accept the credential, is the clock
// right, and what may the credential do. Blocks, each call at most as long as its options say.

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "check/finding.h"
#include "config/settings.h"
#include "credentials/access.h"
#include "kube/review_api.h"

namespace slurmlet::check {

// The words for it: where each thing is set, and what to do about a credential that it rejects.
struct ServerNames {
  std::string url;
  std::string url_place, ca_place;
  std::string ca_expired = {};  // "at 2026-…" where each CA there has; "" = not
  std::string credential = "this node's credential";
  std::string credential_fix = "see credential; use one signed by this cluster's CA";
};
ServerNames server_names(const credentials::ApiAccess& access,
                         const config::KubernetesSettings& kubernetes);

struct ServerAnswer {
  std::optional<Error> problem;  // nothing: it was reached and accepts us
  std::string version, user;     // user "" = the server does not say
  Duration took{};               // of the first answer, connecting included
  std::optional<Duration> skew;  // our clock ahead of the server's; nothing without an answer
};
ServerAnswer ask_server(http::Client& client, kube::CallOptions options);

// Pure, as clock_findings().
Finding server_finding(const ServerNames& words, const ServerAnswer& answer);
Findings clock_findings(const ServerAnswer& answer);

// Which of `needed` the credential has.
Findings rights_findings(http::Client& client, const kube::CallOptions& options,
                         const std::vector<kube::OwnRight>& needed);

}  // namespace slurmlet::check
