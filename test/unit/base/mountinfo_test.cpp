#include "base/mountinfo.h"

#include <gtest/gtest.h>

namespace slurmlet {
namespace {

TEST(Mountinfo, OwnersAreTheWordOfWhoMountedWithFuse) {
  constexpr const char* kText =
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,user_id=7\n"
      "31 22 0:44 / /tmp/x rw,nosuid - fuse me rw,user_id=1000,group_id=1000,allow_other\n"
      "32 22 0:45 / /home/a\\040b rw shared:9 master:2 - fuse.sshfs h: rw,group_id=5,user_id=0\n"
      "33 22 0:46 / /data rw - virtiofs data rw\n"
      "34 22 8:1 / /win rw - fuseblk /dev/sda1 rw,user_id=1001,group_id=0,blksize=4096\n"
      "35 22 0:47 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"
      "36 22 0:48 / /tmp/-\\040- rw - fuse user_id=0 rw,user_id=many\n"
      "37 22 0:49 / /cut rw\n";
  const struct {
    const char* id;
    std::optional<uid_t> user;
  } kRows[] = {
      {"22", 0}, {"31", 1000}, {"32", 0},  {"33", 0}, {"34", 1001},
      {"35", 0}, {"36", {}},   {"37", {}}, {"3", {}}, {"", {}},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(author_of_owners(kText, row.id), row.user) << row.id;
  }
}

}  // namespace
}  // namespace slurmlet
