#include "daemon/node_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include "base/text.h"
#include "fakes/temp_tree.h"
#include "metal3/saved_state.h"

namespace slurmlet::daemon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kUuid = "2d55eb75-ed44-431e-9898-e26241198918";

class NodeIdentityTest : public ::testing::Test {
 protected:
  NodeIdentityTest() {
    settings_.state_dir = tree_.root().string();
    settings_.metal3.instance_data = tree_.path("instance-data.json").string();
  }
  void metadata(const std::string& name, const std::string& machine = "m1") {
    tree_.file("instance-data.json", std::string{R"({"ds": {"meta_data": {"metal3-name": "host-1",
                   "metal3-namespace": "metal3", "uuid": ")"} +
                                         kUuid + R"(", "name": ")" + name +
                                         R"(", "providerid": "metal3/host-1/)" + machine +
                                         R"("}}})");
  }
  NodeIdentity identity(StateUse use = StateUse::kOwn) {
    auto found = identify(settings_, use);
    EXPECT_TRUE(found) << found.error().message;
    return found ? *std::move(found) : NodeIdentity{};
  }
  void save(const std::string& uuid, const std::string& provider_id, const std::string& name) {
    ASSERT_TRUE(metal3::save_state(tree_.root(), {uuid, provider_id, name}));
  }

  fakes::TempTree tree_;
  config::Settings settings_;
};

TEST_F(NodeIdentityTest, TheNameIsTheConfiguredOneThenTheMetadatasThenTheHosts) {
  utsname host{};
  ASSERT_EQ(::uname(&host), 0);
  EXPECT_EQ(identity().policy.node_name, to_lower(host.nodename));
  EXPECT_EQ(identity().name_source, "the host name");
  metadata("hpc-1");
  EXPECT_EQ(identity().policy.node_name, "hpc-1");
  EXPECT_THAT(identity().name_source, HasSubstr("instance-data.json"));
  settings_.node.name = "n7";
  EXPECT_EQ(identity().policy.node_name, "n7");
  EXPECT_THAT(identity().name_source, HasSubstr("--nodename"));
  EXPECT_EQ(identity().hostname, host.nodename) << "Slurm's names are matched with it";
}

TEST_F(NodeIdentityTest, ANameThatKubernetesRejectsIsAnError) {
  settings_.node.name = "Node_1";
  const auto found = identify(settings_);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kInvalid);
  EXPECT_THAT(found.error().message, AllOf(HasSubstr("\"Node_1\""), HasSubstr("--nodename")));
}

TEST_F(NodeIdentityTest, ThePolicyIsWhatWasConfigured) {
  auto& node = settings_.node;
  node.name = "n1";
  node.labels = {{"rack", "r1"}};
  node.ip = "192.0.2.7, 2001:db8::7";
  node.taints = "site.example/hpc=yes:NoSchedule";
  node.slurm_labels = "cluster, gpu";
  node.publish_hostname = false;
  node.kubelet_version = "v1.35.0";
  node.gpu_resources = {{"gpu", "nvidia.com/gpu"}};
  node.ready_follows = node::ReadyFollows::kSlurm;
  node.exclude_from_disruption = false;
  node.unschedulable = true;
  settings_.slurm.publish_job_ids = true;
  const auto policy = identity().policy;
  EXPECT_EQ(policy.labels, node.labels);
  EXPECT_THAT(policy.node_ips, ElementsAre("192.0.2.7", "2001:db8::7"));
  EXPECT_THAT(policy.taints, ElementsAre(node::Taint{"site.example/hpc", "yes", "NoSchedule"}));
  EXPECT_THAT(policy.slurm_labels, ElementsAre("cluster", "gpu"));
  EXPECT_FALSE(policy.publish_hostname);
  EXPECT_EQ(policy.kubelet_version, "v1.35.0");
  EXPECT_EQ(policy.gpu_resources, node.gpu_resources);
  EXPECT_EQ(policy.ready_follows, node::ReadyFollows::kSlurm);
  EXPECT_FALSE(policy.exclude_from_disruption);
  EXPECT_TRUE(policy.unschedulable);
  EXPECT_TRUE(policy.publish_job_ids);
  EXPECT_EQ(policy.kubelet_port, 0) << "nothing listens yet";
  node.ip = "";
  EXPECT_THAT(identity().policy.node_ips, IsEmpty());
}

