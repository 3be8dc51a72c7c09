#include "kube/cluster_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace slurmlet::kube {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class AccessFromFilesTest : public ::testing::Test {
 protected:
  AccessFromFilesTest() {
    std::string name = (fs::temp_directory_path() / "access-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    for (const char* file : {"ca", "crt", "key"}) {
      std::ofstream(folder_ / file) << file << " text";
    }
  }
  ~AccessFromFilesTest() override { fs::remove_all(folder_); }
  std::string at(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(AccessFromFilesTest, ReadsTheFilesButLeavesTheTokenToItsFile) {
  const auto access =
      access_from_files({"https://10.96.0.1:443", at("ca"), at("crt"), at("key"), "/run/token"});
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->server, "https://10.96.0.1:443");
  EXPECT_EQ(access->pem.ca, "ca text");
  EXPECT_EQ(access->pem.certificate, "crt text");
  EXPECT_EQ(access->pem.key, "key text");
  EXPECT_EQ(access->pem.ca_name, at("ca"));
  EXPECT_EQ(access->token_file, "/run/token");
  EXPECT_EQ(access->files.size(), 3U);
}

TEST_F(AccessFromFilesTest, SaysWhatIsWrong) {
  const struct {
    AccessFiles files;
    Code code;
    const char* words;
  } table[] = {
      {{"", "", "", "", "t"}, Code::kInvalid, "https://HOST:PORT"},
      {{"http://h", "", "", "", "t"}, Code::kInvalid, "not encrypted"},
      {{"https://h", at("no-ca"), "", "", "t"}, Code::kNotFound, "CA certificate: open"},
      {{"https://h", "", at("no-crt"), at("key"), ""}, Code::kNotFound, "client certificate: open"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.words);
    const auto access = access_from_files(row.files);
    ASSERT_FALSE(access);
    EXPECT_EQ(access.error().code, row.code);
    EXPECT_THAT(access.error().message, HasSubstr(row.words));
  }
}

}  // namespace
}  // namespace slurmlet::kube
