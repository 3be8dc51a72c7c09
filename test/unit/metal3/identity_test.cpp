#include "metal3/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "metal3/samples.h"
#include "metal3/saved_state.h"

namespace slurmlet::metal3 {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Kind = Note::Kind;

constexpr const char* kProviderId = "metal3://metal3/node-4/hpc-8lfpj-759d9";

auto note(Note::Kind kind, auto text) {
  return AllOf(Field("kind", &Note::kind, kind), Field("text", &Note::text, text));
}

class Resolve : public ::testing::Test {
 protected:
  Resolve() {
    paths_.instance_data = tree_.path("instance-data.json");
    paths_.seed = tree_.path("seed");
    paths_.disks_by_label = tree_.path("by-label");
    paths_.mountinfo = tree_.path("mountinfo");
    paths_.state_dir = tree_.path("state");
  }
  void instance_data(const std::string& text = samples::kInstanceData) {
    tree_.file("instance-data.json", text);
  }
  void saved(const std::string& uuid, const std::string& provider_id) {
    ASSERT_TRUE(save_state(paths_.state_dir, {uuid, provider_id, "old-name"}));
  }
  fakes::TempTree tree_;
  Paths paths_;
};

TEST_F(Resolve, TakesInstanceDataFirst) {
  instance_data();
  tree_.file("seed/openstack/latest/meta_data.json",
             R"({"uuid": "other", "metal3-name": "node-4", "metal3-namespace": "metal3"})");
  const auto resolution = resolve(paths_);
  ASSERT_TRUE(resolution.facts);
  EXPECT_EQ(resolution.facts->uuid, samples::kUuid);
  EXPECT_THAT(resolution.notes, IsEmpty());
  EXPECT_FALSE(resolution.reprovisioned);
}

TEST_F(Resolve, ThenTheConfigDrive) {
  tree_.file("seed/openstack/latest/meta_data.json", samples::kMetaData);
  const auto resolution = resolve(paths_);
  ASSERT_TRUE(resolution.facts);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
  EXPECT_THAT(resolution.notes, IsEmpty());
}

// A seed or drive may be from an older Machine than cloud-init's data of this boot.
TEST_F(Resolve, IgnoresTheConfigDriveIfCloudInitRan) {
  tree_.file("seed/openstack/latest/meta_data.json", samples::kMetaData);
  for (const char* used : {R"({"ds": {"meta_data": {"instance-id": "i1", "dsmode": "net"}},
            "v1": {"cloud_id": "nocloud"}})",
                           R"({"ds": {"meta_data": {}}, "v1": {"cloud_id": "none"}})", "{", ""}) {
    instance_data(used);
    EXPECT_FALSE(resolve(paths_).facts) << used;
  }
}

TEST_F(Resolve, IgnoresTheConfigDriveIfCloudInitRanWithoutInstanceData) {
  tree_.file("seed/openstack/latest/meta_data.json", samples::kMetaData);
  tree_.file("status.json", R"({"v1": {"datasource": null}})");
  EXPECT_FALSE(resolve(paths_).facts);
}

TEST_F(Resolve, UsesTheSavedStateIfInstanceDataIsInvalid) {
  instance_data("{");
  saved(samples::kUuid, kProviderId);
  const auto resolution = resolve(paths_);
  ASSERT_TRUE(resolution.facts);
  EXPECT_THAT(resolution.notes, Contains(note(Kind::kProblem, HasSubstr("instance-data.json"))));
}

TEST_F(Resolve, UsesTheSavedStateIfCloudInitFoundNothing) {
  instance_data(R"({"ds": {"meta_data": {}}, "v1": {"cloud_id": "none"}})");
  saved(samples::kUuid, kProviderId);
  ASSERT_TRUE(resolve(paths_).facts);
  EXPECT_EQ(resolve(paths_).facts->uuid, samples::kUuid);
}

TEST_F(Resolve, ThenTheSavedState) {
  saved(samples::kUuid, kProviderId);
  const auto resolution = resolve(paths_);
  ASSERT_TRUE(resolution.facts);
  EXPECT_EQ(resolution.facts->uuid, samples::kUuid);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
  EXPECT_EQ(resolution.facts->node_name, "old-name");
  EXPECT_FALSE(resolution.reprovisioned);
  EXPECT_THAT(resolution.notes, ElementsAre(note(Kind::kNoMetadata, HasSubstr("metal3.json"))));
}

