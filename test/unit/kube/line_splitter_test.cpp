#include "kube/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LineSplitterTest, JoinsLinesCutAnywhere) {
  const std::string text = "one\ntwo\r\n\nthree\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    LineSplitter splitter(100);
    std::vector<std::string> lines;
    EXPECT_TRUE(splitter.feed(text.substr(0, cut), lines));
    EXPECT_TRUE(splitter.feed(text.substr(cut), lines));
    EXPECT_THAT(lines, ElementsAre("one", "two", "three")) << cut;
  }
}

TEST(LineSplitterTest, RefusesALineOverTheLimitHoweverItComes) {
  const struct {
    std::vector<std::string> pieces;
    bool fits;
    std::vector<std::string> lines;
  } rows[] = {{{"abcd\n"}, true, {"abcd"}},
              {{"abcde\n"}, false, {}},
              {{"abc", "de"}, false, {}},
              {{"a\nb\nccccc"}, false, {"a", "b"}}};
  for (const auto& row : rows) {
    LineSplitter splitter(4);
    std::vector<std::string> lines;
    bool fits = true;
    for (const auto& piece : row.pieces) {
      fits = splitter.feed(piece, lines);
    }
    EXPECT_EQ(fits, row.fits);
    EXPECT_EQ(lines, row.lines);
  }
}

TEST(LineSplitterTest, ClearForgetsAHalfLine) {
  std::vector<std::string> lines;
  LineSplitter splitter(10);
  EXPECT_TRUE(splitter.feed("half", lines));
  EXPECT_THAT(lines, IsEmpty());
  splitter.clear();
  EXPECT_TRUE(splitter.feed("whole\n", lines));
  EXPECT_THAT(lines, ElementsAre("whole"));
}

}  // namespace
}  // namespace slurmlet::kube
