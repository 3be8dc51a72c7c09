#include "slurm/sources/rest_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace slurmlet::slurm {
namespace {

using testing::ElementsAre;

// The versions that are tried, in order, at a server that serves `served`; the last one answered.
std::vector<int> search(RestVersions& versions, const std::vector<int>& served,
                        const std::string& release) {
  std::vector<int> tried{versions.candidate()};
  while (std::find(served.begin(), served.end(), tried.back()) == served.end()) {
    if (!versions.not_served()) {
      return tried;
    }
    tried.push_back(versions.candidate());
  }
  versions.answered(tried.back(), release);
  return tried;
}

TEST(RestVersions, AreTriedFromTheNewestDownAndRemembered) {
  RestVersions versions;
  EXPECT_FALSE(versions.known());
  EXPECT_THAT(search(versions, {41, 42, 43, 44}, "25.11.8"), ElementsAre(45, 44));
  EXPECT_TRUE(versions.known());
  EXPECT_THAT(search(versions, {41, 42, 43, 44}, "25.11.8"), ElementsAre(44));
}

TEST(RestVersions, AreAllTriedOnceAndThenFromTheTopAgain) {
  RestVersions versions;
  EXPECT_THAT(search(versions, {}, ""), ElementsAre(45, 44, 43, 42, 41, 40, 39, 38, 37, 36));
  EXPECT_EQ(versions.candidate(), 45);
}

TEST(RestVersions, AreSearchedAnewWhenTheKnownOneIsGone) {
  RestVersions versions;
  search(versions, {36, 37, 38}, "22.05.8");
  ASSERT_EQ(versions.candidate(), 38);
  EXPECT_THAT(search(versions, {40, 41, 42}, "24.11.7"), ElementsAre(38, 45, 44, 43, 42));
}

TEST(RestVersions, AreSearchedOnceAfterAnUpgrade) {
  RestVersions versions;
  search(versions, {40, 41, 42}, "24.11.7");
  versions.answered(42, "25.11.8");
  EXPECT_FALSE(versions.known());
  EXPECT_THAT(search(versions, {41, 42, 43, 44}, "25.11.8"), ElementsAre(45, 44));
  EXPECT_THAT(search(versions, {41, 42, 43, 44}, "25.11.8"), ElementsAre(44));
}

TEST(RestVersions, AnAnswerThatDoesNotTellItsReleaseIsNoUpgrade) {
  RestVersions versions;
  search(versions, {42}, "24.11.7");
  versions.answered(42, "");
  EXPECT_TRUE(versions.known());
  versions.answered(42, "24.11.7");
  EXPECT_TRUE(versions.known());
}

TEST(RestVersions, ASearchGoesOnWhereItWasAndBeginsAnewWhenTheServerWentAway) {
  RestVersions versions;
  ASSERT_TRUE(versions.not_served());
  ASSERT_TRUE(versions.not_served());
  EXPECT_EQ(versions.candidate(), 43);
  versions.unreachable();
  EXPECT_EQ(versions.candidate(), 45);
  versions.answered(38, "22.05.8");
  versions.unreachable();
  EXPECT_EQ(versions.candidate(), 38);
}

TEST(RestVersions, HaveTheirNames) { EXPECT_EQ(api_version_name(44), "v0.0.44"); }

}  // namespace
}  // namespace slurmlet::slurm
