#pragma once

// Approves the certificate requests of nodes that are what Cluster API says they are
// (approval_rules.h). What it does not approve is left alone, with an Event on the Node.
//
// A step object; its calls of the API server block. Not thread-safe.

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
  std::string bootstrap_group;  // whose client certificates are approved; "" = nobody's
  bool dry_run = false;
};

struct CertificateWatch {
  std::string signer;  // whose requests it tells
  kube::Watch<kube::CertificateRequest>* watch;
};

// What must outlive it, and how it looks at the rest of the site.
struct CertificateContext {
  std::vector<CertificateWatch> requests;
  kube::ApprovalApi& api;
  sync::EventSink& events;
  std::function<std::optional<MachineNames>(const std::string& node)> machine_of;
  kube::NodeApi& nodes;           // of whatever kind
  kube::LeaseApi& leases;         // theirs
  std::function<bool()> may_act;  // asked before each call
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
    std::string node;  // that it is for, "" = none
    std::string told = {};
    bool refused = false;   // it was not approved, so far
    LeaseWatch lease = {};  // the Node's
  };
  using Requests = std::map<std::string, Waiting>;  // by name

  void take(kube::WatchEvent<kube::CertificateRequest>& event, const std::string& signer);
  void put(kube::CertificateRequest request);
  void erase(const std::string& name);
  // Whether the API server was called.
  bool decide(Waiting& waiting, Now now);
  // `asked`: whether the API server was called.
  Result<CertificateRuling> rule(Waiting& waiting, Now now, bool& asked);
  Result<LeaseWatch::Seen> look_at_node(Waiting& waiting, Now now);
  void failed(Waiting& waiting, const Error& error, Now now);
  void tell(Waiting& waiting, bool warning, const std::string& what, Now now);

  CertificateSettings settings_;
  CertificateContext context_;
  Backoff backoff_;
  KeyedBackoff tried_;                                      // by request
  Requests waiting_;                                        // for a decision
  std::map<std::string, std::deque<std::string>> of_user_;  // their names, oldest first
  SteadyTime paused_until_{};
  std::uint64_t approved_ = 0, failures_ = 0;
};

}  // namespace slurmlet::op
