#pragma once

// The API servers that the operator calls, with their connections, APIs and watches. Pure wiring:
// members use those above them. One thread.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/host_name.h"
#include "credentials/access.h"
#include "kube/certificate_api.h"
#include "kube/rest_api.h"
#include "kube/scale_api.h"
#include "kube/watch.h"
#include "node/vocabulary.h"
#include "operator/local_settings.h"
#include "operator/options.h"
#include "operator/rules/power_rules.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

// Calls to the Machines' server block the loop, and two in a step may time out, but the Lease must
// be renewed within 10 s.
inline constexpr Duration kMachineCall = std::chrono::seconds{3};
// Writes to a single Node may hang, for example in a webhook.
inline constexpr Duration kNodeCall = std::chrono::seconds{5};
// For all objects together, where client-go limits each.
inline constexpr sync::EventLimits kEventLimits{200, 2, 8192};

inline sync::EventSink event_sink(kube::EventApi& api) {
  return {api, host_name(), system_random(), "slurmlet-operator", kEventLimits};
}

// Types that the operator reads of each Node.
inline kube::ConditionTypes read_conditions(const Options& options) {
  auto out = condition_types(options.health);
  out.insert({node::vocabulary::kReady, kAsleep});
  return out;
}

// The API server of the Nodes.
struct NodeServer {
  const Options& options;
  credentials::ApiAccess access;
  std::unique_ptr<http::Client> client;
  kube::CallOptions calls{};
  kube::RestSiteApi site{*client, {nullptr, {}, kNodeCall}, read_conditions(options)};
  kube::RestLeaseApi leases{*client, calls, options.leader_namespace};
  kube::RestLeaseApi node_leases{*client, calls};
  kube::RestNodeApi node_api{*client, calls};
  kube::RestEventApi event_api{*client, calls};
  kube::RestApprovalApi approvals{*client, calls};
  sync::EventSink events = event_sink(event_api);
  std::unique_ptr<kube::Watch<kube::SiteNode>> nodes =
      kube::watch_site_nodes(*client, calls, system_random(), read_conditions(options));
  std::vector<std::unique_ptr<kube::Watch<kube::CertificateRequest>>> certificates{};
};

// The API server of the Machines, which may be the same.
class MachineServer {
 public:
  // `connection`: nothing if it is the same.
  MachineServer(const Options& options, const Clock& clock, NodeServer& nodes,
                std::optional<ApiConnection> connection)
      : own(std::move(connection)),
        client_(own ? *own->client : *nodes.client),
        clock_(clock),
        api(client_, calls(kMachineCall)),
        scale(client_, calls(kMachineCall), options.machine_cluster),
        event_api(client_, calls(kMachineCall)),
        machines(kube::watch_machines(client_, options.machine_cluster, calls(), system_random())) {
  }

  // The last Date header plus our steady clock, since the wall clock may be set meanwhile.
  std::optional<WallTime> time(SteadyTime now) const {
    return date_
               ? std::optional{date_->wall +
                               std::chrono::duration_cast<WallTime::duration>(now - date_->steady)}
               : std::nullopt;
  }

  std::optional<ApiConnection> own;

 private:
  void note_date(WallTime date) { date_ = Now{clock_.now().steady, date}; }
  kube::CallOptions calls(Duration timeout = kube::kCallTimeout) {
    return {nullptr, [this](WallTime date) { note_date(date); }, timeout};
  }

  http::Client& client_;
  const Clock& clock_;
  std::optional<Now> date_;

 public:
  kube::RestMachineApi api;
  kube::RestScaleApi scale;
  kube::RestEventApi event_api;
  sync::EventSink events = event_sink(event_api);
  const std::unique_ptr<kube::Watch<kube::Machine>> machines;
};

}  // namespace slurmlet::op
