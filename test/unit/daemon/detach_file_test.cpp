#include "daemon/detach_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

class DetachFileTest : public ::testing::Test {
 protected:
  bool exists() const { return std::filesystem::exists(tree_.path("detached")); }
  fakes::TempTree tree_;
  std::string directory_ = tree_.root().string();
};

TEST_F(DetachFileTest, IsThereWhileTheNodeSaysSo) {
  for (int life = 0; life < 2; ++life) {
    DetachFile file{directory_};
    file.set(std::nullopt);  // the API server is away, or the Node is gone
    EXPECT_EQ(exists(), life == 1) << "it is of an earlier life";
    file.set(false);
    EXPECT_FALSE(exists());
    file.set(true);
    EXPECT_TRUE(exists());
    file.set(std::nullopt);
    EXPECT_TRUE(exists());
    tree_.remove("detached");  // by somebody
    file.set(true);
    EXPECT_TRUE(exists());
  }
}

TEST_F(DetachFileTest, WithoutADirectoryNothingIsWritten) {
  DetachFile{""}.set(true);
  EXPECT_FALSE(exists());
  EXPECT_FALSE(std::filesystem::exists("/detached"));
}

}  // namespace
}  // namespace slurmlet::daemon
