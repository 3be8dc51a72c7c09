#include "node/machine_deletion.h"

#include <gtest/gtest.h>

namespace slurmlet::node {
namespace {

TEST(MachineEndTest, WhatWasLastSeenDecides) {
  const struct {
    const char* what;
    bool cordoned;
    const char* machine;  // nullptr: no annotation
    bool kept, gone_with_machine;
    const char* detach = "";
  } table[] = {
      {"Cluster API deletes the Machine", true, "hpc-1", true, true},
      {"kubectl delete node of a Machine that lives", false, "hpc-1", false, false},
      {"cordoned by hand, no Cluster API", true, nullptr, true, false},
      {"an empty annotation names no Machine", true, "", true, false},
      {"kubectl delete node", false, nullptr, false, false},
      {"the operator detached it", false, nullptr, true, true, "Detached"},
      {"the operator only drains it", false, "hpc-1", false, false, "Draining"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    ObservedNode node;
    node.uid = "u1";
    node.unschedulable = row.cordoned;
    if (row.machine != nullptr) {
      node.annotations["cluster.x-k8s.io/machine"] = row.machine;
    }
    node.annotations["slurmlet.io/detach"] = row.detach;
    const auto sight = snapshot(node);
    ASSERT_EQ(sight.has_value(), row.kept);
    if (sight) {
      EXPECT_EQ(sight->uid, "u1");
      EXPECT_EQ(went_with_machine(*sight), row.gone_with_machine);
    }
  }
}

}  // namespace
}  // namespace slurmlet::node
