#include "sync/node_writer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slurmlet::sync {
namespace {

// Drift is remembered this long after the last write; later drift is new.
constexpr Duration kSettled = std::chrono::minutes{10};
// Fewer writes in a row that are not kept may be a change by hand, or one that met another's.
constexpr int kProblem = 3;

// 401 means a bad credential, not a rejected change.
bool rejects_change(const Error& error) {
  constexpr int kUnauthorized = 401;
  const bool is_credential = error.request && error.request->http_status == kUnauthorized;
  return (error.code == Code::kDenied && !is_credential) || error.code == Code::kInvalid;
}

}  // namespace

NodeWriter::NodeWriter(std::string name, Duration report_interval, Random random, SteadyTime now)
    : name_(std::move(name)),
      report_interval_(report_interval),
      random_(std::move(random)),
      backoff_(Delay::kNotKept, random_),
      report_at_(now + delay(Delay::kReport, random_, report_interval)) {}

std::optional<node::NodePatch> NodeWriter::due(const node::ObservedNode& observed,
                                               const node::DesiredNode& desired, Duration spread,
                                               Now now) {
  if (compared_ && now.steady < report_at_) {
    return std::nullopt;
  }
  node::NodePatch patch = node::node_diff(observed, desired, now.wall);
  compared_ = !patch.has_changes;
  drifts_ = patch.has_changes && acknowledged_;
  if (drifts_) {
    drift_ = node::example_of(patch);
  }
  if (compared_) {
    acknowledged_ = true;
    flush_not_before_.reset();
  } else {
    if (!flush_not_before_) {
      flush_not_before_ = now.steady + part_of(spread, random_);
    }
    write_at_ = drifts_ ? std::max(*flush_not_before_, not_before_) : *flush_not_before_;
  }
  return now.steady < next() ? std::nullopt : std::optional{std::move(patch)};
}

void NodeWriter::written(const node::NodePatch& patch, const node::ObservedNode& answer,
                         const node::DesiredNode& desired, Now now) {
  report_at_ = now.steady + (patch.has_changes ? delay(Delay::kReport, random_, report_interval_)
                                               : report_interval_);
  flush_not_before_.reset();
  if (patch.has_changes) {
    // A desired change during a conflict neither ends nor prolongs it.
    if (is_quiet(now.steady)) {
      backoff_.reset();
    }
    if (acknowledged_ || backoff_.failures() == 0) {
      not_before_ = now.steady + backoff_.next();
    }
    acknowledged_ = true;
  }
  const node::NodePatch left = node::node_diff(answer, desired, now.wall);
  compared_ = !left.has_changes;
  drifts_ = altered_by_server_ = left.has_changes;
  write_at_ = not_before_;
  if (drifts_) {
    drift_ = node::example_of(left);
  }
  if (backoff_.failures() == kProblem && !drift_.empty()) {
    log::warning(drift_message() + "; written again at growing intervals, a minute at most");
  }
}

bool NodeWriter::is_quiet(SteadyTime now) const { return now - not_before_ > kSettled; }

std::string NodeWriter::drift_message() const {
  return altered_by_server_ ? "the API server changes " + drift_ + " of Node " + name_ +
                                  " when it is written (an admission plugin?)"
                            : "another client keeps reverting " + drift_ + " of Node " + name_ +
                                  " (kubectl get node " + name_ +
                                  " -o yaml --show-managed-fields shows which one)";
}

std::string NodeWriter::drift(SteadyTime now) const {
  const bool is_problem = backoff_.failures() >= kProblem && (drifts_ || now < not_before_);
  return is_problem ? drift_message() : "";
}

ProviderIdWriter::ProviderIdWriter(Random random) : backoff_(Delay::kNotKept, std::move(random)) {}

SteadyTime ProviderIdWriter::due(const node::ObservedNode& observed,
                                 const std::string& provider_id) const {
  return observed.provider_id.empty() && !provider_id.empty() ? not_before_ : kNever;
}

bool ProviderIdWriter::failed(const Error& error, const std::string& node, SteadyTime now) {
  const bool is_rejected = rejects_change(error);
  if (!is_rejected && !error.unanswered()) {
    return false;
  }
  if (backoff_.failures() == 0) {
    log::warning((is_rejected ? "the API server rejects spec.providerID of Node "
                              : "cannot set spec.providerID of Node ") +
                 node + ": " + error.message);
  }
  if (is_rejected) {
    rejected_ = error.message;
  }
  not_before_ = now + backoff_.next(error.retry_after);
  return true;
}

std::string ProviderIdWriter::drift(const node::ObservedNode& observed,
                                    const std::string& provider_id) const {
  return due(observed, provider_id) == kNever || rejected_.empty()
             ? ""
             : "spec.providerID is rejected: " + rejected_;
}

}  // namespace slurmlet::sync
