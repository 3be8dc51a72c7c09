#include "daemon/slurm_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/unique_fd.h"
#include "fakes/hanging_file.h"
#include "fakes/in_child.h"
#include "fakes/temp_tree.h"

namespace slurmlet::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kUsualSocket = "/run/slurmrestd.socket";

// With a /run of its own, in which slurmrestd listens, and nothing else.
bool is_beside_slurmrestd() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kUsualSocket, sizeof address.sun_path - 1);
  const UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", "/run", "tmpfs", 0, nullptr) == 0 &&
         ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

class SourceFactsTest : public ::testing::Test {
 protected:
  SourceFactsTest() { tree_.file("bin/sinfo", "#!/bin/sh\n", 0755); }
  slurm::SourceFacts facts(node::SlurmSource source) {
    config::SlurmSettings settings;
    settings.source = source;
    settings.bin_dir = bin_;
    return source_facts(settings);
  }

  fakes::TempTree tree_;
  std::string bin_ = tree_.path("bin").string();
};

TEST_F(SourceFactsTest, SinfoIsLookedFor) {
  EXPECT_EQ(facts(node::SlurmSource::kAuto).source, node::SlurmSource::kAuto);
  EXPECT_EQ(facts(node::SlurmSource::kAuto).sinfo, bin_ + "/sinfo");
  const auto cli = facts(node::SlurmSource::kCli);
  EXPECT_EQ(cli.source, node::SlurmSource::kCli);
  EXPECT_EQ(cli.sinfo, bin_ + "/sinfo");
  EXPECT_THAT(cli.sockets, IsEmpty());
  bin_ = "/nowhere";
  EXPECT_EQ(facts(node::SlurmSource::kCli).sinfo, "");
}

TEST_F(SourceFactsTest, AFixedChoiceLooksForNothingThatItDoesNotNeed) {
  const fakes::HangingFile sinfo{bin_ + "/sinfo"};
  for (const auto source : {node::SlurmSource::kRest, node::SlurmSource::kOperator}) {
    EXPECT_EQ(facts(source).source, source);
    EXPECT_EQ(facts(source).sinfo, "");
    EXPECT_THAT(facts(source).sockets, IsEmpty());
  }
}

TEST_F(SourceFactsTest, AutoLooksForTheSocketsOfSlurmrestd) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root has a /run of its own";
  }
  const int outcome = fakes::in_child(is_beside_slurmrestd, [this] {
    EXPECT_THAT(facts(node::SlurmSource::kCli).sockets, IsEmpty());
    EXPECT_THAT(facts(node::SlurmSource::kAuto).sockets, ElementsAre(kUsualSocket));
    return !HasFailure();
  });
  if (outcome == fakes::kNotSetUp) {
    GTEST_SKIP() << "no mount namespace to be had";
  }
  EXPECT_EQ(outcome, 0);
}

// The main thread makes the sources before its first look at the Lease.
TEST_F(SourceFactsTest, ALookThatHangsIsGivenUp) {
  const std::string sinfo = bin_ + "/sinfo";
  const fakes::HangingFile hanging{sinfo};
  const auto found = facts(node::SlurmSource::kAuto);
  EXPECT_EQ(found.sinfo, sinfo) << "taken to be there";
  EXPECT_THAT(found.sockets, IsEmpty());
}

}  // namespace
}  // namespace slurmlet::daemon
