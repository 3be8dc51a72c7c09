#include "node/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::node {
namespace claim_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Side {
  const char* metal3_uuid = "";
  const char* system_uuid = "";
  const char* provider_id = "";
};

struct Row {
  const char* what;
  Side theirs, ours;
  const char* problem;  // what the message names; "" = ours
  const char* annotated_uuid = "";
};

ObservedNode observed(const Row& row) {
  ObservedNode node;
  node.name = "n1";
  if (*row.theirs.metal3_uuid != '\0') {
    node.labels["metal3.io/uuid"] = row.theirs.metal3_uuid;
  }
  if (*row.annotated_uuid != '\0') {
    node.annotations["slurmlet.io/system-uuid"] = row.annotated_uuid;
  }
  node.node_info.system_uuid = row.theirs.system_uuid;
  node.node_info.machine_id = "theirs";
  node.provider_id = row.theirs.provider_id;
  return node;
}

DesiredNode desired(const Side& ours) {
  DesiredNode node;
  node.name = "n1";
  if (*ours.metal3_uuid != '\0') {
    node.labels["metal3.io/uuid"] = ours.metal3_uuid;
  }
  node.node_info.system_uuid = ours.system_uuid;
  node.node_info.machine_id = "ours";  // always another: a reinstalled host
  node.provider_id = ours.provider_id;
  return node;
}

TEST(ForeignClaimTest, Table) {
  const Row kRows[] = {
      {"nothing known", {}, {}, ""},
      {"uuid equal", {"u1", "", ""}, {"u1", "", ""}, ""},
      {"uuid equal in another case", {"AB-1", "", ""}, {"ab-1", "", ""}, ""},
      {"uuid different", {"u1", "", ""}, {"u2", "", ""}, "metal3.io/uuid"},
      {"uuid equal decides over the system uuid", {"u1", "s1", ""}, {"u1", "s2", ""}, ""},
      {"uuid different decides too", {"u1", "s1", ""}, {"u2", "s1", ""}, "metal3.io/uuid"},
      {"uuid missing there", {"", "s1", ""}, {"u1", "s1", ""}, ""},
      {"uuid missing there, other system", {"", "s1", ""}, {"u1", "s2", ""}, "system UUID"},
      {"uuid missing here", {"u1", "s1", ""}, {"", "s1", ""}, ""},
      {"uuid missing here, other system", {"u1", "s1", ""}, {"", "s2", ""}, "system UUID"},
      {"system equal in another case", {"", "AB-1", ""}, {"", "ab-1", ""}, ""},
      {"system unknown there", {"", "", ""}, {"", "s2", ""}, ""},
      {"system unknown here", {"", "s1", ""}, {"", "", ""}, ""},
      {"system in the annotation", {"", "", ""}, {"", "s2", ""}, "system UUID", "s1"},
      {"same system in the annotation", {"", "", ""}, {"", "s1", ""}, "", "s1"},
      {"the status counts before the annotation", {"", "s2", ""}, {"", "s2", ""}, "", "s1"},
      {"providerID equal", {"", "", "metal3://a/b/c"}, {"", "", "metal3://a/b/c"}, ""},
      {"providerID unset there", {"", "", ""}, {"", "", "metal3://a/b/c"}, ""},
      {"providerID unset here", {"", "", "metal3://a/b/c"}, {"", "", ""}, ""},
      {"providerID differs", {"", "", "metal3://a/b/c"}, {"", "", "metal3://a/b/d"}, "providerID"},
      {"providerID differs though the uuid is equal",
       {"u1", "", "metal3://a/b/c"},
       {"u1", "", "metal3://a/b/d"},
       "providerID"},
  };
  for (const Row& row : kRows) {
    const auto problem = foreign_claim(observed(row), desired(row.ours));
    if (*row.problem == '\0') {
      EXPECT_EQ(problem, std::nullopt) << row.what;
    } else {
      EXPECT_THAT(problem.value_or(""), HasSubstr(row.problem)) << row.what;
    }
  }
}

TEST(ForeignClaimTest, SaysWhoAndWhatToDo) {
  const Row row{"", {"u1", "", ""}, {"u2", "", ""}, ""};
  EXPECT_THAT(foreign_claim(observed(row), desired(row.ours)).value_or(""),
              AllOf(HasSubstr("n1"), HasSubstr("u1"), HasSubstr("u2"), HasSubstr("--nodename"),
                    HasSubstr("kubectl delete node n1")));
}

TEST(ForeignClaimTest, ANodeOfAKubeletNeedsProof) {
  const auto judged = [](const Side& theirs, const Side& ours, const char* runtime) {
    ObservedNode node = observed({"", theirs, ours, ""});
    node.node_info.container_runtime_version = runtime;
    return foreign_claim(node, desired(ours)).value_or("");
  };
  constexpr const char* kRuntime = "containerd://2.1.3";
  const auto is_of_a_kubelet =
      HasSubstr("belongs to a kubelet: its container runtime is containerd");
  EXPECT_THAT(judged({}, {}, kRuntime), is_of_a_kubelet);
  EXPECT_THAT(judged({"", "", "kind://a/b"}, {"", "s1", ""}, kRuntime), is_of_a_kubelet);
  EXPECT_EQ(judged({"u1", "", ""}, {"u1", "", ""}, kRuntime), "");
  EXPECT_EQ(judged({"", "s1", ""}, {"", "s1", ""}, kRuntime), "");
  EXPECT_EQ(judged({"", "", "metal3://a/b/c"}, {"", "", "metal3://a/b/c"}, kRuntime), "");
  EXPECT_EQ(judged({}, {}, ""), "") << "of virtual-kubelet";
  EXPECT_EQ(judged({}, {}, "slurm://22.05.8"), "");
}

TEST(MissingTaintsTest, KeyAndEffectCount) {
  const Taint no_schedule{"virtual-kubelet.io/provider", "slurm", "NoSchedule"};
  const Taint no_execute{"virtual-kubelet.io/provider", "slurm", "NoExecute"};
  DesiredNode wanted;
  wanted.taints = {no_schedule, no_execute, {"site.example/startup", "", "NoExecute"}};
  ObservedNode node;
  EXPECT_THAT(missing_taints(node, wanted), ElementsAre(no_schedule, no_execute));
  node.taints = {{"node.kubernetes.io/not-ready", "", "NoSchedule"}, no_schedule};
  EXPECT_THAT(missing_taints(node, wanted), ElementsAre(no_execute));
  node.taints.push_back({"virtual-kubelet.io/provider", "other-value", "NoExecute"});
  EXPECT_THAT(missing_taints(node, wanted), IsEmpty());
}

}  // namespace claim_test
}  // namespace slurmlet::node
