#include "check/service_unit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fakes/temp_tree.h"

namespace slurmlet::check {
namespace service_unit_test {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ServiceUnitTest, AsSystemctlShowsIt) {
  const auto unit =
      read_unit("a.service", "User=slurmlet\nActiveState=activating\nUnitFileState=enabled\n");
  EXPECT_EQ(unit.name, "a.service");
  EXPECT_EQ(unit.user, "slurmlet");
  EXPECT_TRUE(unit.enabled && unit.active);
  const auto of_root = read_unit("a", "User=root\nActiveState=failed\nUnitFileState=disabled\n");
  EXPECT_TRUE(of_root.user.empty() && !of_root.enabled && !of_root.active);
  const auto none = read_unit("a", "User=\nActiveState=inactive\nUnitFileState=\n");
  EXPECT_TRUE(none.user.empty() && !none.enabled && !none.active);
  EXPECT_TRUE(read_unit("a", "").user.empty()) << "no systemd here";
}

TEST(ServiceUnitTest, WhatItsUserCannotRead) {
  fakes::TempTree tree;
  tree.file("open", "x").file("closed", "x");
  const std::string open = tree.root() / "open";
  const std::string closed = tree.root() / "closed";
  ASSERT_EQ(chmod(tree.root().c_str(), 0755), 0);
  ASSERT_EQ(chmod(open.c_str(), 0644), 0);
  ASSERT_EQ(chmod(closed.c_str(), 0600), 0);
  ServiceUnit unit;
  unit.name = "a.service";
  unit.user = "nobody";
  const auto found = unreadable(unit, {"", "/nonexistent", open, closed});
  if (geteuid() != 0) {  // only root can tell
    EXPECT_THAT(found, IsEmpty());
    return;
  }
  EXPECT_THAT(found,
              ElementsAre(Field(&Finding::found,
                                HasSubstr("user nobody of a.service cannot read " + closed))));
  EXPECT_EQ(geteuid(), 0U) << "of this thread, nothing changed";
  unit.user.clear();
  EXPECT_THAT(unreadable(unit, {closed}), IsEmpty());
}

}  // namespace service_unit_test
}  // namespace slurmlet::check
