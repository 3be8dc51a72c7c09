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
  tree_.file("seed/openstack/latest/meta_data.json", R"({"uuid": "other"})");
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

TEST_F(Resolve, ABrokenFileIsNotedAndTheNextSourceTaken) {
  instance_data("{");
  tree_.file("seed/openstack/latest/meta_data.json", samples::kMetaData);
  const auto resolution = resolve(paths_);
  ASSERT_TRUE(resolution.facts);
  EXPECT_THAT(resolution.notes, ElementsAre(note(Kind::kProblem, HasSubstr("instance-data.json"))));
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

TEST_F(Resolve, WithNothingThereIsOneNoteAndNoIdentity) {
  const auto resolution = resolve(paths_);
  EXPECT_FALSE(resolution.facts);
  EXPECT_FALSE(resolution.reprovisioned);
  EXPECT_THAT(resolution.notes,
              ElementsAre(note(Kind::kNoMetadata,
                               AllOf(HasSubstr("the Node works"), HasSubstr("Machine")))));
}

TEST_F(Resolve, AnotherCloudsInstanceDataIsNotMetal3) {
  instance_data(R"({"ds": {"meta_data": {"instance-id": "i-0abc"}}})");
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

TEST_F(Resolve, AProviderIdSeenOnTheNodeFillsInForMissingMetadata) {
  instance_data(R"({"ds": {"meta_data": {"uuid": "u-1", "name": "node-4"}}})");
  saved("u-1", kProviderId);
  const auto resolution = resolve(paths_);
  EXPECT_EQ(resolution.facts->provider_id, kProviderId);
  EXPECT_EQ(resolution.facts->node_name, "node-4");
}

TEST_F(Resolve, ABrokenSavedStateIsNotedAndKeptAside) {
  instance_data();
  tree_.file("state/metal3.json", "{");
  const auto resolution = resolve(paths_);
  EXPECT_TRUE(resolution.facts);
  EXPECT_FALSE(resolution.reprovisioned);
  EXPECT_THAT(resolution.notes, Contains(note(Kind::kProblem, HasSubstr("metal3.json.broken"))));
  EXPECT_TRUE(tree_.exists("state/metal3.json.broken"));
}

TEST_F(Resolve, WhoOnlyLooksSeesTheSameAndLeavesItThere) {
  instance_data();
  saved("an-older-uuid", "metal3://metal3/node-4/hpc-old");
  const auto looked = resolve(paths_, StateUse::kLook);
  EXPECT_TRUE(tree_.exists("state/metal3.json"));
  const auto resolved = resolve(paths_);
  EXPECT_TRUE(looked.reprovisioned);
  ASSERT_TRUE(looked.facts);
  EXPECT_EQ(looked.facts->uuid, resolved.facts->uuid);
  EXPECT_EQ(looked.facts->provider_id, resolved.facts->provider_id);
}

TEST_F(Resolve, WhoOnlyLooksLeavesABrokenStateThere) {
  instance_data();
  tree_.file("state/metal3.json", "{");
  EXPECT_THAT(resolve(paths_, StateUse::kLook).notes,
              Contains(note(Kind::kProblem, HasSubstr("metal3.json"))));
  EXPECT_TRUE(tree_.exists("state/metal3.json"));
  EXPECT_FALSE(tree_.exists("state/metal3.json.broken"));
}

}  // namespace
}  // namespace slurmlet::metal3
