// NodeSync: how the Node becomes ours. The Node and its Lease are read before the first write.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/delay.h"
#include "base/log.h"
#include "base/rfc3339.h"
#include "node/claim.h"
#include "node/node_events.h"
#include "sync/node_sync.h"

namespace slurmlet::sync {
namespace {

using std::chrono::seconds;

// To see whether the holder of a Lease still runs: a Lease of a usual duration needs less.
constexpr std::chrono::minutes kLongWait{5};

}  // namespace

void NodeSync::set_site(const SitePlace& site, Now now) {
  if (begun_ && site == site_) {
    return;
  }
  site_ = site;
  events_.set_delay(site.in(site_delay(Delay::kEvent, site.nodes()), "event:"));
  const SteadyTime begun = begun_ ? *begun_ : begun_.emplace(now.steady);
  const Duration spread = site_delay(Delay::kHeldLease, site.at_once());
  link_.set_start({begun + site.in(spread, "start:"), spread});
  start_from_ = begun + site.in(site_delay(Delay::kStart, site.at_once()), "start:");
  if (!ever_registered_ && start_from_ - now.steady > seconds{1}) {
    log::info(fmt::format("one of {} nodes: Node {} is registered in {} s", site.at_once(),
                          desired_.name,
                          std::chrono::ceil<seconds>(start_from_ - now.steady).count()));
  }
}

void NodeSync::publish_uid(const std::string& uid) {
  const auto published = link_.node_uid.get();
  if (!published || *published != uid) {
    link_.set_uid(uid);
  }
}

bool NodeSync::look(Now now) {
  if (observed_ || found_ || !may_try() || now.steady < look_not_before()) {
    return false;
  }
  found_ = find(now);
  return true;
}

// The lease thread may renew the Lease already, as it was before a restart: what is no longer ours
// is unpublished, and what could not be read is as it was.
std::optional<NodeSync::Found> NodeSync::find(Now now) {
  auto existing = api_.get(desired_.name);
  if (!existing && existing.error().code != Code::kNotFound) {
    on_write_error(existing.error().with_prefix("register"), now);
    return std::nullopt;
  }
  if (existing) {
    if (auto problem = node::foreign_claim(*existing, effective_desired())) {
      log::error(*problem);
      publish_uid("");
      refusal_ = std::move(problem);
      holder_refused_ = false;
      let_go_ = false;
      return std::nullopt;
    }
    end_let_go();
    set_end(node::last_sight(*existing));
  } else {
    publish_uid("");
    if (stays_gone(now)) {
      return std::nullopt;
    }
  }
  if (!may_take_lease(now)) {
    return std::nullopt;
  }
  found_at_ = now.steady;
  if (!existing) {
    return Found{};
  }
  publish_uid(existing->uid);
  return Found{std::move(*existing)};
}

void NodeSync::register_found(Found found, Now now) {
  if (found.node) {
    adopt(std::move(*found.node));
    report_missing_taints(now);
  } else {
    create(now);
  }
  if (observed_) {
    ever_registered_ = true;
    forget_former_writes();
    write_error_.reset();
    backoff_.reset();
    register_backoff_.reset();
    remember_announced();
    next_try_ = now.steady;
    next_report_ = now.steady + delay(Delay::kReport, random_, options_.report_interval);
  }
}

void NodeSync::create(Now now) {
  node::DesiredNode desired = effective_desired();
  desired.unschedulable |= end_.has_value();  // it was cordoned when last seen
  auto created = api_.create(desired, now.wall);
  if (created) {
    uuid_label_surrendered_ = false;
    set_observed(std::move(*created));
    const std::string message = node::registered_message(desired, cluster_);
    log::info("Node " + desired.name + " " + message);
    emit(false, ever_registered_ ? "Reregistered" : "Registered", message, now);
  } else if (created.error().code == Code::kConflict) {
    next_try_ = now.steady + backoff_.next();  // somebody was faster: decide whether it is ours
  } else {
    on_write_error(created.error().with_prefix("register"), now);
  }
}

void NodeSync::adopt(node::ObservedNode existing) {
  set_observed(std::move(existing));
  log::info("Node " + desired_.name + " already exists and belongs to this machine; adopted");
}

void NodeSync::set_end(std::optional<node::NodeEnd> end) {
  if (end_ != end) {
    end_ = std::move(end);
    options_.end_changed(end_);
  }
}

// There is no Node. Whether it is to stay so, since it went with its Machine.
bool NodeSync::stays_gone(Now now) {
  if (!end_ || !node::went_with_machine(*end_)) {
    end_let_go();
    return false;
  }
  if (!end_->gone_at) {
    node::NodeEnd end = *end_;
    end.gone_at = now.steady;
    end.deleted_at = rfc3339(now.wall);
    set_end(std::move(end));
  }
  const SteadyTime until =
      options_.recreate_after ? *end_->gone_at + *options_.recreate_after : kNever;
  if (now.steady >= until) {
    end_let_go();
    return false;
  }
  next_try_ = until;
  if (!std::exchange(let_go_, true)) {
    refusal_ = fmt::format(
        "Node {} was deleted with its Machine{}: it was {} at the time (noticed at {}). It "
        "is not registered again {} (node.recreateAfter), unless this host is reprovisioned or "
        "gets another credential",
        desired_.name, end_->machine.empty() ? "" : " " + end_->machine,
        end_->detached ? "detached from Slurm" : "cordoned", end_->deleted_at,
        options_.recreate_after ? "for now" : "until the next boot");
    log::warning(*refusal_);
  }
  return true;
}

void NodeSync::end_let_go() {
  if (std::exchange(let_go_, false)) {
    refusal_.reset();
    next_try_ = told_by_ = {};
    log::info("Node " + desired_.name + " may be registered again");
  }
}

void NodeSync::forget_end() {
  set_end(std::nullopt);
  end_let_go();
  if (observed_) {
    set_end(node::last_sight(*observed_));
  }
}

void NodeSync::report_missing_taints(Now now) {
  for (const auto& taint : node::missing_taints(*observed_, desired_)) {
    const std::string what = taint.key + "=" + taint.value + ":" + taint.effect;
    log::warning("the Node lacks the taint " + what +
                 ", which a node credential cannot add: kubectl taint node " + desired_.name + " " +
                 what);
    emit(true, "MissingTaint",
         "the taint " + what + " is missing and must be added by an administrator", now);
  }
}

// Whether no other machine runs the Node. If it is to be looked at again, next_try_ says when.
bool NodeSync::may_take_lease(Now now) {
  const auto lease = leases_.get(desired_.name);
  if (!lease && lease.error().code != Code::kNotFound) {
    on_write_error(lease.error().with_prefix("register"), now);
    return false;
  }
  const node::LeaseHolder held = lease ? kube::holder_of(*lease) : node::LeaseHolder{};
  node::HolderRuling ruling =
      node::judge_holder(held, options_.holder_identity, foreign_holder_, now.steady);
  if (ruling.verdict != node::HolderRuling::Verdict::kFree) {
    refuse_holder(held, ruling, now);
    foreign_holder_ = std::move(ruling.sighting);
    return false;
  }
  foreign_holder_.reset();
  if (node::is_foreign_holder(held.identity, options_.holder_identity)) {
    take_over(held);
  }
  told_holder_.clear();
  if (holder_refused_) {
    holder_refused_ = false;
    refusal_.reset();
  }
  return true;
}

void NodeSync::refuse_holder(const node::LeaseHolder& held, const node::HolderRuling& ruling,
                             Now now) {
  publish_uid("");
  next_try_ = std::max(ruling.again, now.steady);
  if (ruling.verdict == node::HolderRuling::Verdict::kWait) {
    const auto wait = std::chrono::duration_cast<seconds>(next_try_ - now.steady);
    (wait > kLongWait ? log::warning : log::info)(
        fmt::format("the Lease of Node {} was renewed at {} by another machine, {}; waiting {} s "
                    "to see whether it is still running",
                    desired_.name, held.renew_time, held.identity, wait.count()));
    return;
  }
  // Many rejected machines of one name shall not ask in step.
  next_try_ += part_of(node::holder_patience(held) / 5, random_);
  refusal_ = node::held_by_another(desired_.name, held);
  holder_refused_ = true;
  if (told_holder_ != held.identity) {
    told_holder_ = held.identity;
    log::error(*refusal_);
  }
}

void NodeSync::take_over(const node::LeaseHolder& held) {
  log::warning("Node " + desired_.name + " is taken over: its Lease was held by another machine, " +
               held.identity + ", which has not renewed it since " + held.renew_time);
  link_.dead_holder.set(held);
}

// The loop of the Lease has found that another machine renews it: that one has the Node.
void NodeSync::let_go_if_refused(Now now) {
  const auto lease = link_.status.get();
  if (!(observed_ || found_) || !lease || !lease->refused_at || *lease->refused_at < found_at_) {
    return;
  }
  found_.reset();
  log::error("Node " + desired_.name + " is released: " + lease->last_error);
  set_observed(std::nullopt);
  foreign_holder_ = lease->refused_by;
  next_try_ = now.steady;
}

}  // namespace slurmlet::sync
