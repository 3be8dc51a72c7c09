#pragma once

// Approves certificate requests of nodes that match their Machine in Cluster API
// (approval_rules.h). Others are left pending, with an Event on the Node.
//
// A step object; its calls to the API server block. Not thread-safe.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/delay.h"
#include "base/keyed_backoff.h"
#include "kube/certificate_api.h"
#include "operator/machines/approval_rules.h"
#include "operator/site/lease_watch.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

struct CertificateSettings {
  std::string bootstrap_group;  // client certificates are approved for it; "" = none
  bool dry_run = false;
};

struct CertificateWatch {
  std::string signer;  // of the requests that it watches
  kube::Watch<kube::CertificateRequest>* watch;
};

// Must outlive the approver.
struct CertificateContext {
  std::vector<CertificateWatch> requests;
  kube::ApprovalApi& api;
  sync::EventSink& events;
  std::function<std::optional<MachineNames>(const std::string& node)> machine_of;
  kube::NodeApi& nodes;
  kube::LeaseApi& leases;
  std::function<bool()> may_act;  // checked before each call
};

class CertificateApprover {
 public:
  CertificateApprover(CertificateSettings settings, CertificateContext context, Random random);

  // Nothing is decided while the Machines are not `certain`.
  SteadyTime step(Now now, bool certain);
  std::uint64_t approved() const { return approved_; }
  std::uint64_t failures() const { return failures_; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    kube::CertificateRequest request;
    std::string node;  // named in the request; "" = none
    std::string reported = {};
    bool rejected = false;
    LeaseWatch lease = {};
  };
  using Requests = std::map<std::string, Waiting>;  // by name

  void take(kube::WatchEvent<kube::CertificateRequest>& event, const std::string& signer);
  void put(kube::CertificateRequest request);
  void erase(const std::string& name);
  // Returns whether it called the API server.
  bool decide(Waiting& waiting, Now now);
  // Sets `called` if it called the API server.
  Result<CertificateRuling> rule(Waiting& waiting, Now now, bool& called);
  Result<LeaseWatch::Seen> check_liveness(Waiting& waiting, Now now);
  void failed(Waiting& waiting, const Error& error, Now now);
  void report(Waiting& waiting, bool warning, const std::string& what, Now now);

  CertificateSettings settings_;
  CertificateContext context_;
  Backoff backoff_;
  KeyedBackoff tried_;  // by request
  Requests waiting_;
  std::map<std::string, std::deque<std::string>> of_user_;  // request names, oldest first
  SteadyTime paused_until_{};
  std::uint64_t approved_ = 0, failures_ = 0;
};

}  // namespace slurmlet::op