TEST_F(Resolve, WithoutAnySourceThereIsOneNoteAndNoIdentity) {
  const auto resolution = resolve(paths_);
  EXPECT_FALSE(resolution.facts);
  EXPECT_FALSE(resolution.reprovisioned);
  EXPECT_THAT(resolution.notes,
              ElementsAre(note(Kind::kNoMetadata,
                               AllOf(HasSubstr("the Node works"), HasSubstr("Machine")))));
}

TEST_F(Resolve, AnotherCloudsInstanceDataIsNotMetal3WhateverWasSaved) {
  for (const char* of : {R"({"ds": {"meta_data": {"instance-id": "i-0abc"}}})",
                         R"({"ds": {"meta_data": {"uuid": "2d55eb75-ed44-431e-9898-e26241198918",
            "name": "login-node-old", "hostname": "cn01.novalocal", "project_id": "p"}},
            "v1": {"cloud_id": "openstack"}})"}) {
    instance_data(of);
    saved(samples::kUuid, kProviderId);
    const auto resolution = resolve(paths_);
    EXPECT_FALSE(resolution.facts) << of;
    EXPECT_FALSE(resolution.reprovisioned);
    EXPECT_THAT(resolution.notes,
                ElementsAre(note(Kind::kNoMetadata,
                                 AllOf(HasSubstr("instance-data.json"), HasSubstr("metal3-name"),
                                       HasSubstr("node.metal3UUID")))));
    EXPECT_TRUE(tree_.exists("state/metal3.json")) << "settings may name that Machine";
  }
}

TEST_F(Resolve, AConfigDriveOfOpenStackIsNotMetal3) {
  tree_.file("seed/openstack/latest/meta_data.json",
             R"({"uuid": "u-1", "name": "vm-1", "hostname": "vm-1", "project_id": "p"})");
  EXPECT_FALSE(resolve(paths_).facts);
}

TEST_F(Resolve, AnotherUuidMeansReprovisioned) {
  instance_data();
  saved("an-older-uuid", "metal3://metal3/node-4/hpc-old");
  const auto resolution = resolve(paths_);
  ASSERT_TRUE(resolution.facts);
  EXPECT_TRUE(resolution.reprovisioned);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
  EXPECT_THAT(resolution.notes,
              ElementsAre(note(Kind::kReprovisioned,
                               AllOf(HasSubstr("an-older-uuid"), HasSubstr(samples::kUuid)))));
  EXPECT_FALSE(tree_.exists("state/metal3.json"));
}

TEST_F(Resolve, AnotherMetal3MachineOnTheSameHostMeansReprovisioned) {
  instance_data();
  saved(samples::kUuid, "metal3://metal3/node-4/hpc-old");
  const auto resolution = resolve(paths_);
  EXPECT_TRUE(resolution.reprovisioned);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
  EXPECT_FALSE(tree_.exists("state/metal3.json"));
}

TEST_F(Resolve, TheSameMachineKeepsItsState) {
  instance_data();
  for (const char* provider_id : {kProviderId, "", "openshift:///custom"}) {
    saved(samples::kUuid, provider_id);
    const auto resolution = resolve(paths_);
    EXPECT_FALSE(resolution.reprovisioned) << provider_id;
    EXPECT_TRUE(tree_.exists("state/metal3.json")) << provider_id;
    EXPECT_EQ(resolution.facts->provider_id, kProviderId);
    EXPECT_THAT(resolution.notes, IsEmpty());
  }
}

// The Node has the values of the settings, whatever the metadata.
TEST_F(Resolve, SettingsAreNotComparedWithMetadata) {
  instance_data();
  const MachineId metadata{samples::kUuid, kProviderId};
  for (const auto& [uuid, provider_id] :
       {std::pair{samples::kUuid, "metal3://tenant/bmh-0/cn-x7"}, std::pair{"set", kProviderId},
        std::pair{"set", "metal3://tenant/bmh-0/cn-x7"}}) {
    ASSERT_TRUE(save_state(paths_.state_dir, {uuid, provider_id, "n", metadata}));
    const auto resolution = resolve(paths_);
    EXPECT_FALSE(resolution.reprovisioned) << uuid << provider_id;
    EXPECT_EQ(resolution.metadata, metadata);
    EXPECT_EQ(resolution.facts->provider_id, kProviderId);
    EXPECT_THAT(resolution.notes, IsEmpty());
  }
}

