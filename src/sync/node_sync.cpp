#include "sync/node_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/result.h"
#include "node/node_diff.h"
#include "node/vocabulary.h"

namespace slurmlet::sync {

using std::chrono::seconds;

NodeSync::NodeSync(kube::NodeApi& api, kube::LeaseApi& leases,
                   kube::Watch<node::ObservedNode>& watch, EventSink& events,
                   NodeSyncOptions options, Random random, LeaseLink& link)
    : api_(api),
      watch_(watch),
      options_(std::move(options)),
      random_(std::move(random)),
      link_(link),
      claim_(leases, options_.holder_identity, random_, link),
      announcer_(events),
      deletion_(options_.deletion, options_.deletion_changed, options_.recreate_after, random_),
      failures_(Delay::kNodeRetry, random_),
      seen_provider_id_(options_.remembered_provider_id) {}

void NodeSync::set_site(const SitePlace& site, Now now) {
  if (start_.begun && site == start_.site) {
    return;
  }
  start_.site = site;
  announcer_.set_delay(site.in(site_delay(Delay::kEvent, site.nodes()), "event:"));
  const SteadyTime begun = start_.begun ? *start_.begun : start_.begun.emplace(now.steady);
  const Duration spread = site_delay(Delay::kHeldLease, site.at_once());
  link_.set_start({begun + site.in(spread, "start:"), spread});
  // After the Leases of all.
  const Duration start = site_delay(Delay::kStart, site.at_once()) - spread;
  start_.lookup_not_before = begun + spread + site.in(start, "start:");
  const Duration wait = start_.lookup_not_before - now.steady;
  if (in<Unclaimed>() != nullptr && wait > seconds{1}) {
    log::info(fmt::format("one of {} nodes: its Node is registered in {} s", site.at_once(),
                          std::chrono::ceil<seconds>(wait).count()));
  }
}

void NodeSync::set_desired(node::DesiredNode desired, Now now) {
  if (desired == desired_) {
    return;
  }
  desired_ = std::move(desired);
  if (auto* registered = in<Registered>()) {
    registered->writer.desired_changed();
    announcer_.conditions(desired_, registered->node.uid, now);
  }
}

SteadyTime NodeSync::step(Now now) {
  if (watches()) {
    read_watch(now);
  }
  release_lost_lease(now);
  if (in<Claimed>() != nullptr) {
    register_node(now);
  } else if (now.steady >= lookup_at()) {
    check_ownership(now);
  }
  if (watches() && !watch_next_) {
    read_watch(now);
  }
  if (registered()) {
    write(now);
  }
  if (in<Claimed>() != nullptr) {
    return now.steady;
  }
  return std::min(watch_next_.value_or(kNever), registered() ? write_at() : lookup_at());
}

std::optional<std::string> NodeSync::record() const {
  const auto* claimed = in<Claimed>();
  if (claimed != nullptr && claimed->existing) {
    return node::record_of(*claimed->existing);
  }
  const auto* registered = in<Registered>();
  return registered != nullptr ? std::optional{node::record_of(registered->node)} : std::nullopt;
}

std::optional<bool> NodeSync::detached() const {
  if (const auto* registered = in<Registered>()) {
    return node::is_detached(registered->node);
  }
  return went_with_machine() ? std::optional{deletion_.record()->detached} : std::nullopt;
}

std::string NodeSync::block_reason() const {
  const auto* blocked = in<Blocked>();
  return blocked != nullptr ? blocked->message : "";
}

bool NodeSync::went_with_machine() const {
  const auto* blocked = in<Blocked>();
  return blocked != nullptr && blocked->why == Blocked::Why::kMachineDeleted;
}

std::string NodeSync::drift(SteadyTime now) const {
  const auto* registered = in<Registered>();
  if (registered == nullptr) {
    return "";
  }
  std::string drift = registered->provider_id.drift(registered->node, provider_id());
  return drift.empty() ? registered->writer.drift(now) : drift;
}

void NodeSync::credential_replaced(Now now) {
  watch_.credential_replaced(now.steady);
  const SteadyTime soon = now.steady + delay(Delay::kCredentialReplaced, random_);
  if (failures_.error() && failures_.error()->code == Code::kDenied) {
    failures_.retry_by(soon);
  }
  if (auto* registered = in<Registered>()) {
    registered->provider_id.try_by(soon);
  }
}

const std::string& NodeSync::provider_id() const {
  return desired_.provider_id.empty() ? seen_provider_id_ : desired_.provider_id;
}

// A Node with a providerID is a Cluster API Machine's, or about to be one's.
bool NodeSync::publishes_server_version() const {
  return options_.publish_server_version && provider_id().empty() &&
         !desired_.labels.contains(node::vocabulary::kLabelMetal3Uuid);
}

// Before a write, and not again for a day: kubeadm allows for several releases between.
void NodeSync::read_server_version(SteadyTime now) {
  if (!publishes_server_version() || now < server_version_.read_at) {
    return;
  }
  auto version = api_.server_version();
  server_version_.read_at =
      now + (version ? Duration{std::chrono::hours{24}}
                     : version.error().retry_after.value_or(options_.report_interval));
  if (version) {
    server_version_.text = *std::move(version);
  }
}

node::DesiredNode NodeSync::effective_desired() const {
  node::DesiredNode desired = desired_;
  desired.provider_id = provider_id();
  if (publishes_server_version()) {
    desired.node_info.kubelet_version = server_version_.text;
  }
  const auto* registered = in<Registered>();
  if (registered != nullptr && registered->uuid_label_surrendered &&
      !registered->node.labels.contains(node::vocabulary::kLabelMetal3Uuid)) {
    desired.labels.erase(node::vocabulary::kLabelMetal3Uuid);
  }
  return desired;
}

void NodeSync::publish_uid(const std::string& uid) {
  const auto published = link_.node_uid.get();
  if (!published || *published != uid) {
    link_.set_uid(uid);
  }
}

// Of a registered Node, as the API server or the watch has shown it.
void NodeSync::observe(node::ObservedNode node) {
  if (!node.provider_id.empty() && node.provider_id != seen_provider_id_) {
    seen_provider_id_ = node.provider_id;
    options_.provider_id_seen(seen_provider_id_);
  }
  deletion_.seen(node);
  std::get<Registered>(state_).node = std::move(node);
}

SteadyTime NodeSync::write_at() const {
  const auto& registered = std::get<Registered>(state_);
  const SteadyTime due = std::min(registered.writer.next(),
                                  registered.provider_id.due(registered.node, provider_id()));
  // A failure ends once there is nothing left to write.
  return failures_.error() ? failures_.retry_at() : std::max(due, failures_.retry_at());
}

void NodeSync::write(Now now) {
  if (now.steady < write_at()) {
    return;
  }
  read_server_version(now.steady);
  auto& registered = std::get<Registered>(state_);
  const node::DesiredNode desired = effective_desired();
  // The status first: a providerID may be rejected.
  const Duration spread = site_delay(Delay::kNews, start_.site.nodes());
  if (const auto patch = registered.writer.due(registered.node, desired, spread, now)) {
    auto written = api_.patch_status(desired.name, *patch);
    if (!written) {
      return on_failed_write(written.error(), now);
    }
    registered.writer.written(*patch, *written, desired, now);
    observe(std::move(*written));
  }
  if (now.steady >= registered.provider_id.due(registered.node, desired.provider_id)) {
    auto written = api_.set_provider_id(desired.name, registered.node.uid, desired.provider_id);
    if (written) {
      observe(std::move(*written));
    } else if (!registered.provider_id.failed(written.error(), desired.name, now.steady)) {
      return on_failed_write(written.error(), now);
    }
  }
  if (failures_.ended()) {
    log::info("Node " + desired.name + " is written again");
  }
}

void NodeSync::on_failed_write(const Error& error, Now now) {
  const Code code = error.code;
  if (code == Code::kConflict || code == Code::kInvalid || code == Code::kNotFound) {
    // Perhaps gone or replaced: read it, and release it if so.
    auto current = api_.get(desired_.name);
    if (!current && current.error().code == Code::kNotFound) {
      return on_deleted(now, false);
    }
    auto& registered = std::get<Registered>(state_);
    if (current && current->uid != registered.node.uid) {
      return release(now.steady);
    }
    if (current) {
      registered.writer.observed_changed();
      observe(std::move(*current));
    }
  }
  fail(error, now);
}

void NodeSync::fail(const Error& error, Now now) {
  failures_.failed("Node " + desired_.name + " not written", error, now.steady);
}

Status NodeSync::flush(Now now) {
  // Start-up is spread, this is not.
  if (const auto* unclaimed = in<Unclaimed>();
      unclaimed != nullptr && now.steady >= std::max(unclaimed->retry_at, failures_.retry_at())) {
    check_ownership(now);
  }
  if (const auto* claimed = in<Claimed>(); claimed != nullptr && claimed->existing) {
    register_node(now);
  }
  auto* registered = in<Registered>();
  if (registered == nullptr) {
    return failures_.error().value_or(Error{Code::kNotFound, "it is not registered"});
  }
  const node::DesiredNode desired = effective_desired();
  const node::NodePatch patch = node::node_diff(registered->node, desired, now.wall);
  if (patch.has_changes) {
    auto written = TRY(api_.patch_status(desired.name, patch));
    registered->writer.written(patch, written, desired, now);
    observe(std::move(written));
  }
  return {};
}

}  // namespace slurmlet::sync
