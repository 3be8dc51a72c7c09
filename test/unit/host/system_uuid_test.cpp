#include "host/machine.h"

#include <gtest/gtest.h>

#include "fakes/temp_tree.h"

namespace slurmlet::host {
namespace system_uuid_test {

constexpr const char* kUuid = "4c4c4544-0042-3510-8052-b4c04f4d3533";

Paths paths_in(const fakes::TempTree& tree) {
  Paths paths;
  paths.sys = tree.path("sys");
  paths.state_dir = tree.path("state");
  return paths;
}

TEST(UsableUuid, LowersAndTrims) {
  EXPECT_EQ(usable_uuid("4C4C4544-0042-3510-8052-B4C04F4D3533\n"), kUuid);
}

TEST(UsableUuid, RejectsPlaceholdersAndInvalidText) {
  for (const char* bad :
       {"", "03000200-0400-0500-0006-000700080009", "00020003-0004-0005-0006-000700080009",
        "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "Not Settable", "4c4c4544-0042-3510-8052-b4c04f4d353",
        "4c4c4544x0042-3510-8052-b4c04f4d3533", "4c4c4544-0042-3510-8052-b4c04f4d353g",
        "12345678-1234-5678-90AB-CDDEEFAABBCC"}) {
    EXPECT_EQ(usable_uuid(bad), "") << bad;
  }
}

TEST(ReadSystemUuid, TriesSysfsThenTheSavedCopy) {
  fakes::TempTree tree;
  EXPECT_EQ(read_system_uuid(paths_in(tree)), "");
  tree.file("state/system-uuid", kUuid);
  EXPECT_EQ(read_system_uuid(paths_in(tree)), kUuid);
  tree.file("sys/devices/virtual/dmi/id/product_uuid", "11111111-0042-3510-8052-b4c04f4d3533\n");
  EXPECT_EQ(read_system_uuid(paths_in(tree)), "11111111-0042-3510-8052-b4c04f4d3533");
  tree.file("sys/class/dmi/id/product_uuid", "22222222-0042-3510-8052-b4c04f4d3533\n");
  EXPECT_EQ(read_system_uuid(paths_in(tree)), "22222222-0042-3510-8052-b4c04f4d3533");
}

}  // namespace system_uuid_test
}  // namespace slurmlet::host