TEST_F(Resolve, OtherMetadataThanSavedMeansReprovisionedWhateverTheSettings) {
  instance_data();
  for (const MachineId& then : {MachineId{samples::kUuid, "metal3://metal3/node-4/hpc-old"},
                                MachineId{"an-older-uuid", kProviderId}}) {
    ASSERT_TRUE(save_state(paths_.state_dir, {samples::kUuid, kProviderId, "n", then}));
    EXPECT_TRUE(resolve(paths_).reprovisioned) << then.uuid << then.provider_id;
  }
}

// Cluster API's provider had set the Node's providerID.
TEST_F(Resolve, ComparesTheNodesProviderIdIfMetadataHadNone) {
  instance_data();
  const MachineId then{samples::kUuid, ""};
  ASSERT_TRUE(save_state(paths_.state_dir, {samples::kUuid, kProviderId, "n", then}));
  EXPECT_FALSE(resolve(paths_).reprovisioned);
  ASSERT_TRUE(
      save_state(paths_.state_dir, {samples::kUuid, "metal3://metal3/node-4/hpc-old", "n", then}));
  EXPECT_TRUE(resolve(paths_).reprovisioned);
}

TEST_F(Resolve, FirstMetadataIsNotAnotherMachine) {
  instance_data();
  ASSERT_TRUE(save_state(paths_.state_dir, {"set", "metal3://set/by/hand", "n", MachineId{}}));
  const auto resolution = resolve(paths_);
  EXPECT_FALSE(resolution.reprovisioned);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
}

TEST_F(Resolve, WithoutMetadataTheSavedOneIsKept) {
  const MachineId then{samples::kUuid, kProviderId};
  ASSERT_TRUE(save_state(paths_.state_dir, {"set", "metal3://set/by/hand", "n", then}));
  EXPECT_EQ(resolve(paths_).metadata, then);
}

TEST_F(Resolve, AProviderIdSeenOnTheNodeFillsInForMissingMetadata) {
  instance_data(R"({"ds": {"meta_data": {"uuid": "u-1", "name": "node-4", "metal3-name": "node-4",
                                         "metal3-namespace": "metal3"}}})");
  saved("u-1", kProviderId);
  const auto resolution = resolve(paths_);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
  EXPECT_EQ(resolution.facts->node_name, "node-4");
}

TEST_F(Resolve, AnInvalidSavedStateIsNotedAndSetAside) {
  instance_data();
  tree_.file("state/metal3.json", "{");
  const auto resolution = resolve(paths_);
  EXPECT_TRUE(resolution.facts);
  EXPECT_FALSE(resolution.reprovisioned);
  EXPECT_THAT(resolution.notes, Contains(note(Kind::kProblem, HasSubstr("metal3.json.broken"))));
  EXPECT_TRUE(tree_.exists("state/metal3.json.broken"));
}

TEST_F(Resolve, ReadOnlyResolvesTheSameAndKeepsTheState) {
  instance_data();
  saved("an-older-uuid", "metal3://metal3/node-4/hpc-old");
  const auto read_only = resolve(paths_, StateUse::kReadOnly);
  EXPECT_TRUE(tree_.exists("state/metal3.json"));
  const auto resolved = resolve(paths_);
  EXPECT_TRUE(read_only.reprovisioned);
  ASSERT_TRUE(read_only.facts);
  EXPECT_EQ(read_only.facts->uuid, resolved.facts->uuid);
  EXPECT_EQ(read_only.facts->provider_id, resolved.facts->provider_id);
}

TEST_F(Resolve, ReadOnlyKeepsAnInvalidState) {
  instance_data();
  tree_.file("state/metal3.json", "{");
  EXPECT_THAT(resolve(paths_, StateUse::kReadOnly).notes,
              Contains(note(Kind::kProblem, HasSubstr("metal3.json"))));
  EXPECT_TRUE(tree_.exists("state/metal3.json"));
  EXPECT_FALSE(tree_.exists("state/metal3.json.broken"));
}

}  // namespace
}  // namespace slurmlet::metal3
