#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fakes/fake_api.h"
#include "kube/api.h"
#include "node/vocabulary.h"

namespace slurmlet::op {

// A Node that reports its Slurm node and cluster.
inline kube::SiteNode site_node(const std::string& name, const std::string& uid,
                                const std::string& slurm_node, const std::string& cluster = "c",
                                const std::string& provider_id = "") {
  return {name,
          uid,
          {{node::vocabulary::kSlurmNode, slurm_node}, {node::vocabulary::kSlurmCluster, cluster}},
          false,
          false,
          provider_id};
}

inline kube::Machine hooked_machine(const std::string& name, const std::string& node) {
  kube::Machine machine;
  machine.api_version = "v1beta2";
  machine.namespace_name = "ns";
  machine.name = name;
  machine.uid = "m-" + name;
  machine.resource_version = "1";
  machine.cluster = "hpc";
  machine.node = node;
  machine.hooked = true;
  return machine;
}

template <class T>
std::vector<T> values(const std::map<std::string, T>& from) {
  std::vector<T> out;
  for (const auto& [key, value] : from) {
    out.push_back(value);
  }
  return out;
}

// Nodes in memory; the test feeds writes to the watch.
class FakeSite final : public kube::SiteApi, public fakes::Scripted {
 public:
  Result<kube::SiteNode> get(const std::string& node) override {
    if (const auto error = begin("get " + node)) {
      return *error;
    }
    const auto found = nodes.find(node);
    return found == nodes.end() ? Result<kube::SiteNode>{Error{Code::kNotFound, "no such Node"}}
                                : found->second;
  }
  Status annotate(const std::string& node, const std::string& uid,
                  const std::map<std::string, std::optional<std::string>>& changes) override {
    before_annotate(node);
    if (const auto error = begin("annotate " + node)) {
      return *error;
    }
    const auto found = nodes.find(node);
    if (found == nodes.end()) {
      return Error{Code::kNotFound, "no such Node"};
    }
    if (found->second.uid != uid) {
      return Error{Code::kConflict, "another uid"};
    }
    for (const auto& [key, value] : changes) {
      if (value) {
        found->second.annotations[key] = *value;
      } else {
        found->second.annotations.erase(key);
      }
    }
    return {};
  }
  Status remove(const std::string& node, const std::string& uid) override {
    if (const auto error = begin("remove " + node)) {
      return *error;
    }
    const auto found = nodes.find(node);
    if (found == nodes.end() || found->second.uid != uid) {
      return Error{found == nodes.end() ? Code::kNotFound : Code::kConflict, "not this Node"};
    }
    nodes.erase(found);
    return {};
  }
  std::function<void(const std::string& node)> before_annotate = [](const std::string&) {};
  std::map<std::string, kube::SiteNode> nodes;
};

// Machines in memory, by name; the test feeds writes to the watch.
class FakeMachines final : public kube::MachineApi, public fakes::Scripted {
 public:
  Status release(const kube::Machine& machine) override {
    if (const auto error = begin("release " + machine.name)) {
      return *error;
    }
    const auto found = machines.find(machine.name);
    if (found == machines.end()) {
      return Error{Code::kNotFound, "no such Machine"};
    }
    if (found->second.uid != machine.uid ||
        found->second.resource_version != machine.resource_version) {
      return Error{Code::kConflict, "it has changed"};
    }
    before_release(found->second);
    found->second.hooked = false;
    found->second.resource_version = next_version();
    return {};
  }
  Status mark_awake(const kube::Machine& machine) override {
    if (const auto error = begin("awake " + machine.name)) {
      return *error;
    }
    kube::Machine& now = machines.at(machine.name);
    if (now.resource_version != machine.resource_version) {
      return Error{Code::kConflict, "it has changed"};
    }
    now.sleeping = false;
    now.resource_version = next_version();
    return {};
  }
  Result<kube::Machine> get(const kube::Machine& machine) override {
    if (const auto error = begin("get " + machine.name)) {
      return *error;
    }
    const auto found = machines.find(machine.name);
    return found == machines.end() || found->second.uid != machine.uid
               ? Result<kube::Machine>{Error{Code::kNotFound, "no such Machine"}}
               : found->second;
  }
  std::function<void(const kube::Machine&)> before_release = [](const kube::Machine&) {};
  std::map<std::string, kube::Machine> machines;
};

}  // namespace slurmlet::op
