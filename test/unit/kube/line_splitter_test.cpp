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
  std::vector<std::string> lines;
  LineSplitter exact(4);
  EXPECT_TRUE(exact.feed("abcd\n", lines));
  EXPECT_THAT(lines, ElementsAre("abcd"));

  LineSplitter at_once(4);
  EXPECT_FALSE(at_once.feed("abcde\n", lines));
  LineSplitter in_pieces(4);
  EXPECT_TRUE(in_pieces.feed("abc", lines));
  EXPECT_FALSE(in_pieces.feed("de", lines));
}

TEST(LineSplitterTest, GivesTheLinesBeforeTheOneThatIsTooLong) {
  std::vector<std::string> lines;
  LineSplitter splitter(4);
  EXPECT_FALSE(splitter.feed("a\nb\nccccc", lines));
  EXPECT_THAT(lines, ElementsAre("a", "b"));
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
