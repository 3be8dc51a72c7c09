#include "daemon/slurm_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <semaphore>

namespace slurmlet::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

config::SlurmSettings with_source(config::SlurmSource source) {
  config::SlurmSettings out;
  out.source = source;
  out.bin_dir = "/shared/bin";
  return out;
}

slurm::SourceFacts find_both(slurm::SourceFacts facts, const std::string& bin_dir) {
  facts.sinfo = bin_dir + "/found";
  facts.sockets = {"/run/slurmrestd.socket"};
  return facts;
}

TEST(SourceFacts, AutoLooksForSinfoAndSockets) {
  const auto facts = source_facts(with_source(config::SlurmSource::kAuto), find_both);
  EXPECT_FALSE(facts.fixed);
  EXPECT_EQ(facts.sinfo, "/shared/bin/found");
  EXPECT_THAT(facts.sockets, ElementsAre("/run/slurmrestd.socket"));
}

TEST(SourceFacts, AFixedChoiceLooksForNothingThatItDoesNotNeed) {
  for (const auto source : {config::SlurmSource::kRest, config::SlurmSource::kOperator}) {
    const auto facts = source_facts(with_source(source), find_both);
    EXPECT_TRUE(facts.fixed);
    EXPECT_EQ(facts.sinfo, "");
    EXPECT_THAT(facts.sockets, IsEmpty());
  }
  const auto cli = look_for_sources({slurm::SourceKind::kCli, "", "", {}}, "/nowhere");
  EXPECT_EQ(cli.sinfo, "");
  EXPECT_THAT(cli.sockets, IsEmpty());
}

// The main thread makes the sources before its first look at the Lease.
TEST(SourceFacts, ALookThatHangsIsGivenUp) {
  struct Gate {
    std::binary_semaphore open{0}, left{0};
  };
  const auto gate = std::make_shared<Gate>();
  const auto facts = source_facts(with_source(config::SlurmSource::kAuto),
                                  [gate](auto found, const std::string& bin_dir) {
                                    gate->open.acquire();
                                    gate->left.release();
                                    return find_both(found, bin_dir);
                                  });
  EXPECT_EQ(facts.sinfo, "/shared/bin/sinfo") << "taken to be there";
  EXPECT_THAT(facts.sockets, IsEmpty());
  gate->open.release();
  gate->left.acquire();
}

}  // namespace
}  // namespace slurmlet::daemon
