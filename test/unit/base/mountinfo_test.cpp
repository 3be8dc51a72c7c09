#include "base/mountinfo.h"

#include <gtest/gtest.h>

#include "fakes/temp_tree.h"

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

TEST(Mountinfo, TheLongestMountPointDecides) {
  const std::string mounts =
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "30 22 0:40 / /srv rw - nfs4 server:/srv rw\n"
      "31 30 0:41 / /srv/with\\040space rw master:2 - lustre mgs:/x rw\n"
      "33 32 0:43 / /run/x rw - xfs /dev/sdb rw\n"
      "34 33 0:44 / /run/x rw - autofs auto rw\n"
      "garbage\n";
  const struct {
    const char* path;
    const char* place;
  } kRows[] = {{"/", "8:1 /"},
               {"/srv", "0:40 "},
               {"/srv/spool", "0:40 /spool"},
               {"/srvspool", "8:1 /srvspool"},
               {"/srv/with space/spool", "0:41 /spool"},
               {"/run/x/spool", "0:44 /spool"}};
  for (const auto& row : kRows) {
    EXPECT_EQ(place_on_device(mounts, row.path), row.place);
  }
}

TEST(Mountinfo, APlaceIsTheSameWhereverItIsMounted) {
  const std::string host = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
  // A container with the host's /srv/c1 as root, and one directory of the host as it is.
  const std::string container =
      "90 80 8:1 /srv/c1 / rw - ext4 /dev/sda1 rw\n"
      "91 90 8:1 /var/spool /var/spool rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(place_on_device(host, "/var/spool/slurmd"), "8:1 /var/spool/slurmd");
  EXPECT_EQ(place_on_device(container, "/var/spool/slurmd"), "8:1 /var/spool/slurmd");
  EXPECT_EQ(place_on_device(container, "/var/spooled"), "8:1 /srv/c1/var/spooled");
  EXPECT_EQ(place_on_device("", "/var"), "");

  fakes::TempTree tree;
  const std::string proc = tree.root().string();
  EXPECT_TRUE(is_seen_alike(proc, 7, "/var/spooled")) << "/proc does not tell";
  tree.file("self/mountinfo", host).file("7/mountinfo", container);
  EXPECT_TRUE(is_seen_alike(proc, 7, "/var/spool/slurmd"));
  EXPECT_FALSE(is_seen_alike(proc, 7, "/var/spooled"));
}

}  // namespace
}  // namespace slurmlet
