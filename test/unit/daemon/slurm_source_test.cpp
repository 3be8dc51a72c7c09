#include "daemon/slurm_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using testing::IsEmpty;

class SourceFactsTest : public ::testing::Test {
 protected:
  SourceFactsTest() { tree_.file("bin/sinfo", "#!/bin/sh\n", 0755); }
  slurm::SourceFacts facts(config::SlurmSource source) {
    config::SlurmSettings settings;
    settings.source = source;
    settings.bin_dir = bin_;
    return source_facts(settings);
  }

  fakes::TempTree tree_;
  std::string bin_ = tree_.path("bin").string();
};

TEST_F(SourceFactsTest, SinfoIsLookedFor) {
  EXPECT_FALSE(facts(config::SlurmSource::kAuto).fixed);
  EXPECT_EQ(facts(config::SlurmSource::kAuto).sinfo, bin_ + "/sinfo");
  const auto cli = facts(config::SlurmSource::kCli);
  EXPECT_TRUE(cli.fixed);
  EXPECT_EQ(cli.sinfo, bin_ + "/sinfo");
  EXPECT_THAT(cli.sockets, IsEmpty());
  bin_ = "/nowhere";
  EXPECT_EQ(facts(config::SlurmSource::kCli).sinfo, "");
}

TEST_F(SourceFactsTest, AFixedChoiceLooksForNothingThatItDoesNotNeed) {
  const fakes::HangingFile sinfo{bin_ + "/sinfo"};
  for (const auto source : {config::SlurmSource::kRest, config::SlurmSource::kOperator}) {
    EXPECT_TRUE(facts(source).fixed);
    EXPECT_EQ(facts(source).sinfo, "");
    EXPECT_THAT(facts(source).sockets, IsEmpty());
  }
}

// The main thread makes the sources before its first look at the Lease.
TEST_F(SourceFactsTest, ALookThatHangsIsGivenUp) {
  const std::string sinfo = bin_ + "/sinfo";
  const fakes::HangingFile hanging{sinfo};
  const auto found = facts(config::SlurmSource::kAuto);
  EXPECT_EQ(found.sinfo, sinfo) << "taken to be there";
  EXPECT_THAT(found.sockets, IsEmpty());
}

}  // namespace
}  // namespace slurmlet::daemon
