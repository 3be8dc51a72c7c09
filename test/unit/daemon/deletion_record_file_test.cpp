#include "daemon/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

class DeletionRecordFileTest : public ::testing::Test {
 protected:
  Result<std::optional<node::DeletionRecord>> load(const DeletionScope& scope) {
    return load_deletion_record(scope, now_);
  }
  std::string file() const { return (tree_.path("node-end.json")).string(); }

  fakes::TempTree tree_;
  SteadyTime now_{hours{5}};
  DeletionScope scope_{tree_.root().string(), "boot-1",      "n1", "u1",
                       "metal3://a/b/c",      "credential-1"};
  node::DeletionRecord record_{"node-uid-1", "m1", true, SteadyTime{hours{4}},
                               "2026-11-20T15:58:10Z"};
};

TEST_F(DeletionRecordFileTest, ComesBackAsItWasInTheSameBoot) {
  for (const bool gone : {true, false}) {
    if (!gone) {
      record_.gone_at.reset();
      record_.deleted_at.clear();
    }
    ASSERT_TRUE(save_deletion_record(scope_, record_));
    const auto loaded = load(scope_);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(*loaded, record_);
  }
  const auto mode = std::filesystem::status(file()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(DeletionRecordFileTest, NothingIsNoFileAndSoIsAnUnknownBoot) {
  EXPECT_EQ(*load(scope_), std::nullopt);
  ASSERT_TRUE(save_deletion_record(scope_, record_));
  ASSERT_TRUE(save_deletion_record(scope_, std::nullopt));
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_TRUE(save_deletion_record(scope_, std::nullopt));
  scope_.boot_id.clear();
  ASSERT_TRUE(save_deletion_record(scope_, record_));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(DeletionRecordFileTest, WhatIsNewStartsWithoutIt) {
  ASSERT_TRUE(save_deletion_record(scope_, record_));
  const struct {
    const char* what;
    std::string DeletionScope::*field;
    const char* value;
    bool known;
  } table[] = {{"a reboot", &DeletionScope::boot_id, "boot-2", false},
               {"an unknown boot", &DeletionScope::boot_id, "", false},
               {"another name", &DeletionScope::node_name, "n2", false},
               {"another uuid", &DeletionScope::metal3_uuid, "u2", false},
               {"another providerID", &DeletionScope::provider_id, "metal3://a/b/d", false},
               {"another credential", &DeletionScope::credential, "credential-2", false},
               {"metadata that is away now", &DeletionScope::metal3_uuid, "", true},
               {"the same for the providerID", &DeletionScope::provider_id, "", true}};
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    DeletionScope scope = scope_;
    scope.*row.field = row.value;
    const auto loaded = load(scope);
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->has_value(), row.known);
  }
}

TEST_F(DeletionRecordFileTest, ATimeToComeIsNow) {
  record_.gone_at = now_ + hours{1000};
  ASSERT_TRUE(save_deletion_record(scope_, record_));
  EXPECT_EQ((*load(scope_))->gone_at, now_);
}

TEST_F(DeletionRecordFileTest, WhatIsNoneOfOursIsAnError) {
  for (const std::string text : {"", "{", "[]", "{\"bootID\": \"boot-1\"}", "{\"nodeUID\": 7}"}) {
    SCOPED_TRACE(text);
    ASSERT_TRUE(write_file_atomic(file(), text, 0600));
    const auto loaded = load(scope_);
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message, HasSubstr("node-end.json is broken"));
  }
  ASSERT_TRUE(write_file_atomic(file(), std::string(1 << 20, ' '), 0600));
  EXPECT_FALSE(load(scope_));
}

}  // namespace
}  // namespace slurmlet::daemon
