#include "podapi/request_path.h"

#include <gtest/gtest.h>

namespace slurmlet::podapi {
namespace {

TEST(NormalizedPath, IsWhatThePathMeans) {
  struct Row {
    std::string path, meant;
  };
  for (const Row& row : std::vector<Row>{{"/", "/"},
                                         {"", "/"},
                                         {"/pods", "/pods"},
                                         {"/pods/", "/pods/"},
                                         {"//pods//x///", "/pods/x/"},
                                         {"/a/./b/.", "/a/b"},
                                         {"/a/../../b", "/b"},
                                         {"/a/b/..", "/a"},
                                         {"/a/b/../", "/a/"},
                                         {"/..", "/"},
                                         {"/%70ods", "/pods"},
                                         {"/a%2fb%2F..%2fc", "/a/c"},
                                         {"/a/%2e%2E/b", "/b"},
                                         {"/%252e%252e/b", "/%2e%2e/b"},
                                         {"/...", "/..."},
                                         {"/a%41", "/aA"},
                                         {"/a+b", "/a+b"}}) {
    EXPECT_EQ(normalized_path(row.path), row.meant) << row.path;
  }
  EXPECT_EQ(normalized_path("/a%00b"), (std::string{"/a\0b", 4}));
}

TEST(NormalizedPath, IsNoneForAMalformedEscape) {
  for (const char* path : {"/%", "/%4", "/a%zz", "/%4g", "/%%41", "/% 41"}) {
    EXPECT_FALSE(normalized_path(path)) << path;
  }
}

TEST(IsAtOrBelow, TakesWholeSegments) {
  EXPECT_TRUE(is_at_or_below("/pods", "/pods"));
  EXPECT_TRUE(is_at_or_below("/pods/", "/pods/"));
  EXPECT_TRUE(is_at_or_below("/pods", "/pods/"));
  EXPECT_TRUE(is_at_or_below("/pods/a/b", "/pods"));
  EXPECT_FALSE(is_at_or_below("/podsx", "/pods"));
  EXPECT_FALSE(is_at_or_below("/pod", "/pods"));
  EXPECT_FALSE(is_at_or_below("/Pods", "/pods"));
  EXPECT_FALSE(is_at_or_below("", "/pods"));
}

}  // namespace
}  // namespace slurmlet::podapi