TEST_F(NodeIdentityTest, ConfigurationGoesBeforeMetadataAndThatBeforeWhatWasSeen) {
  metadata("n1");
  NodeIdentity found = identity();
  EXPECT_EQ(metal3_uuid_of(found), kUuid);
  EXPECT_EQ(provider_id_of(found), "metal3://metal3/host-1/m1");
  found.policy.metal3_uuid = "u2";
  found.policy.provider_id = "metal3://a/b/c";
  found.remembered_provider_id = "metal3://d/e/f";
  EXPECT_EQ(metal3_uuid_of(found), "u2");
  EXPECT_EQ(provider_id_of(found), "metal3://a/b/c");
  found.policy = {};
  found.metal3->provider_id.clear();
  EXPECT_EQ(provider_id_of(found), "metal3://d/e/f");
  found.metal3.reset();
  found.remembered_provider_id.clear();
  EXPECT_EQ(metal3_uuid_of(found), "");
  EXPECT_EQ(provider_id_of(found), "");
}

TEST_F(NodeIdentityTest, TheProviderIdOfAnEarlierRunIsThatOfTheSameMachineAndName) {
  settings_.node.name = "n1";
  settings_.node.metal3_uuid = kUuid;
  const NodeIdentity earlier = identity();
  ASSERT_TRUE(remember_provider_id(settings_, earlier, "metal3://a/b/c"));
  EXPECT_EQ(identity().remembered_provider_id, "metal3://a/b/c");
  settings_.node.name = "n2";
  EXPECT_EQ(identity().remembered_provider_id, "");
  settings_.node.name = "n1";
  settings_.node.metal3_uuid = "another";
  EXPECT_EQ(identity().remembered_provider_id, "");
}

TEST_F(NodeIdentityTest, WhatIsRememberedWithoutAMachineIsNotBroken) {
  settings_.node.name = "n1";
  ASSERT_TRUE(remember_provider_id(settings_, identity(), "other://a"));
  EXPECT_EQ(identity().remembered_provider_id, "") << "nothing says whose it was";
  EXPECT_FALSE(tree_.exists("metal3.json.broken"));
  tree_.file("metal3.json", "{");
  EXPECT_EQ(identity(StateUse::kReadOnly).remembered_provider_id, "");
  EXPECT_TRUE(tree_.exists("metal3.json")) << "a subcommand only looks";
  EXPECT_EQ(identity().remembered_provider_id, "");
  EXPECT_FALSE(tree_.exists("metal3.json"));
  EXPECT_TRUE(tree_.exists("metal3.json.broken"));
}

// The Node has what is set; only other metadata is another Machine.
TEST_F(NodeIdentityTest, SettingsBesideMetadataAreNoOtherMachineAtTheNextStart) {
  metadata("n1");
  settings_.node.provider_id = "metal3://tenant/bmh-0/cn-x7";
  settings_.node.metal3_uuid = "set";
  for (int start = 0; start < 2; ++start) {
    const NodeIdentity found = identity();
    EXPECT_FALSE(found.reprovisioned);
    EXPECT_THAT(found.notes, IsEmpty());
    ASSERT_TRUE(remember_provider_id(settings_, found, settings_.node.provider_id));
  }
  metadata("n1", "m2");
  EXPECT_TRUE(identity().reprovisioned);
}

TEST_F(NodeIdentityTest, OnlyTheDaemonRemovesTheStateOfAnEarlierMachine) {
  metadata("n1", "m2");
  save(kUuid, "metal3://metal3/host-1/m1", "n1");
  EXPECT_TRUE(identity(StateUse::kReadOnly).reprovisioned);
  EXPECT_TRUE(tree_.exists("metal3.json")) << "a subcommand only looks";
  EXPECT_TRUE(identity().reprovisioned);
  EXPECT_FALSE(tree_.exists("metal3.json"));
  EXPECT_FALSE(identity().reprovisioned);
}

TEST_F(NodeIdentityTest, ACertificateOfAnotherNodeIsAnError) {
  settings_.node.name = "n1";
  EXPECT_TRUE(check_credential(identity(), "n1"));
  EXPECT_TRUE(check_credential(identity(), "")) << "a token says no name";
  const Status wrong = check_credential(identity(), "n2");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("set --nodename n2, or a credential for n1"));
}

}  // namespace
}  // namespace slurmlet::daemon
