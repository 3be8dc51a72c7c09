#include "metal3/saved_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"

namespace slurmlet::metal3 {
namespace {

using ::testing::HasSubstr;

const SavedState kState{"u-1", "metal3://metal3/node-4/hpc-1", "hpc-1",
                        MachineId{"u-2", "metal3://metal3/node-4/hpc-2"}};

TEST(SavedState, SurvivesARoundTrip) {
  const fakes::TempTree tree;
  ASSERT_TRUE(save_state(tree.root(), kState));
  const auto loaded = load_state(tree.root());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(*loaded, kState);
}

TEST(SavedState, AFileOfAnEarlierVersionHasNoMetadata) {
  fakes::TempTree tree;
  tree.file("metal3.json", R"({"uuid": "u-1", "providerID": "p", "nodeName": "n"})");
  const auto loaded = load_state(tree.root());
  ASSERT_TRUE(loaded && *loaded);
  EXPECT_EQ(**loaded, (SavedState{"u-1", "p", "n"}));
}

TEST(SavedState, IsReadableByTheDaemonOnly) {
  const fakes::TempTree tree;
  ASSERT_TRUE(save_state(tree.root(), kState));
  EXPECT_EQ(tree.mode("metal3.json"), 0600u);
}

TEST(SavedState, NoFileIsNoState) {
  const fakes::TempTree tree;
  const auto loaded = load_state(tree.root());
  ASSERT_TRUE(loaded);
  EXPECT_FALSE(*loaded);
}

TEST(SavedState, AnInvalidFileIsSetAsideAndReported) {
  for (const char* text : {"", "{", "[]", "{}", R"({"uuid": 7, "providerID": "", "nodeName": ""})",
                           R"({"uuid": "", "providerID": "p", "nodeName": "n"})",
                           R"({"uuid": "u", "providerID": "p", "nodeName": "n", "metadata": 1})"}) {
    fakes::TempTree tree;
    tree.file("metal3.json", text);
    const auto loaded = load_state(tree.root());
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().code, Code::kInvalid);
    EXPECT_THAT(loaded.error().message, HasSubstr("metal3.json.broken"));
    EXPECT_FALSE(tree.exists("metal3.json"));
    EXPECT_EQ(tree.content("metal3.json.broken"), text);
    const auto again = load_state(tree.root());
    EXPECT_TRUE(again && !*again) << "reported once";
  }
}

TEST(SavedState, ReadOnlyKeepsAnInvalidFile) {
  fakes::TempTree tree;
  tree.file("metal3.json", "{");
  for (int time = 0; time < 2; ++time) {
    const auto loaded = load_state(tree.root(), StateUse::kReadOnly);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Code::kInvalid);
    EXPECT_EQ(tree.content("metal3.json"), "{");
  }
  ASSERT_TRUE(save_state(tree.root(), kState));
  EXPECT_EQ(*load_state(tree.root(), StateUse::kReadOnly), kState);
}

TEST(SavedState, BytesThatAreNotUtf8DoNotThrow) {
  const fakes::TempTree tree;
  EXPECT_TRUE(save_state(tree.root(), {"u-1", "\xff\xfe", "n"}));
  EXPECT_TRUE(load_state(tree.root()));
}

TEST(SavedState, SavingToAnUnwritableDirectoryIsAnError) {
  fakes::TempTree tree;
  tree.file("in-the-way", "");
  EXPECT_FALSE(save_state(tree.path("in-the-way"), kState));
}

TEST(SavedState, DiscardRemovesItAndMayBeRepeated) {
  const fakes::TempTree tree;
  ASSERT_TRUE(save_state(tree.root(), kState));
  EXPECT_TRUE(discard_state(tree.root()));
  EXPECT_FALSE(tree.exists("metal3.json"));
  EXPECT_TRUE(discard_state(tree.root()));
}

}  // namespace
}  // namespace slurmlet::metal3
