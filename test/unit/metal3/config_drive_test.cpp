#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "metal3/metadata.h"
#include "metal3/samples.h"

namespace slurmlet::metal3 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kMountinfo =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "40 27 8:4 /openstack /bind rw,relatime shared:3 - iso9660 /dev/sda4 ro\n"
    "41 27 8:4 / /mnt/config\\040drive ro,relatime shared:4 master:1 - iso9660 /dev/sda4 ro\n"
    "42 27 8:5 / /short - iso9660\n";

TEST(MountPointOf, FindsTheWholeDevice) {
  EXPECT_EQ(mount_point_of(kMountinfo, "/dev/sda4", ""), "/mnt/config drive");
  EXPECT_EQ(mount_point_of(kMountinfo, "/dev/other-name", "8:4"), "/mnt/config drive");
  EXPECT_EQ(mount_point_of(kMountinfo, "/dev/sda5", "8:5"), std::nullopt);
  EXPECT_EQ(mount_point_of("", "/dev/sda4", "8:4"), std::nullopt);
}

class ConfigDrive : public ::testing::Test {
 protected:
  ConfigDrive() {
    paths_.seed = tree_.path("seed");
    paths_.disks_by_label = tree_.path("by-label");
    paths_.mountinfo = tree_.path("mountinfo");
    paths_.state_dir = tree_.path("state");
  }
  // A regular file as device, which mountinfo may contain.
  void add_device(const std::string& label) {
    tree_.file("dev/sda4", "");
    tree_.symlink("../dev/sda4", "by-label/" + label);
  }
  void mounted_at(const std::string& directory) {
    tree_.file("mountinfo", "41 27 8:4 / " + tree_.path(directory).string() + " ro - iso9660 " +
                                tree_.path("dev/sda4").string() + " ro\n");
  }
  fakes::TempTree tree_;
  Paths paths_;
};

TEST_F(ConfigDrive, NoDriveIsNotFound) {
  const auto reading = read_config_drive(paths_);
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, Code::kNotFound);
}

TEST_F(ConfigDrive, ReadsTheSeedDirectory) {
  tree_.file("seed/openstack/latest/meta_data.json", samples::kMetaData)
      .file("seed/openstack/latest/network_data.json", samples::kNetworkData);
  const auto reading = read_config_drive(paths_);
  ASSERT_TRUE(reading && reading->facts);
  EXPECT_EQ(reading->facts->provider_id, "metal3://metal3/node-4/hpc-8lfpj-759d9");
  EXPECT_THAT(reading->facts->ip_addresses, ElementsAre("172.22.0.101"));
  EXPECT_EQ(reading->facts->source, paths_.seed.string());
}

TEST_F(ConfigDrive, ReadsAMountedDriveUnderEitherLabel) {
  for (const char* label : {"config-2", "CONFIG-2"}) {
    tree_.remove("by-label").remove("mnt");
    add_device(label);
    mounted_at("mnt");
    tree_.file("mnt/openstack/latest/meta_data.json", samples::kMetaData);
    const auto reading = read_config_drive(paths_);
    ASSERT_TRUE(reading && reading->facts) << label;
    EXPECT_EQ(reading->facts->uuid, samples::kUuid);
    EXPECT_THAT(reading->facts->source, AllOf(HasSubstr("dev/sda4"), HasSubstr("mnt")));
  }
}

TEST_F(ConfigDrive, BrokenMetaDataNamesTheDrive) {
  tree_.file("seed/openstack/latest/meta_data.json", "{")
      .file("mnt/openstack/latest/meta_data.json", samples::kMetaData);
  add_device("config-2");  // not read, since the seed is a copy of it
  mounted_at("mnt");
  const auto reading = read_config_drive(paths_);
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, Code::kInvalid);
  EXPECT_THAT(reading.error().message, HasSubstr(paths_.seed.string()));
}

TEST_F(ConfigDrive, AnUnmountedDriveIsAnErrorWithAFix) {
  add_device("config-2");
  tree_.file("mountinfo", "");
  const auto reading = read_config_drive(paths_);
  ASSERT_FALSE(reading);
  EXPECT_THAT(reading.error().message,
              AllOf(HasSubstr("dev/sda4"), HasSubstr("LABEL=config-2"), HasSubstr("/etc/fstab")));
}

TEST_F(ConfigDrive, ADanglingLabelIsNoDrive) {
  tree_.symlink("../dev/gone", "by-label/config-2");
  EXPECT_EQ(read_config_drive(paths_).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace slurmlet::metal3
