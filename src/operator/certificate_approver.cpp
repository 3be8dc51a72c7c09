#include "operator/certificate_approver.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/vocabulary.h"

namespace slurmlet::op {
namespace {

// Anybody with a credential can create requests, so their number and size are bounded.
constexpr std::size_t kMostWaiting = 10'000;
constexpr std::size_t kLargestRequest = 8 * 1024;
// Per requester: the newest requests are kept. A bootstrap token may be shared by a site.
constexpr std::size_t kMostOfNode = 10;
constexpr std::size_t kMostOfUser = 1000;

std::size_t most_of(const std::string& username) {
  return username.starts_with(node::vocabulary::kNodeUser) ? kMostOfNode : kMostOfUser;
}

// A request may arrive before Cluster API knows its Machine's addresses.
constexpr Duration kFirstCertificatePause = std::chrono::seconds{5};
constexpr Duration kLongestCertificatePause = std::chrono::minutes{10};

bool is_ready(const node::ObservedNode& node) {
  return std::any_of(node.conditions.begin(), node.conditions.end(), [](const auto& condition) {
    return condition.condition.type == "Ready" && condition.condition.status == "True";
  });
}

}  // namespace

CertificateApprover::CertificateApprover(CertificateSettings settings, CertificateContext context,
                                         Random random)
    : settings_(std::move(settings)),
      context_(std::move(context)),
      backoff_(std::chrono::seconds{1}, std::chrono::seconds{2}, std::chrono::minutes{1},
               std::move(random)),
      tried_(kFirstCertificatePause, kLongestCertificatePause) {}

void CertificateApprover::erase(const std::string& name) {
  const auto found = waiting_.find(name);
  if (found == waiting_.end()) {
    return;
  }
  const auto of_user = of_user_.find(found->second.request.username);
  std::erase(of_user->second, name);
  if (of_user->second.empty()) {
    of_user_.erase(of_user);
  }
  tried_.forget(name);
  waiting_.erase(found);
}

void CertificateApprover::put(kube::CertificateRequest request) {
  if (request.approved || request.denied || request.failed) {
    erase(request.name);
    return;
  }
  const auto known = waiting_.find(request.name);
  const bool fits = request.request_pem.size() <= kLargestRequest &&
                    (known != waiting_.end() || waiting_.size() < kMostWaiting);
  if (fits && (known == waiting_.end() || known->second.request.uid != request.uid)) {
    const std::string name = request.name;
    std::string node = requested_node(request);
    erase(name);
    auto& others = of_user_[request.username];
    others.push_back(name);
    waiting_.insert_or_assign(name, Waiting{std::move(request), std::move(node)});
    if (others.size() > most_of(waiting_.at(name).request.username)) {
      // Rejected requests go first, so that users of a shared token do not displace each other's.
      const auto rejected = std::find_if(others.begin(), others.end(), [this](const auto& other) {
        return waiting_.at(other).rejected;
      });
      erase(std::string{rejected == others.end() ? others.front() : *rejected});
    }
  } else if (fits) {
    known->second.request = std::move(request);
  }
}

void CertificateApprover::take(kube::WatchEvent<kube::CertificateRequest>& event,
                               const std::string& signer) {
  using Type = kube::WatchEvent<kube::CertificateRequest>::Type;
  if (event.type == Type::kReplaced) {
    std::vector<std::string> gone;
    for (const auto& [name, waiting] : waiting_) {
      if (waiting.request.signer_name == signer &&
          std::none_of(event.objects.begin(), event.objects.end(),
                       [&](const auto& listed) { return listed.name == name; })) {
        gone.push_back(name);
      }
    }
    std::for_each(gone.begin(), gone.end(), [this](const auto& name) { erase(name); });
  }
  for (auto& request : event.objects) {
    if (event.type == Type::kDeleted) {
      erase(request.name);
    } else {
      put(std::move(request));
    }
  }
}

void CertificateApprover::report(Waiting& waiting, bool warning, const std::string& what, Now now) {
  if (std::exchange(waiting.reported, what) == what) {
    return;
  }
  if (const auto of_user = of_user_.find(waiting.request.username);
      warning && of_user != of_user_.end() && of_user->second.size() >= most_of(of_user->first)) {
    return;  // a requester at its limit gets no more Events
  }
  const std::string& node = waiting.node;
  const std::string message = "certificate request " + waiting.request.name + what;
  log::info((node.empty() ? "" : "Node " + node + ": ") + message);
  if (!node.empty()) {
    // Often the Node does not exist yet. kubectl describe searches for its name as uid, too.
    context_.events.emit({"Node", "", node, node}, warning,
                         warning ? "CertificateNotApproved" : "CertificateApproved", message,
                         waiting.request.signer_name, now);
  }
}

bool CertificateApprover::decide(Waiting& waiting, Now now) {
  tried_.failed(waiting.request.name, now.steady);
  bool called = false;
  const auto ruling = rule(waiting, now, called);
  if (!ruling) {
    failed(waiting, ruling.error(), now);
    return true;
  }
  if (!ruling->approve || settings_.dry_run) {
    if (ruling->approve) {
      report(waiting, false, " would be approved", now);
    } else if (!ruling->why.empty()) {
      waiting.rejected = true;
      report(waiting, true, " was not approved: " + ruling->why, now);
    }
    return called;
  }
  if (!context_.may_act()) {
    return true;
  }
  const Status done = context_.api.approve(
      waiting.request, "slurmlet-operator: the request matches the node's Machine");
  if (done) {
    ++approved_;
    backoff_.reset();
    report(waiting, false, " was approved", now);
    waiting.request.approved = true;
    return true;
  }
  failed(waiting, done.error(), now);
  return true;
}

void CertificateApprover::failed(Waiting& waiting, const Error& error, Now now) {
  ++failures_;
  report(waiting, true, " could not be approved: " + error.message, now);
  if (error.unanswered()) {
    paused_until_ = now.steady + backoff_.next(error.retry_after);
  }
}

// A client certificate makes its owner that Node, so the Node must not be in use already.
Result<CertificateRuling> CertificateApprover::rule(Waiting& waiting, Now now, bool& called) {
  using Seen = LeaseWatch::Seen;
  const auto by = [&](bool is_up) {
    return rule_certificate(waiting.request, context_.machine_of(waiting.node), is_up,
                            settings_.bootstrap_group);
  };
  const CertificateRuling ruling = by(false);
  if (!ruling.approve || waiting.request.signer_name != kube::kClientSigner) {
    return ruling;
  }
  called = true;
  const auto seen = TRY(check_liveness(waiting, now));
  if (seen == Seen::kNotLongEnough) {
    tried_.retry_by(waiting.request.name, waiting.lease.known_at());
    return CertificateRuling{};
  }
  return by(seen == Seen::kRenewed);
}

// A Node that is not Ready may still be up (Slurm is down), so its Lease decides.
Result<LeaseWatch::Seen> CertificateApprover::check_liveness(Waiting& waiting, Now now) {
  const auto node = context_.nodes.get(waiting.node);
  if (!node && node.error().code != Code::kNotFound) {
    return node.error();
  }
  if (node && is_ready(*node)) {
    return LeaseWatch::Seen::kRenewed;
  }
  const auto lease = context_.leases.get(waiting.node);
  if (!lease && lease.error().code != Code::kNotFound) {
    return lease.error();
  }
  if (!lease && !node) {
    return LeaseWatch::Seen::kNotRenewed;
  }
  return waiting.lease.observe(lease, now.steady);
}

SteadyTime CertificateApprover::step(Now now, bool certain) {
  SteadyTime next = kNever;
  for (const auto& [signer, watch] : context_.requests) {
    std::vector<kube::WatchEvent<kube::CertificateRequest>> events;
    next = std::min(next, watch->step(now, events));
    for (auto& event : events) {
      take(event, signer);
    }
  }
  if (!certain) {
    return next;
  }
  int calls = 0;
  std::vector<std::string> approved;
  for (auto& [name, waiting] : waiting_) {
    if (tried_.may_try(name, now.steady) && now.steady >= paused_until_ &&
        calls < sync::kCallsPerStep && context_.may_act()) {
      calls += decide(waiting, now) ? 1 : 0;
    }
    if (waiting.request.approved) {
      approved.push_back(name);
    } else {
      next = std::min(next, std::max({tried_.not_before(name), paused_until_, now.steady}));
    }
  }
  std::for_each(approved.begin(), approved.end(), [this](const auto& name) { erase(name); });
  return next;
}

}  // namespace slurmlet::op
