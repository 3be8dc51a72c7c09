#include "sync/node_sync.h"

#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "node/node_diff.h"
#include "node/node_events.h"
#include "node/vocabulary.h"

namespace slurmlet::sync {
namespace {

using std::chrono::seconds;

// Not the credential with which it was asked for, which is as good as it is for all else.
bool rejects_change(const Error& error) {
  constexpr int kUnauthorized = 401;
  const bool is_credential = error.request && error.request->http_status == kUnauthorized;
  return (error.code == Code::kDenied && !is_credential) || error.code == Code::kInvalid;
}

}  // namespace

NodeSync::NodeSync(kube::NodeApi& api, kube::LeaseApi& leases,
                   kube::Watch<node::ObservedNode>& watch, EventSink& events,
                   NodeSyncOptions options, Random random, LeaseLink& link,
                   ProviderIdSeen provider_id_seen)
    : api_(api),
      leases_(leases),
      watch_(watch),
      events_(events),
      options_(std::move(options)),
      random_(std::move(random)),
      link_(link),
      provider_id_seen_(std::move(provider_id_seen)),
      backoff_(Delay::kNodeRetry, random_),
      register_backoff_(Delay::kRegisterRetry, random_),
      recreate_backoff_(Delay::kRecreate, random_),
      revert_backoff_(Delay::kRevert, random_),
      provider_id_(options_.remembered_provider_id),
      provider_id_backoff_(Delay::kProviderIdRejected, random_),
      provider_id_retry_(Delay::kProviderIdRetry, random_),
      end_(options_.end) {}

void NodeSync::set_desired(node::DesiredNode desired, Now now) {
  if (desired == desired_) {
    return;
  }
  desired_ = std::move(desired);
  is_written_ = compared_ = false;
  if (observed_) {
    announce(now);
  }
}

node::DesiredNode NodeSync::effective_desired() const {
  node::DesiredNode desired = desired_;
  if (desired.provider_id.empty()) {
    desired.provider_id = provider_id_;
  }
  if (uuid_label_surrendered_ && observed_ &&
      !observed_->labels.contains(node::vocabulary::kLabelMetal3Uuid)) {
    desired.labels.erase(node::vocabulary::kLabelMetal3Uuid);
  }
  return desired;
}

SteadyTime NodeSync::step(Now now) {
  if (may_read_watch()) {
    read_watch(now);
  }
  let_go_if_refused(now);
  look(now);
  if (found_) {
    register_found(*std::exchange(found_, std::nullopt), now);
    if (observed_) {
      read_watch(now);
    }
  }
  if (observed_) {
    write_if_due(now);
  }
  if (refusal_ && !holder_refused_ && !watching_) {
    return now.steady;  // found by the first attempt: the watch reports its end
  }
  if (!observed_) {  // not yet, or found gone while writing
    return may_try() ? std::min(look_not_before(), watch_next_) : watch_next_;
  }
  const bool id_waits = lacks_provider_id() && now.steady < provider_id_not_before_;
  const SteadyTime waits = held_back_     ? std::max(revert_not_before_, next_try_)
                           : news_from_   ? std::max(*news_from_, next_try_)
                           : write_error_ ? next_try_
                                          : kNever;
  return std::min({watch_next_, std::max(next_report_, next_try_), waits,
                   id_waits ? std::max(provider_id_not_before_, next_try_) : kNever});
}

void NodeSync::emit(bool warning, const std::string& reason, const std::string& message, Now now) {
  // As the kubelet: the Event's involvedObject.uid is the Node's name, which kubectl looks for.
  events_.emit({"Node", "", desired_.name, desired_.name}, warning, reason, message, message, now);
}

void NodeSync::announce(Now now) {
  for (const auto& event : node::condition_events(announced_, desired_.conditions)) {
    emit(event.warning, event.reason, event.message, now);
    (event.warning ? log::warning : log::info)(event.reason + ": " + event.message);
  }
  remember_announced();
}

// What is provisional is nothing that a first answer could change.
void NodeSync::remember_announced() {
  announced_ = desired_.conditions;
  std::erase_if(announced_, [this](const node::Condition& condition) {
    return desired_.provisional_conditions.contains(condition.type);
  });
}

void NodeSync::set_observed(std::optional<node::ObservedNode> observed) {
  observed_ = std::move(observed);
  compared_ = false;
  publish_uid(observed_ ? observed_->uid : "");
  if (observed_ && !observed_->provider_id.empty() && observed_->provider_id != provider_id_) {
    provider_id_ = observed_->provider_id;
    provider_id_seen_(provider_id_);
  }
  if (observed_) {
    lost_uid_.clear();
    set_end(node::last_sight(*observed_));
  }
}

void NodeSync::on_write_error(const Error& error, Now now) {
  if (error.code == Code::kCancelled) {
    return;  // we are being stopped
  }
  if (!write_error_) {
    log::warning("Node " + desired_.name + " not written: " + error.message);
    write_error_since_ = now.steady;
  }
  write_error_ = error;
  const bool away = error.unanswered();
  // Without a Node there is no Lease.
  const Duration delay =
      (away && !observed_ ? register_backoff_ : backoff_).next(error.retry_after);
  const bool hopeless = error.code == Code::kDenied || error.code == Code::kInvalid;
  next_try_ = now.steady + (hopeless ? std::max<Duration>(delay, seconds{1}) : delay);
}

void NodeSync::credential_replaced(Now now) {
  watch_.credential_replaced(now.steady);
  if (write_error_ && write_error_->code == Code::kDenied && lost_uid_.empty() && !refusal_) {
    next_try_ = std::min(next_try_, now.steady + delay(Delay::kCredentialReplaced, random_));
  }
  provider_id_not_before_ =
      std::min(provider_id_not_before_, now.steady + delay(Delay::kCredentialReplaced, random_));
}

bool NodeSync::lacks_provider_id() const {
  return observed_ && observed_->provider_id.empty() &&
         !(desired_.provider_id.empty() && provider_id_.empty());
}

// One that is rejected, or not answered, keeps nothing else from being written.
Status NodeSync::write_provider_id(Now now) {
  if (!lacks_provider_id() || now.steady < provider_id_not_before_) {
    return {};
  }
  auto written =
      api_.set_provider_id(desired_.name, observed_->uid, effective_desired().provider_id);
  if (!written) {
    const Error& error = written.error();
    const bool refused = rejects_change(error);
    if (!refused && !error.unanswered()) {
      return error;
    }
    Backoff& backoff = refused ? provider_id_backoff_ : provider_id_retry_;
    if (backoff.failures() == 0) {
      log::warning((refused ? "the API server rejects spec.providerID of Node "
                            : "cannot set spec.providerID of Node ") +
                   desired_.name + ": " + error.message);
    }
    if (refused) {
      provider_id_rejected_ = error.message;
    }
    provider_id_not_before_ = now.steady + backoff.next(error.retry_after);
    return {};
  }
  provider_id_backoff_.reset();
  provider_id_retry_.reset();
  set_observed(std::move(*written));
  return {};
}

Status NodeSync::write(const node::NodePatch& patch, Now now) {
  auto written = TRY(api_.patch_status(desired_.name, patch));
  set_observed(std::move(written));
  note_unkept(now);
  next_report_ =
      now.steady + (patch.has_changes ? delay(Delay::kReport, random_, options_.report_interval)
                                      : options_.report_interval);
  return {};
}

// A job that begins or ends on thousands of nodes, or a restart of slurmd on all, changes them at
// one moment.
bool NodeSync::waits_with_news(bool news, Now now) {
  if (!news) {
    news_from_.reset();
    return false;
  }
  if (!news_from_) {
    news_from_ = now.steady + part_of(site_delay(Delay::kNews, site_.nodes()), random_);
  }
  return now.steady < std::min(*news_from_, next_report_);
}

void NodeSync::write_if_due(Now now) {
  if (now.steady < next_try_) {
    return;
  }
  const bool id_is_due = lacks_provider_id() && now.steady >= provider_id_not_before_;
  if (compared_ && now.steady < next_report_ && !id_is_due) {
    return;  // neither side has changed since they were found equal
  }
  Status done;  // the status first: a providerID may be rejected
  const node::NodePatch patch = node::node_diff(*observed_, effective_desired(), now.wall);
  const bool news = is_news(patch);
  const bool again = news && is_written_;
  if (again) {
    if (alterations_ != 1) {
      note_revert(patch, now);
    }
    hasten_conditions(patch, now);
  } else if (!news) {
    reverted_now_ = false;
  }
  held_back_ = again && now.steady < revert_not_before_ && now.steady < next_report_;
  if (held_back_ || waits_with_news(news, now)) {
    return;
  }
  if (news || now.steady >= next_report_) {
    done = write(patch, now);
    if (done && news) {
      note_write(again, now);
    }
  }
  if (done) {
    done = write_provider_id(now);
  }
  if (done) {
    if (write_error_) {
      log::info("Node " + desired_.name + " is written again");
    }
    write_error_.reset();
    news_from_.reset();
    backoff_.reset();
    held_back_ = alterations_ == 1;  // once more, a little later
    if (held_back_ && revert_not_before_ <= now.steady) {
      back_off(now);
    }
    compared_ = !held_back_;
    return;
  }
  on_failed_write(done.error(), now);
}

void NodeSync::on_failed_write(const Error& error, Now now) {
  const Code code = error.code;
  if (code == Code::kConflict || code == Code::kInvalid || code == Code::kNotFound) {
    // Perhaps gone, or another Node by now: look, and let registration decide if so.
    auto current = api_.get(desired_.name);
    if (!current && current.error().code == Code::kNotFound) {
      lost_uid_ = observed_->uid;
      on_deleted(now);
      if (!refusal_) {
        told_by_ = now.steady + watch_lag();
      }
      return;
    }
    if (current && current->uid != observed_->uid) {
      set_observed(std::nullopt);
      next_try_ = now.steady;
      return;
    }
    if (current) {
      set_observed(std::move(*current));
    }
  }
  on_write_error(error, now);
}

Status NodeSync::flush(Now now) {
  if (!observed_) {  // the start is spread, this cannot be
    start_from_ = now.steady;
    look(now);
    if (found_ && found_->node) {
      adopt(*std::exchange(found_, std::nullopt)->node);
    }
  }
  if (!observed_) {
    return write_error_.value_or(Error{Code::kNotFound, "it is not registered"});
  }
  const node::NodePatch patch = node::node_diff(*observed_, effective_desired(), now.wall);
  return patch.has_changes ? write(patch, now) : Status{};
}

}  // namespace slurmlet::sync
