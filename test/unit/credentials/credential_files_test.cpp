#include "credentials/credential_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/hanging_file.h"
#include "fakes/temp_tree.h"

namespace slurmlet::credentials {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Use = CredentialFiles::Entry::Use;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A pair of files, one more, and what became of them.
class CredentialFilesTest : public ::testing::Test {
 protected:
  CredentialFilesTest() {
    tree_.file("tls.crt", "1").file("tls.key", "1").file("ca", "1");
    files_ = std::make_unique<CredentialFiles>(
        std::vector<CredentialFiles::Entry>{{{tree_.path("tls.crt"), tree_.path("tls.key")},
                                             [this]() -> Result<Use> {
                                               ++pair_readings_;
                                               touches_file("/shared/pair");
                                               return Use{[this] {
                                                 ++pair_reloads_;
                                                 return pair_;
                                               }};
                                             },
                                             "pair"},
                                            {{tree_.path("ca")},
                                             [this]() -> Result<Use> {
                                               return Use{[this] {
                                                 ++ca_reloads_;
                                                 return Status{};
                                               }};
                                             },
                                             "CA"}});
    EXPECT_EQ(step(), "");
    pair_reloads_ = ca_reloads_ = 0;
  }

  // What is logged by a step now.
  std::string step() {
    ::testing::internal::CaptureStderr();
    next_ = files_->step(clock_.now());
    return ::testing::internal::GetCapturedStderr();
  }
  std::string step_after(Duration by) {
    clock_.advance(by);
    return step();
  }
  // The same after the kernel has told of a change.
  std::string step_on_event() {
    pollfd entry{files_->fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&entry, 1, 10'000), 1);
    return step();
  }
  Duration until_next() const { return next_ - clock_.now().steady; }
  std::string step_when_due() { return step_after(until_next()); }
  void replace_pair(const std::string& content) {
    tree_.file("tls.crt", content);
    EXPECT_EQ(step_on_event(), "");
  }
  void fail(const std::string& reason) { pair_ = Error{Code::kInvalid, reason}; }
  // Without an event in the watched directory: by another name of the same file.
  void change_silently(const char* name) {
    fs::create_hard_link(tree_.path(name), elsewhere_.path("link"));
    elsewhere_.file("link", "longer than before");
  }

  fakes::TempTree tree_;
  fakes::TempTree elsewhere_;
  fakes::FakeClock clock_;
  Status pair_;
  std::atomic<int> pair_readings_ = 0;
  int pair_reloads_ = 0;
  int ca_reloads_ = 0;
  SteadyTime next_;
  std::unique_ptr<CredentialFiles> files_;
};

TEST_F(CredentialFilesTest, NothingHappensWithoutAChangeOfTheFilesThemselves) {
  for (int look = 0; look < 3; ++look) {
    EXPECT_LE(until_next(), 30s);
    EXPECT_GE(until_next(), 20s);
    EXPECT_EQ(step_when_due(), "");
  }
  tree_.file("tls.crt.tmp", "2");  // another one of the directory
  EXPECT_EQ(step_on_event(), "");
  EXPECT_GE(until_next(), 20s);
  EXPECT_EQ(pair_reloads_ + ca_reloads_, 0);
}

TEST_F(CredentialFilesTest, ReadsAPairAgainAfterAShortQuietSinceItsLastHalf) {
  replace_pair("2");
  const Duration quiet = until_next();
  EXPECT_GE(quiet, 100ms);
  EXPECT_LE(quiet, 1s);
  clock_.advance(quiet - 1ms);
  tree_.file("tls.key", "2");
  step_on_event();
  EXPECT_EQ(step_after(quiet - 1ms), "");
  EXPECT_EQ(pair_reloads_, 0);
  EXPECT_THAT(step_after(1ms), HasSubstr("pair was replaced and is in use"));
  EXPECT_EQ(pair_reloads_, 1);
  EXPECT_EQ(ca_reloads_, 0);
  EXPECT_EQ(step_after(10s), "");
  EXPECT_EQ(pair_reloads_, 1);
  for (int i = 1; i <= 3; ++i) {
    tree_.file("ca", std::to_string(i));
    step_on_event();
    EXPECT_THAT(step_when_due(), HasSubstr("CA was replaced and is in use"));
    EXPECT_EQ(ca_reloads_, i);
  }
  EXPECT_EQ(pair_reloads_, 1);
}

TEST_F(CredentialFilesTest, WaitsForQuietNoLongerThanTwoSeconds) {
  for (int i = 0; i < 20; ++i) {
    tree_.file("tls.crt", std::to_string(i));
    step_on_event();
    EXPECT_EQ(pair_reloads_, 0) << i;
    clock_.advance(100ms);
  }
  step();
  EXPECT_EQ(pair_reloads_, 1);
}

TEST_F(CredentialFilesTest, SaysOnceWhatIsRefusedAndTriesAgain) {
  fail("tls.key: the key does not fit");
  replace_pair("2");
  EXPECT_THAT(step_when_due(), AllOf(HasSubstr("pair"), HasSubstr("tls.key: the key does not fit"),
                                     HasSubstr("the old one stays in use")));
  Duration last{};
  for (int tries = 1; tries < 5; ++tries) {
    EXPECT_EQ(pair_reloads_, tries);
    EXPECT_GT(until_next(), last) << "ever more slowly";
    last = until_next();
    EXPECT_EQ(step_when_due(), "");
  }
  fail("tls.key: no PEM");
  tree_.file("tls.key", "2");
  step_on_event();
  EXPECT_THAT(step_when_due(), HasSubstr("tls.key: no PEM"));
  fail("tls.key: the key does not fit");
  EXPECT_EQ(step_when_due(), "");  // said before
  pair_ = Status{};
  EXPECT_THAT(step_when_due(),
              AllOf(HasSubstr("pair was replaced and is in use"), Not(HasSubstr("refused"))));
  const int all = pair_reloads_;
  EXPECT_EQ(step_after(29s), "");
  EXPECT_EQ(step_after(29s), "");
  EXPECT_EQ(pair_reloads_, all);
  // It may be refused anew.
  fail("tls.key: no PEM");
  replace_pair("3");
  EXPECT_THAT(step_when_due(), HasSubstr("tls.key: no PEM"));
}

TEST_F(CredentialFilesTest, WhatIsRefusedIsTriedAgainAtEachLook) {
  fail("no such file: other.key");
  replace_pair("2");
  for (int i = 0; i < 8; ++i) {
    step_when_due();
  }
  EXPECT_LE(until_next(), 30s);
  const int tries = pair_reloads_;
  EXPECT_EQ(step_when_due(), "");
  EXPECT_EQ(pair_reloads_, tries + 1);
  pair_ = Status{};
  EXPECT_THAT(step_after(30s), HasSubstr("pair was replaced and is in use"));
}

TEST_F(CredentialFilesTest, LooksNowAndThenWithoutEvents) {
  change_silently("ca");
  pollfd entry{files_->fd(), POLLIN, 0};
  ::poll(&entry, 1, 0);
  ASSERT_EQ(entry.revents, 0);
  EXPECT_EQ(step_when_due(), "");
  EXPECT_LE(until_next(), 1s);
  EXPECT_THAT(step_when_due(), HasSubstr("CA was replaced and is in use"));
  EXPECT_EQ(ca_reloads_, 1);
}

TEST_F(CredentialFilesTest, AReadingThatHangsLeavesTheOldOnesInUseAndCountsWhenItEnds) {
  fakes::HangingFile hanging{"/shared/pair"};
  replace_pair("2");
  EXPECT_THAT(step_when_due(),
              AllOf(HasSubstr("pair: "), HasSubstr(" does not answer; the old one stays in use"),
                    Not(HasSubstr("rejected"))));
  EXPECT_EQ(files_->failures(), 1U);
  tree_.file("ca", "2");
  step_on_event();
  EXPECT_THAT(step_when_due(), HasSubstr("CA was replaced and is in use"));
  for (int i = 0; i < 10; ++i) {
    step_when_due();
  }
  EXPECT_EQ(pair_reloads_, 0);
  hanging.wait();
  const int begun = pair_readings_;
  hanging.answer();
  while (pair_reloads_ == 0) {
    step_after(until_next());
  }
  EXPECT_EQ(pair_reloads_, 1);
  EXPECT_EQ(pair_readings_, begun) << "slow is not never";
}

// They are not told of then: the look is one for all.
TEST_F(CredentialFilesTest, WhileOneFileHangsTheOthersAreReadNowAndThen) {
  fakes::HangingFile hanging{tree_.path("ca")};
  tree_.file("tls.crt", "2");
  EXPECT_THAT(step_on_event(), HasSubstr("ca does not answer; the old ones stay in use"));
  EXPECT_EQ(pair_reloads_, 0);
  step_after(30s);
  EXPECT_EQ(pair_reloads_, 1);
  step_after(30s);
  EXPECT_EQ(pair_reloads_, 2);
}

// What was read before the last change may be old.
TEST_F(CredentialFilesTest, AReadingFromBeforeTheLastChangeIsNotUsed) {
  fakes::HangingFile hanging{"/shared/pair"};
  replace_pair("2");
  step_when_due();
  hanging.wait();
  const int begun = pair_readings_;
  tree_.file("tls.crt", "3");
  step_on_event();
  hanging.answer();
  while (pair_reloads_ == 0) {
    step_after(until_next());
  }
  EXPECT_EQ(pair_readings_, begun + 1);
}

TEST_F(CredentialFilesTest, TheFirstStepReadsWhatWasReplacedBeforeItWatched) {
  int reloads = 0;
  const auto read = [&]() -> Result<Use> {
    return Use{[&] {
      ++reloads;
      return Status{};
    }};
  };
  CredentialFiles fresh{{{{tree_.path("ca")}, read, "CA"}}};
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    EXPECT_GT(fresh.step(clock_.now()), clock_.now().steady);
    EXPECT_EQ(reloads, 1);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(CredentialFiles{{}}.step(clock_.now()), clock_.now().steady) << "of no files";
}

}  // namespace
}  // namespace slurmlet::credentials
