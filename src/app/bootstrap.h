#pragma once

// How a node without a credential of its own gets one: with the bootstrap token, by a certificate
// signing request that somebody approves
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/). Leaves the
// key and certificate in kubernetes.certDir and a kubeconfig that names them.

#include <filesystem>
#include <string>
#include <vector>

#include "app/service_report.h"
#include "app/signals.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/turn_guard.h"
#include "config/settings.h"
#include "kube/request_counter.h"

namespace slurmlet::app {

bool has_bootstrap(const config::Settings& settings);

// What a bootstrap needs: its kubeconfig or token, and the CA. Another one is worth another try.
std::vector<std::filesystem::path> bootstrap_files(const config::Settings& settings);

// Whether the kubeconfig cannot be used as it is: missing, broken, with a client certificate that
// expired or is for another node. Its reason, for the log; "" if there is no need.
std::string bootstrap_need(const config::Settings& settings, const std::string& node_name,
                           WallTime now);

enum class BootstrapOutcome { kDone, kStopped, kReload };

// Returns when there is a credential or a signal came; waits for approval however long it takes,
// and for the API server, a valid token or a usable kubeconfig likewise. An Error only for what a
// person must change in the configuration.
Result<BootstrapOutcome> bootstrap(const config::Settings& settings, const std::string& node_name,
                                   Signals& signals, const Clock& clock,
                                   kube::RequestCounter& requests, ServiceReport& service,
                                   TurnGuard& turns);

// Whether the API server takes the bootstrap token: one question that changes nothing. Asked before
// a certificate that looks good is given up, since a server that refuses everybody for a while must
// not cost a fleet its credentials.
Status probe_bootstrap(const config::Settings& settings, const Signals& signals, const Clock& clock,
                       kube::RequestCounter& requests);

// Forgets the certificate that the API server refuses, so that the next bootstrap asks for another.
// Its file stays, only the link to it goes.
Status discard_certificate(const config::Settings& settings);

}  // namespace slurmlet::app
