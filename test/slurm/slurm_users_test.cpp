#include "slurm/slurm_users.h"

#include <gtest/gtest.h>

namespace slurmlet::slurm {
namespace {

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "slurm2:x:7:7::/:/bin/sh\n"
    "slurm:x:64030:64031::/nonexistent:/usr/sbin/nologin\n"
    "broken:x:many:1::/:\n"
    "short:x:5\n";

TEST(SlurmUsers, AreReadFromPasswd) {
  EXPECT_EQ(account_in(kPasswd, "slurm"), (Account{64030, 64031}));
  for (const char* name : {"slur", "broken", "short", "", "nobody-here"}) {
    EXPECT_EQ(account_in(kPasswd, name), std::nullopt) << name;
  }
}

TEST(SlurmUsers, SlurmUserMayBeANumber) {
  const TrustedUsers root;
  EXPECT_EQ(with_slurm_user(root, "root"), root);
  EXPECT_EQ(with_slurm_user(root, ""), root);
  EXPECT_EQ(with_slurm_user(root, "4711"), (TrustedUsers{{0, 4711}, {0}}));
  EXPECT_EQ(with_slurm_user(root, "65534"), root) << "users of other namespaces show with it";
  EXPECT_EQ(with_slurm_user(root, "no-such-account-here"), root);
}

}  // namespace
}  // namespace slurmlet::slurm
