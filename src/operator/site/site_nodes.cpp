#include "operator/site/site_nodes.h"

#include "base/text.h"
#include "node/slurm_labels.h"
#include "node/vocabulary.h"
#include "operator/rules/record_rules.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::op {
namespace {

std::string annotation(const kube::SiteNode& node, const char* key) {
  const auto found = node.annotations.find(key);
  return found == node.annotations.end() ? "" : found->second;
}

std::optional<Published> published(const kube::SiteNode& node) {
  const std::string text = annotation(node, node::vocabulary::kRecord);
  if (text.empty()) {
    return std::nullopt;
  }
  const auto record = slurm::parse_published_record(text);
  if (!record) {
    return Published{};  // unreadable, so it is written again
  }
  return Published{record_hash(record->cluster, record->text), record->dumped_at, record->failed_at,
                   record->refresh};
}

std::string of_cluster_api(const kube::SiteNode& node, const char* key) {
  const std::string name = annotation(node, key);
  return name.empty() ? "" : annotation(node, node::vocabulary::kClusterNamespace) + "/" + name;
}

// 0.1 escaped the name where it is not valid as a label.
Belongs belongs(const std::string& reported, const std::string& cluster) {
  if (reported.empty()) {
    return Belongs::kUnknown;
  }
  return to_lower(reported) == cluster || to_lower(reported) == to_lower(node::label_name(cluster))
             ? Belongs::kHere
             : Belongs::kElsewhere;
}

KubeNode kube_node(const kube::SiteNode& node, const std::string& cluster) {
  return {node.name,
          node.uid,
          annotation(node, node::vocabulary::kSlurmNode),
          node.unschedulable,
          node.deleting,
          published(node),
          node.provider_id,
          annotation(node, node::vocabulary::kDetach),
          annotation(node, node::vocabulary::kDrain),
          of_cluster_api(node, node::vocabulary::kMachine),
          of_cluster_api(node, node::vocabulary::kClusterName),
          belongs(annotation(node, node::vocabulary::kSlurmCluster), cluster),
          node.conditions};
}

}  // namespace

const KubeNode* SiteNodes::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

void SiteNodes::remove(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) {
    return;
  }
  if (const auto claims = by_slurm_.find(claimed_name(found->second)); claims != by_slurm_.end()) {
    claims->second.erase(name);
    if (claims->second.empty()) {
      by_slurm_.erase(claims);
    }
  }
  changed_.erase(name);
  gone_.insert(name);
  nodes_.erase(found);
}

void SiteNodes::put(const kube::SiteNode& node) {
  KubeNode fresh = kube_node(node, cluster_);
  const auto known = nodes_.find(node.name);
  if (known != nodes_.end()) {
    if (known->second == fresh) {
      return;
    }
    if (claimed_name(known->second) == claimed_name(fresh) && known->second.uid == fresh.uid &&
        known->second.belongs == fresh.belongs) {
      known->second = std::move(fresh);
      changed_.insert(node.name);
      return;
    }
    remove(node.name);
  }
  if (fresh.belongs == Belongs::kHere) {
    by_slurm_[claimed_name(fresh)].insert(node.name);
  }
  nodes_.insert_or_assign(node.name, std::move(fresh));
  changed_.insert(node.name);
}

void SiteNodes::forget() { *this = SiteNodes{std::move(cluster_)}; }

void SiteNodes::replace_all(const std::vector<kube::SiteNode>& nodes) {
  std::set<std::string> gone;
  for (const auto& [name, node] : nodes_) {
    gone.insert(name);
  }
  for (const auto& node : nodes) {
    gone.erase(node.name);
    put(node);
  }
  for (const auto& name : gone) {
    remove(name);
  }
  known_ = true;
}

SteadyTime SiteNodes::step(kube::Watch<kube::SiteNode>& watch, Now now) {
  using Type = kube::WatchEvent<kube::SiteNode>::Type;
  std::vector<kube::WatchEvent<kube::SiteNode>> events;
  const SteadyTime next = watch.step(now, events);
  for (const auto& event : events) {
    if (event.type == Type::kReplaced) {
      replace_all(event.objects);
      continue;
    }
    for (const auto& node : event.objects) {
      event.type == Type::kDeleted ? remove(node.name) : put(node);
    }
  }
  return next;
}

}  // namespace slurmlet::op
