// NodeSync: how the Node becomes ours, and how it ends. The Node and its Lease are read before the
// first write.

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "node/claim.h"
#include "sync/node_sync.h"

namespace slurmlet::sync {

// Of a Node that is neither claimed nor registered.
SteadyTime NodeSync::lookup_at() const {
  SteadyTime due = kNever;
  if (const auto* unclaimed = in<Unclaimed>()) {
    due = unclaimed->retry_at;
  } else if (const auto* confirming = in<Confirming>()) {
    due = confirming->deadline;
  } else if (const auto* blocked = in<Blocked>()) {
    due = blocked->recheck_at;
  }
  return std::max({due, failures_.retry_at(), start_.lookup_not_before});
}

// The lease thread may renew the Lease already, as it was before a restart: what is no longer ours
// is unpublished, and what could not be read is as it was.
void NodeSync::check_ownership(Now now) {
  auto existing = api_.get(desired_.name);
  if (!existing && existing.error().code != Code::kNotFound) {
    return fail(existing.error().with_prefix("register"), now);
  }
  if (existing) {
    if (auto problem = node::foreign_claim(*existing, effective_desired())) {
      log::error(*problem);
      publish_uid("");
      state_ = Blocked{Blocked::Why::kForeignNode, *std::move(problem)};
      return;
    }
    end_of_deletion(now.steady);
    deletion_.seen(*existing);
  } else {
    publish_uid("");
    if (remains_deleted(now)) {
      return;
    }
  }
  auto pause = claim_.take(desired_.name, now);
  if (!pause) {
    return fail(pause.error().with_prefix("register"), now);
  }
  if (*pause) {
    release((*pause)->until);
    if (!(*pause)->held.empty()) {
      state_ = Blocked{Blocked::Why::kLeaseHeld, (*pause)->held, (*pause)->until};
    }
    return;
  }
  if (existing) {
    publish_uid(existing->uid);
    state_ = Claimed{*std::move(existing)};
  } else {
    state_ = Claimed{};
  }
}

void NodeSync::register_node(Now now) {
  auto& existing = std::get<Claimed>(state_).existing;
  if (existing) {
    announcer_.adopted(*existing, desired_, now);
    return enter_registered(*std::move(existing), now);
  }
  read_server_version(now.steady);
  node::DesiredNode desired = effective_desired();
  desired.unschedulable |= deletion_.record().has_value();  // it was cordoned when last seen
  auto created = api_.create(desired, now.wall);
  if (created) {
    announcer_.created(desired, created->uid, now);
    watch_.watch_from(created->resource_version);
    return enter_registered(*std::move(created), now);
  }
  state_ = Unclaimed{now.steady};
  if (created.error().code == Code::kConflict) {
    failures_.pause(created.error(), now.steady);  // lost a race: is it ours?
  } else {
    fail(created.error().with_prefix("register"), now);
  }
}

void NodeSync::enter_registered(node::ObservedNode node, Now now) {
  (void)failures_.ended();
  publish_uid(node.uid);
  state_ =
      Registered{node, NodeWriter{desired_.name, options_.report_interval, random_, now.steady},
                 ProviderIdWriter{random_}};
  observe(std::move(node));
}

void NodeSync::release(SteadyTime retry_at) {
  publish_uid("");
  state_ = Unclaimed{retry_at};
}

void NodeSync::release_lost_lease(Now now) {
  if (!registered() && in<Claimed>() == nullptr) {
    return;
  }
  if (const auto why = claim_.lost()) {
    log::error("Node " + desired_.name + " is released: " + *why);
    release(now.steady);
  }
}

// The Node is gone; unless it has, the watch may yet report its final state.
void NodeSync::on_deleted(Now now, bool watch_has_reported) {
  std::string uid = std::get<Registered>(state_).node.uid;
  release(now.steady);
  if (!options_.recreate) {
    state_ = Blocked{Blocked::Why::kRecreationDisabled,
                     "the Node was deleted and node.recreate is \"never\""};
    log::warning("Node " + desired_.name + " was deleted; not registered again (node.recreate)");
    return;
  }
  if (remains_deleted(now)) {
    return;
  }
  const SteadyTime retry_at = deletion_.recreate_at(now.steady);
  if (watch_has_reported) {
    state_ = Unclaimed{retry_at};
  } else {
    state_ = Confirming{std::move(uid), retry_at, std::max(retry_at, now.steady + watch_lag())};
  }
  log::warning("Node " + desired_.name + " was deleted; registering it again");
}

// No Node exists: whether it remains deleted along with its Machine.
bool NodeSync::remains_deleted(Now now) {
  const auto until = deletion_.remains_deleted(now);
  if (!until) {
    end_of_deletion(now.steady);
    return false;
  }
  if (!went_with_machine()) {
    log::warning(deletion_.message(desired_.name));
  }
  state_ = Blocked{Blocked::Why::kMachineDeleted, deletion_.message(desired_.name), *until};
  return true;
}

void NodeSync::end_of_deletion(SteadyTime now) {
  if (went_with_machine()) {
    log::info("Node " + desired_.name + " may be registered again");
    state_ = Unclaimed{now};
  }
}

void NodeSync::forget_deletion(Now now) {
  deletion_.forget();
  end_of_deletion(now.steady);
  if (const auto* registered = in<Registered>()) {
    deletion_.seen(registered->node);
  }
}

}  // namespace slurmlet::sync
